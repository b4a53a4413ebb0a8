"""Records: the one canonical form against RFC 8785's own example, strictness, and what reading refuses."""

from __future__ import annotations

import hashlib
import json
from itertools import permutations

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gates.errors import ExitCode, RecordError
from gates.records import Generation, Outcome, Record, Usage, canonical, digest, sha256, signature, worst


class Reading(Record):
    number: float
    name: str = "none"
    inner: Usage | None = None


GENERATION = Generation(
    seal="a" * 64,
    arm="e12",
    prompt=3,
    seed=7,
    seat="http://127.0.0.1:1/v1",
    request={"model": "m", "temperature": 0.9, "stop": None},
    text="It’s “so” —\u2028\x00 yes",
    finish_reason="stop",
    usage=Usage(prompt_tokens=5, completion_tokens=9),
    model="m",
    fingerprint=None,
    prompt_sha256="0" * 64,
    started="2026-01-01T00:00:00+00:00",
    latency_s=0.25,
    attempts=1,
    error=None,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=12,
)


def test_canonical_json_of_the_rfcs_example() -> None:
    # RFC 8785, sections 3.2.2 (input) and 3.2.4 (the bytes of the result), typed off from there.
    value = json.loads(
        r'{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
        r' "string": "\u20ac$\u000F\u000aA\u0027\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}'
    )
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        r'"string":"€$\u000f\nA' + "'" + r'B\"\\\\\"/"}'
    )
    assert canonical(value) == expected.encode()


def test_keys_are_sorted_by_utf_16_units() -> None:
    # RFC 8785, section 3.2.3: a sign outside the basic plane (a pair of surrogates) stands before U+FB33.
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    ordered = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical(dict.fromkeys(keys, 0)))) == ordered


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2**53 + 1])
def test_what_json_cannot_hold_has_no_canonical_form(value: float) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical({"value": [value]})


@given(JSON)
def test_canonical_json_reads_back_and_ignores_the_order_of_keys(value: object) -> None:
    # A number past 2^53 is written with all its digits, which are another whole number but the same float.
    assert json.loads(canonical(value), parse_int=float) == value

    def turned(one: object) -> object:
        if isinstance(one, dict):
            return {key: turned(one[key]) for key in reversed(one)}
        return [turned(item) for item in one] if isinstance(one, list) else one

    assert canonical(turned(value)) == canonical(value)
    assert digest(turned(value)) == digest(value)


TINY = st.builds("{}e-{}".format, st.floats(-9.99, 9.99).map(lambda x: round(x, 3)), st.integers(3, 12)).map(float)
LIKE_NUMBERS = st.lists(st.sampled_from(['"', "\\", ":", ",", "[", "1e-05", "-2.5e-07", " "])).map("".join)


@given(TINY | LIKE_NUMBERS | st.dictionaries(LIKE_NUMBERS, TINY | LIKE_NUMBERS))
def test_canonical_json_spells_tiny_numbers_as_the_reference_and_no_text(value: object) -> None:
    assert canonical([value, 1.5e-05, value]) == rfc8785.dumps([value, 1.5e-05, value])


@given(JSON | st.floats(1e-7, 1e-3) | st.floats(1e14, 1e22) | st.sampled_from([0.0, -0.0, 1e15, 1e-4, 1e21, 5e-324]))
def test_canonical_json_is_that_of_the_reference(value: object) -> None:
    """Python's own encoder writes what it can write alike, and nothing else."""
    for one in (value, {"numbers": [value, (value,)]}):
        assert canonical(one) == rfc8785.dumps(one)


def test_hashes_of_known_bytes() -> None:
    # FIPS 180-2, appendix B.1.
    assert sha256(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest({"b": 1, "a": "ä"}) == hashlib.sha256('{"a":"ä","b":1}'.encode()).hexdigest()


def test_a_records_digest_is_that_of_its_canonical_json() -> None:
    one = Reading(number=1.0, inner=Usage(prompt_tokens=2, completion_tokens=3))
    text = '{"inner":{"completion_tokens":3,"prompt_tokens":2},"name":"none","number":1}'
    assert one.digest() == hashlib.sha256(text.encode()).hexdigest()
    assert one.digest() != Reading(number=1.5, inner=one.inner).digest()


def test_a_signature_keeps_the_order_of_its_parameters() -> None:
    assert signature("delta_cb@1") == "delta_cb@1"
    assert signature("m@2", n=8, case="keep", share=0.5) == "m@2|n:8|case:keep|share:0.5"


def test_a_record_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        GENERATION.text = "better"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"number": "1"}, "valid number"),
        ({"number": float("nan")}, "finite number"),
        ({"number": float("inf")}, "finite number"),
        ({"number": 1.0, "nmae": "x"}, "not permitted"),
        ({"number": 1.0, "name": 5}, "valid string"),
        ({}, "required"),
    ],
)
def test_a_record_takes_nothing_unknown_missing_or_of_another_type(fields: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Reading(**fields)  # type: ignore[arg-type]  # wrong on purpose


def test_a_generation_reads_back_from_its_own_bytes() -> None:
    line = canonical(GENERATION.as_json())
    assert b"\n" not in line
    assert json.loads(line)["schema"] == "gates.generation/1"
    again = Generation.parse(line, where="generations.jsonl:1")
    assert again == GENERATION
    assert again.key == ("e12", 3, 7)
    assert again.digest() == GENERATION.digest()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema": "gates.generation/2"}, r"schema: Input should be 'gates\.generation/1'"),
        ({"seal": "A" * 64}, r"seal: String should match pattern"),
        ({"attempts": 0}, r"attempts: Input should be greater than or equal to 1"),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": 1}}, r"usage\.prompt_tokens: Input should be greater"),
        ({"extra": 1}, r"extra: Extra inputs are not permitted"),
        ({"seed": "7"}, r"seed: Input should be a valid integer"),
    ],
)
def test_what_is_no_record_of_this_version_is_refused(change: dict[str, object], why: str) -> None:
    line = json.dumps(GENERATION.as_json() | change).encode()
    with pytest.raises(RecordError, match=rf"^runs/g\.jsonl:4: not a record of this version: {why}") as caught:
        Generation.parse(line, where="runs/g.jsonl:4")
    assert "restore the file from its commit" in caught.value.next_step


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"number": NaN}', b'{"number": 1} {}'])
def test_bytes_that_are_no_document_are_refused(data: bytes) -> None:
    with pytest.raises(RecordError, match=r"^x\.json: not a record of this version: (document|number): "):
        Reading.parse(data, where="x.json")


def test_outcomes_end_with_their_own_exit_status() -> None:
    assert {outcome: int(outcome.exit_code) for outcome in Outcome} == {
        Outcome.PASS: 0,
        Outcome.FAIL: 1,
        Outcome.INCONCLUSIVE: 3,
        Outcome.INVALID: 4,
    }
    assert set(ExitCode) - {outcome.exit_code for outcome in Outcome} == {ExitCode.USAGE, ExitCode.TAMPERED}


def test_the_worst_outcome_prevails() -> None:
    for some in permutations(Outcome):
        assert worst(list(some)) is Outcome.INVALID
    assert worst([Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL]) is Outcome.FAIL
    assert worst([Outcome.INCONCLUSIVE, Outcome.PASS, Outcome.PASS]) is Outcome.INCONCLUSIVE
    assert worst([Outcome.PASS, Outcome.PASS]) is Outcome.PASS
    assert worst([]) is Outcome.INVALID  # nothing measured is no PASS
