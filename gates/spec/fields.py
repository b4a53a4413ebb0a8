"""The kinds of value that a gate file holds: names, addresses, shares, seeds, and the names of floor rules."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import (
    Field,
    StringConstraints,
)

from gates.errors import UsageError

_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


Name = Annotated[
    str,
    StringConstraints(pattern=f"^{_NAME}$"),
    Field(description="a name of letters, digits, dots, underscores and hyphens, at most 64"),
]
"""A name that is safe in a file name."""


CorpusRef = Annotated[
    str,
    StringConstraints(pattern=f"^{_NAME}(/{_NAME})?$"),
    Field(description="the name of a corpus manifest, MANIFEST or MANIFEST/SPLIT"),
]
"""MANIFEST or MANIFEST/SPLIT."""


References = Annotated[tuple[CorpusRef, ...], Field(min_length=1)]


ADDRESS = r"^https?://(\[[0-9A-Fa-f:.]+\]|[^\s@?#/:\[\]]+)(:[0-9]{1,5})?(/[^\s@?#]*)?$"


Url = Annotated[
    str,
    StringConstraints(pattern=ADDRESS),
    Field(description="an http or https address without user name, query or fragment"),
]


VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"


Variable = Annotated[
    str,
    StringConstraints(pattern=VARIABLE),
    Field(description="the name of an environment variable (the key itself stays out of the file)"),
]


Text = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


def stated(reason: str) -> str:
    """A reason that says something, in letters or digits that any record can hold. Raises UsageError for another."""
    try:
        says = re.search(r"\w", reason) is not None and len(reason.encode()) <= 10_000
    except UnicodeEncodeError:
        says = False
    if not says:
        raise UsageError(
            "--reason: it says nothing that a record can hold",
            next_step="say why in words, at most 10,000 bytes of UTF-8",
        )
    return reason


Seed = Annotated[int, Field(ge=0, le=2**53 - 1)]


Share = Annotated[float, Field(ge=0, le=1)]


RETIRED = "all-arms-range@1"
"""Read, so that an old run can be judged again under it; refused for a gate that is to be sealed."""


Alpha = Annotated[float, Field(ge=1e-4, le=0.4)]


Decide = Literal["interval", "point"]


CALIBRATED = "pairwise-calibrated@1"


ALPHA = 0.025
