"""Tables of per-seed values: what is read, and every mistake with its line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.errors import InputError
from gates.flow.values import read_values

RANGES = {"voice": (0.0, 2.0), "ran_on": (0.0, 1.0)}
HEADER = "arm,seed,axis,value,n\n"


def read(tmp_path, text: str | bytes):
    path = tmp_path / "values.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_values(path, RANGES)


def test_rows_in_any_order_of_columns_with_blank_lines_quotes_and_windows_line_ends(tmp_path):
    rows = read(tmp_path, '\r\nvalue,arm,axis,seed,n\r\n0.91,base,voice,1,\r\n\r\n"0.08",ckpt-8.5,ran_on,12,50\r\n')
    assert [tuple(row.as_json().values()) for row in rows] == [
        ("base", 1, "voice", 0.91, None, None),
        ("ckpt-8.5", 12, "ran_on", 0.08, 50, 4),
    ]


@pytest.mark.parametrize(
    ("rate", "n", "hits"),
    [("0.07", 100, 7), ("0.07", 30, 2), ("0.33", 3, 1), ("0.3", 3, 1), ("1", 7, 7), ("0.000", 30, 0)],
)
def test_a_rate_is_a_count_at_the_decimals_it_is_written_with(tmp_path, rate, n, hits):
    (row,) = read(tmp_path, f"{HEADER}a,1,ran_on,{rate},{n}\n")
    assert (row.hits, row.n) == (hits, n)


def test_every_mistake_is_listed_with_its_line(tmp_path):
    text = (
        f"{HEADER}"
        "a b,1,voice,0.9,\n"
        "a,one,voice,0.9,\n"
        "a,1,voise,0.9,\n"
        "a,1,voice,nan,\n"
        "a,1,voice,2.1,\n"
        "a,1,ran_on,-0.1,\n"
        "a,1,ran_on,0.08,30\n"
        "a,1,ran_on,0.5,0\n"
        "a,1,voice,0.9,30\n"
        "a,2,voice,0.9\n"
        "a,3,voice,0.9,\n"
        "a,3,voice,0.8,\n"
    )
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    file = tmp_path / "values.csv"
    assert [str(problem) for problem in caught.value.problems] == [
        f"{file}:2: arm = 'a b': a name of letters, digits, dots, underscores and hyphens is needed, at most 64",
        f"{file}:3: seed = 'one': a whole number of at least 0 is needed",
        f"{file}:4: axis = 'voise': must be one of: voice, ran_on (did you mean `voice`?)",
        f"{file}:5: value = 'nan': a number such as 0.193 is needed",
        f"{file}:6: value = '2.1': voice lies between 0 and 2",
        f"{file}:7: value = '-0.1': ran_on lies between 0 and 1",
        f"{file}:8: value = '0.08': no count of 30 texts gives this rate (is n the number of texts of this seed?)",
        f"{file}:9: n = '0': a whole number of at least 1 is needed",
        f"{file}:10: n = '30': n counts the texts behind a rate; voice is none (leave it empty)",
        f"{file}:11: row: needs 5 cells, this has 4",
        f"{file}:13: row: repeats arm, seed and axis of line 12",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: document: the file is empty (begin with the line arm,seed,axis,value)"),
        (HEADER, ":1: table: there are no rows below the header"),
        ("arm,seed,axis\na,1,voice\n", ":1: column = value: is missing (the columns are arm, seed, axis, value and"),
        ("arm,seed,axis,valu\n", ":1: column = 'valu': unknown column (did you mean `value`?)"),
        ("arm,seed,axis,value,arm\n", ":1: column = 'arm': stands twice"),
        (f'{HEADER}a,1,voice,"0.9\n', "this is no CSV: unexpected end of data (is every quotation mark closed?)"),
        (f'{HEADER}a,1,voice,"0"9,\n', ":2: document: this is no CSV: ',' expected after '\"'"),
        (f"{HEADER}a,1,voice,0.9,\n{'x' * 200_000}\n", ":3: document: this is no CSV: field larger than field limit"),
        (b"arm,seed\xff", ":1: document = b'\\xff': the file is not UTF-8 here"),
        (f"{HEADER}a\0,1,voice,0.9,\n", ":2: character = '\\x00': a NUL byte has no place in a text"),
        (f"{HEADER}a,1,voice,{'9' * 400},\n", "a number such as 0.193 is needed"),
        (f"{HEADER}a,{'9' * 400},voice,0.9,\n", "a whole number of at least 0 is needed"),
        (f"{HEADER}a,1,ran_on,0.5,{'9' * 400}\n", "a whole number of at least 1 is needed"),
        (f"{HEADER}a,١,voice,0.9,\n", "a whole number of at least 0 is needed"),
    ],
)
def test_a_table_that_cannot_be_read_says_why(tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)
    assert "correct the file and try again" in str(caught.value)


cell = st.sampled_from(
    ["a", "1", "voice", "ran_on", "0.5", "1e5", "-1", "", '"', ' "', "\n", "\r\n", "inf", "🙂", "30"]
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.lists(cell, min_size=1, max_size=6), max_size=6), st.booleans())
def test_whatever_stands_in_a_table_it_is_read_or_refused(tmp_path_factory, rows, headed):
    folder = tmp_path_factory.getbasetemp()
    text = HEADER * headed + "\n".join(",".join(row) for row in rows)
    try:
        found = read(folder, text)
    except InputError:
        return
    assert all(RANGES[row.axis][0] <= row.value <= RANGES[row.axis][1] for row in found)
    assert len({(row.arm, row.seed, row.axis) for row in found}) == len(found) > 0
