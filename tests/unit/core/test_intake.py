"""The limits of an instruction: the same in the program and in the tables."""

from __future__ import annotations

import pytest

from zerotail.core.intake import MOST_ID_BYTES, MOST_VALUE_BYTES, name_too_long, too_large
from zerotail.postgres.schema import schema_files

pytestmark = pytest.mark.fast


def test_what_fits_has_no_reason_and_one_byte_more_is_said_with_both_numbers() -> None:
    assert (too_large(MOST_VALUE_BYTES), name_too_long(MOST_ID_BYTES)) == ("", "")
    assert too_large(MOST_VALUE_BYTES + 1) == "a value has 900000 bytes at most, and this one has 900001"
    assert name_too_long(MOST_ID_BYTES + 1) == "an identifier has 1000 bytes at most, and this one has 1001"


def test_the_tables_and_the_program_have_one_limit() -> None:
    (intake,) = (text for name, text in schema_files() if name == "0010_intake.sql")
    assert f"octet_length(arriving.value) > {MOST_VALUE_BYTES}\n" in intake
    assert f"a value has {MOST_VALUE_BYTES} bytes at most" in intake
