"""Make the texts that the memorisation benchmark reads: printed-looking prose of invented words, with planted copies.

    python benchmarks/texts.py FOLDER [SIZE_MB ...]

Words follow a Zipf-Mandelbrot law over 50,000 invented types, as prose has them: capitals, commas, curly quotes, dashes
without blanks, lines of about 70 columns, some broken by a hyphen, some words in _italics_. Writes `SIZE.txt` (as
printed, what `gates` reads), `SIZE.flat` (its words with single blanks, what the peers are given: their normalising is
free) and `texts.jsonl`, `texts.flat` (500 texts of 300 words, two thirds of them with copies of 8 to 120 words).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from gates.text import prose_words

TYPES, TEXTS, WORDS = 50_000, 500, 300
BLOCK = 200_000
FORMS = ("{}", "{},", "{}.", "\u201c{},\u201d", "\u2018{}\u2019", "_{}_", "{}\u2014he", "{}'s", "{}-\n{}")
SHARES = (0.83, 0.07, 0.055, 0.01, 0.005, 0.005, 0.01, 0.01, 0.005)


def vocabulary(random: np.random.Generator) -> list[str]:
    """Invented words, the frequent ones short: nearly six bytes a word in running text, as in English."""
    lengths = np.clip(random.normal(2.5 + 0.6 * np.log(np.arange(1, TYPES + 1)), 1.5), 1, 14).astype(int)
    letters = random.choice(list("etaoinshrdlucmfwypvbgkjqxz"), size=(TYPES, 14), p=_letter_shares())
    return ["".join(row[:length]) for row, length in zip(letters, lengths, strict=True)]


def _letter_shares() -> np.ndarray:
    weights = 1 / np.arange(2, 28)
    return weights / weights.sum()


def printed(words: list[str], random: np.random.Generator) -> str:
    """The words as a printer would set them."""
    forms = random.choice(len(FORMS), size=len(words), p=SHARES).tolist()
    out, line, capital = [], 0, True
    for word, form in zip(words, forms, strict=True):
        shown = word.capitalize() if capital else word
        pattern = FORMS[form]
        half = len(word) // 2
        text = pattern.format(shown[:half], shown[half:]) if form == 8 and half else pattern.format(shown, "")
        capital = form == 2
        line = line + len(text) + 1 if "\n" not in text else half
        out.append(text)
        out.append("\n" if line > 70 else " ")
        line = 0 if line > 70 else line
    return "".join(out)


def write_source(folder: Path, megabytes: int, words: list[str], shares: np.ndarray) -> None:
    """SIZE.txt and SIZE.flat; the same first bytes whatever the size."""
    random = np.random.default_rng(1)
    written = 0
    with (folder / f"{megabytes}.txt").open("wb") as text, (folder / f"{megabytes}.flat").open("wb") as flat:
        while written < megabytes * 1_000_000:
            block = printed([words[k] for k in random.choice(len(words), BLOCK, p=shares)], random)
            written += text.write(block.encode())
            flat.write((" ".join(prose_words(block)) + " ").encode())


def write_texts(folder: Path, words: list[str], shares: np.ndarray, source: list[str]) -> None:
    """500 texts; two in three hold copies of the source."""
    random = np.random.default_rng(2)
    texts = []
    for number in range(TEXTS):
        text = [words[k] for k in random.choice(len(words), WORDS, p=shares)]
        for _ in range(int(random.integers(1, 4)) if number % 3 else 0):
            length = int(np.clip(random.geometric(1 / 20) + 7, 8, 120))
            at, place = int(random.integers(WORDS - length)), int(random.integers(len(source) - length))
            text[at : at + length] = source[place : place + length]
        texts.append(text)
    lines = [json.dumps({"text": printed(text, random)}, ensure_ascii=False) for text in texts]
    (folder / "texts.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    flat = [" ".join(prose_words(json.loads(line)["text"])) for line in lines]
    (folder / "texts.flat").write_text("\n".join(flat) + "\n", "utf-8")


def main(folder: Path, sizes: list[int]) -> None:
    """Write what is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    words = vocabulary(random)
    shares = 1 / (np.arange(TYPES) + 2.7) ** 1.05
    shares /= shares.sum()
    for size in sizes:
        if not (folder / f"{size}.flat").exists():
            write_source(folder, size, words, shares)
    if not (folder / "texts.flat").exists():
        with (folder / f"{min(sizes)}.flat").open("rb") as file:
            write_texts(folder, words, shares, file.read(10_000_000).decode().split()[:-1])


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]] or [5, 20, 100, 1000])
