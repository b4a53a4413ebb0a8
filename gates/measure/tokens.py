"""The words of texts, each text cut once however many measures ask for them."""

from __future__ import annotations

from gates.text import is_wrapped, prose_words, words


class Tokens(dict[str, list[str]]):
    """The words of each text that was asked about, by the text: as `gates.text.words`, and nobody changes them.

    Equal words are one object, so that a run's texts take 8 bytes a word and each word is hashed once.
    """

    def __init__(self) -> None:
        super().__init__()
        self._same: dict[str, str] = {}

    def __missing__(self, text: str) -> list[str]:
        found = words(text)
        self[text] = found = list(map(self._same.setdefault, found, found))
        return found

    def prose(self, text: str) -> list[str]:
        """As `gates.text.prose_words`."""
        return prose_words(text) if is_wrapped(text) else self[text]
