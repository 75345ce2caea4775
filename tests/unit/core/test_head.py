"""Runs of many records are those of few, and a claim makes an older writer's token worthless."""

from __future__ import annotations

from random import Random

import pytest

from zerotail.core.head import first_head, runs_of
from zerotail.core.identity import Epoch, ProducerNumber, Serial

pytestmark = pytest.mark.fast


def test_runs_of_many_records_are_those_of_the_same_records_taken_piece_by_piece() -> None:
    chance = Random(3)
    last = {ProducerNumber(number): 0 for number in (1, 2, 7)}
    producers: list[ProducerNumber] = []
    serials: list[Serial] = []
    while len(serials) < 3000:
        owner = chance.choice(list(last))
        for _ in range(chance.randint(1, 40)):
            last[owner] += 1
            producers.append(owner)
            serials.append(Serial(last[owner]))
    joined: list[tuple[int, int, int]] = []
    for place in range(0, len(serials), 100):
        for run in runs_of(producers[place : place + 100], serials[place : place + 100]):
            if joined and joined[-1][0] == run[0] and joined[-1][1] + joined[-1][2] == run[1]:
                joined[-1] = (run[0], joined[-1][1], joined[-1][2] + run[2])
            else:
                joined.append(run)
    assert list(runs_of(producers, serials)) == joined


def test_a_gap_in_the_serials_of_many_records_begins_a_new_run() -> None:
    serials = [Serial(number) for number in (*range(1, 401), *range(500, 800))]
    assert runs_of([ProducerNumber(1)] * 700, serials) == ((1, 1, 400), (1, 500, 300))


def test_a_claim_changes_the_token_and_nothing_else() -> None:
    head = first_head(Epoch(256), [ProducerNumber(1)])
    claimed = head.claimed()
    assert claimed.token != head.token
    assert (claimed.vector, claimed.chain, claimed.segment) == (head.vector, head.chain, head.segment)
