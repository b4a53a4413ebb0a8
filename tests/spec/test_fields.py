"""The kinds of value that people give: a reason says something."""

from __future__ import annotations

import pytest

from gates.errors import UsageError
from gates.spec.fields import stated


@pytest.mark.parametrize("reason", ["", " ", "...", "\u200b\u2060", "\u202e", "said \udcff", "x" * 10_001])
def test_a_reason_that_says_nothing_is_none(reason: str) -> None:
    with pytest.raises(UsageError, match="--reason: it says nothing that a record can hold"):
        stated(reason)


@pytest.mark.parametrize("reason", ["ok", "规则", "7", "Zoë: see note 3"])
def test_a_reason_is_kept_as_it_was_given(reason: str) -> None:
    assert stated(reason) == reason
