"""The walker itself: what a page says otherwise than the shell is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.walk import Command, File, steps, walk

PAGE = """\
Text.

<!-- file: a/b.txt -->
```text
one
two
```

```console
$ wc -l \\
    < a/b.txt
2
$ cat a/b.txt && \\
    false   # exits 1
one
...
```

```sh
not run
```
"""


def test_steps() -> None:
    assert list(steps(PAGE)) == [
        File("a/b.txt", "one\ntwo\n"),
        Command(10, "wc -l \\\n    < a/b.txt", "2\n", 0),
        Command(13, "cat a/b.txt && \\\n    false   # exits 1", "one\n...\n", 1),
    ]


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("", "", []),
        ("\n2\n", "\n3\n", ["page.md:10: `wc -l"]),
        ("exits 1", "exits 2", ["page.md:13: `cat a/b.txt"]),
        ("one\n...", "...\nthree", ["page.md:13: `cat a/b.txt"]),
        ("wc -l", "wc -l '", ["page.md:10: `wc -l '"]),
    ],
)
def test_walk(tmp_path: Path, old: str, new: str, wrong: list[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(old, new) if old else PAGE, "utf-8")
    found = walk(page, tmp_path)
    assert [sentence[: len(start)] for sentence, start in zip(found, wrong, strict=True)] == wrong
