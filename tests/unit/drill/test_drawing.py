"""The pictures of a report: they refer to nothing outside, and show the break where it was."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from zerotail.drill.drawing import Bar, Mark, Message, draw_order, draw_received, draw_steps

pytestmark = pytest.mark.fast

MESSAGES = [Message(100 + n / 10, "east" if n < 60 else "west", 0, n + 1, 1 + n % 3 // 2) for n in range(120)]


def pictures(html: str) -> list[ElementTree.Element]:
    """Every picture, read as XML: one that is not well formed raises."""
    return list(ElementTree.fromstring(f"<body>{html}</body>").iter("svg"))  # noqa: S314 - it is our own


def test_each_tenth_of_a_second_is_a_bar_and_each_mark_is_named() -> None:
    html = draw_received(MESSAGES, [Mark(106, True, "site-loss east: gone"), Mark(106.2, False, "takeover")], 106)
    (picture,) = pictures(html)
    assert len(list(picture.iter("rect"))) == len({int((one.at - 100) / 0.1) for one in MESSAGES})
    assert "<li>+0.00 s: site-loss east</li>" in html
    assert "<li>+0.20 s: takeover</li>" in html


def test_a_step_has_a_bar_and_says_how_long_it_took() -> None:
    html = draw_steps([Bar("takeover: promote", 10.0, 10.25), Bar("takeover: go live", 10.25, 12.0)], 10.0)
    (picture,) = pictures(html)
    texts = [text.text for text in picture.iter("text")]
    assert "250 ms" in texts
    assert "1.75 s" in texts


def test_the_strip_shows_the_last_number_of_one_site_and_the_first_of_the_other() -> None:
    (picture,) = pictures(draw_order(MESSAGES, {1: "cards", 2: "wires"}))
    texts = [text.text for text in picture.iter("text")]
    assert texts == ["partition 0", "east: … 60", "west: 61 …"]


def test_every_change_of_the_sending_site_has_a_strip_also_where_they_lie_close_together() -> None:
    sites = ["east"] * 60 + ["west"] * 20 + ["east"] * 40
    back = [Message(100 + n / 10, site, 0, n + 1, 1) for n, site in enumerate(sites)]
    shown = [[text.text for text in picture.iter("text")] for picture in pictures(draw_order(back, {1: "cards"}))]
    assert shown == [
        ["partition 0", "east: … 60", "west: 61 …"],
        ["partition 0", "west: … 80", "east: 81 …"],
    ]


def test_without_messages_there_is_a_sentence() -> None:
    assert draw_received([], [], 0) == "<p>Nothing was received.</p>"
    assert pictures(draw_order([], {1: "cards"})) == []


def test_what_is_written_by_others_cannot_become_markup() -> None:
    html = draw_received(MESSAGES, [Mark(101, True, "<b>&")], 100)
    assert "<b>" not in html
    assert pictures(html)
