"""Which channels of a stage lead back to it: what it owes there it must not wait for (E21)."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.config.configurations import RIGHT, changed, loaded
from zerotail.running.parts import channels_to_itself

pytestmark = pytest.mark.fast

REASON = ", feedback: corrections are booked again"
BACK = changed('handler: "shop.flows:Book"', f'handler: "shop.flows:Book", emits: [back]{REASON}')
BACK = changed("  booking:", "  back: {kind: topic, topic: payments}\n  booking:", BACK)
ITSELF = changed("{kind: topic, topic: ledger}", "{kind: topic, topic: payments}")
ITSELF = changed("emits: [bank, booking]", f"emits: [bank, booking]{REASON}", ITSELF)
ASIDE = changed('handler: "shop.flows:Book"', f'handler: "shop.flows:Book", emits: [own]{REASON}')
ASIDE = changed("  booking:", "  own: {kind: topic, topic: ledger}\n  booking:", ASIDE)


@pytest.mark.parametrize(
    ("text", "settle", "book"),
    [
        (RIGHT, set(), set()),
        (ITSELF, {"booking"}, set()),
        (BACK, {"booking"}, {"back"}),
        (ASIDE, set(), {"own"}),
    ],
    ids=["no circle", "to itself", "by another one", "only the next one's"],
)
def test_what_leads_back_is_found(tmp_path: Path, text: str, settle: set[str], book: set[str]) -> None:
    configuration = loaded(tmp_path, text)
    found = {name: set(channels_to_itself(configuration, name)) for name in configuration.stages}
    assert found == {"settle": settle, "book": book}
