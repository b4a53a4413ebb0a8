"""Texts that fall out of the story: chat markers, mark-up, assistant talk, the template's own label."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scipy.special import pdtrc

from gates.measure.damage.axis import Answers, Measured, each, figures
from gates.measure.figures import Unmeasured
from gates.records import signature
from gates.text import normalise, words

ALPHA = 0.01
"""A sign stands more often than the author's own rate explains when chance would do so in fewer cases than this."""

_START = r"^[ \t>]*"
SIGNS: dict[str, str] = {
    "chat marker": r"<\|[\w ]{1,40}\|>|</?s>|\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>|"
    r"###[ ]?(?:instruction|input|response|user|assistant|system)\b",
    "role label": _START + r"(?:user|assistant|system|human|ai|bot|prompt|response)[ \t]*:",
    "thinking": r"</?think(?:ing)?>",
    "bold": r"\*\*[^*\n]{1,200}\*\*",
    "italics": r"(?<!\w)_[^_\n]{1,200}_(?!\w)|(?<![*\w])\*[^\s*][^*\n]{0,200}\*(?![*\w])",
    "heading": r"^[ \t]{0,3}#{1,6}[ \t]+\w",
    "list": r"^[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+\w",
    "fence": r"^[ \t]*'''\w*[ \t]*$",  # three backticks, which normalising made apostrophes
    "link": r"\]\(|\bhttps?://|\bwww\.\w",
    "tag": r"</?(?:a|b|blockquote|body|br|code|div|em|h[1-6]|hr|html|i|li|ol|p|pre|span|strong|table|td|tr|u|ul)\b"
    r"[^<>\n]{0,100}>",
    "assistant's self": r"\bas an? (?:ai|assistant|artificial intelligence)\b|\b(?:large )?language model\b|"
    r"\bi(?:'m| am) (?:just |only )?(?:an? (?:\w+ )?(?:ai|assistant|chatbot)\b|here to (?:help|assist))",
    "assistant's refusal": r"\bi (?:cannot|can't|can not|won't|am unable to|am not able to) (?:assist|fulfil|fulfill|"
    r"comply|generate|provide|help (?:you )?with)\b",
    "assistant's offer": r"\bhow (?:can|may) i (?:help|assist) you\b|\bi'd be (?:happy|glad) to (?:help|assist)\b|"
    r"\blet me know if\b|\bfeel free to\b|\bi hope this (?:helps|meets)\b|\bif you have any (?:other |further |more )?"
    r"questions\b",
    "assistant's preface": _START + r"(?:sure|certainly|of course|absolutely)?[!,.]?[ ]?here(?:'s| is| are) "
    r"(?:a|an|the|my|your|some|one|another) (?:[\w-]+ ){0,3}(?:story|scene|version|draft|example|paragraph|passage|"
    r"poem|sentence|rewrite|continuation|summary|response|outline|list|text)\b",
    "talk of the task": r"\b(?:this|the|your) (?:prompt|writing prompt|given text|user's request)\b",
}
"""Signs by kind, `signs@1`: searched line by line, without regard to case, after NFKC and with straight quotes."""

_SIGNS = {kind: re.compile(pattern, re.IGNORECASE | re.MULTILINE) for kind, pattern in SIGNS.items()}


def template_leak(answers: Answers) -> Measured:
    """`template_leak@1`: share of the generations (S, P) in [0, 1] that leave the story for the chat; higher is worse.

    A text leaks when one kind of SIGNS, or the label that its template puts before the beat ("Beat:") at the start of
    a line, stands in it more often than the author's own rate explains: of c occurrences in w words,
    P(X ≥ c) < 0.01 for X ~ Poisson(w × the author's occurrences a word, train and held-out text together). So one sign
    the author never makes is a leak, and his italics at his rate are none. A generation that failed counts as harm.
    Unmeasured without texts of the author or without generations.

    Passing: "How can I help her?" is 0. Failing: "Sure! Here is a short scene about the sisters:" is 1.
    """
    own = [normalise(text) for text in answers.library.author]
    size = sum(len(words(text)) for text in answers.library.author)
    if not size:
        return Unmeasured(unmeasured="there is no text of the author to tell his own rate from")
    labels = [_label(prompt, beat) for prompt, beat in zip(answers.prompts, answers.beats, strict=True)]
    looked_for = {**_SIGNS, **{label: _line_start(label) for label in set(labels) if label}}
    rates = {kind: _count(pattern, own) / size for kind, pattern in looked_for.items()}

    def leaks(text: str, prompt: int) -> bool:
        plain, length = [normalise(text)], len(answers.tokens[text])
        kinds = [*_SIGNS, labels[prompt]] if labels[prompt] else [*_SIGNS]
        counts = {kind: _count(looked_for[kind], plain) for kind in kinds}
        return any(count and pdtrc(count - 1, rates[kind] * max(length, 1)) < ALPHA for kind, count in counts.items())

    made_by = signature("template_leak@1", signs="signs@1", alpha=ALPHA, own_words=size)
    return figures(made_by, "higher", each(answers, leaks))


def _count(pattern: re.Pattern[str], texts: Iterable[str]) -> int:
    return sum(1 for text in texts for _ in pattern.finditer(text))


def _label(prompt: str, beat: str) -> str:
    """What stands before the beat in its line of the prompt, when it holds a word; else nothing."""
    before = normalise(prompt.rpartition(beat)[0]).rpartition("\n")[2].strip()
    return before if words(before) else ""


def _line_start(label: str) -> re.Pattern[str]:
    return re.compile(rf"{_START}{re.escape(label)}", re.IGNORECASE | re.MULTILINE)
