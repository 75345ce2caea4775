"""Whose a record is, by its mark."""

from __future__ import annotations

import pytest

from zerotail.core.installation import IDENTITY_BYTES, NO_MARK, UNMARKED, Installation
from zerotail.postgres.installation import new_identity

pytestmark = pytest.mark.fast


def test_an_identity_is_random_and_has_a_mark() -> None:
    found = {new_identity() for _ in range(50)}
    assert len(found) == 50
    for identity in found:
        assert len(identity) == IDENTITY_BYTES
        assert Installation(identity).mark != NO_MARK


def test_an_identity_never_begins_with_the_mark_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([bytes(IDENTITY_BYTES), bytes(15) + b"x", b"y" * IDENTITY_BYTES])
    monkeypatch.setattr("os.urandom", lambda _: next(drawn))
    assert new_identity() == b"y" * IDENTITY_BYTES


def test_a_record_is_its_own_by_the_mark_and_without_one_only_where_it_began_before() -> None:
    one, other = Installation(b"\1" * 16, accepts_unmarked=False), Installation(b"\2" * 16, accepts_unmarked=True)
    assert one.owns(one.mark)
    assert not one.owns(other.mark)
    assert not one.owns(NO_MARK)
    assert other.owns(other.mark)
    assert not other.owns(one.mark)
    assert other.owns(NO_MARK)
    assert UNMARKED.owns(NO_MARK)
    assert not UNMARKED.owns(one.mark)
