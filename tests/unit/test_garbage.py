"""The collector rests inside, and is afterwards as it was."""

from __future__ import annotations

import gc

import pytest

from zerotail.garbage import collection_paused

pytestmark = pytest.mark.fast


def test_it_rests_inside_and_works_again_afterwards() -> None:
    with collection_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_brings_it_back_as_well() -> None:
    with pytest.raises(ValueError, match="inside"), collection_paused():
        raise ValueError("inside")
    assert gc.isenabled()


def test_one_who_has_switched_it_off_finds_it_off() -> None:
    with collection_paused():
        with collection_paused():
            pass
        assert not gc.isenabled()
