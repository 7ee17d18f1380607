"""The mask of one match: recorded names are replaced in all that the referee delivers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from parley.masking.names import plain_word
from parley.masking.spans import Roster, Span, families_in, find_spans

MASK = "[name withheld]"
LONGEST_DETAIL = 200  # characters of the names in a violation
UNSEEN = (
    "No rule can see a name in leetspeak, backwards, encoded or in an acrostic, nor an allusion, a "
    "tone, a knowledge cut-off or a sign agreed on before."
)


class NameFinder:
    """Finds the names in the replies of one match; those that its task names stay."""

    def __init__(self, roster: Roster, words_of_task: Callable[[], str]) -> None:
        self._roster, self._words_of_task = roster, words_of_task

    @cached_property
    def spared(self) -> frozenset[str]:
        """The families that the task, its prompts or its item names, and the run's own names."""
        words = self._words_of_task()
        plain = plain_word(words.lower())
        return families_in(words) | {name for name, _ in self._roster.own if name in plain}

    def find(self, text: str) -> list[Span]:
        """The names in a reply that others do not read."""
        if not find_spans(text, self._roster):
            return []
        return find_spans(text, self._roster, self.spared)


def words_at(text: str, spans: Sequence[Span]) -> list[str]:
    """The names in a reply as they were written, each once."""
    return list(dict.fromkeys(text[span.start : span.end] for span in spans))


def mask_spans(text: str, spans: Sequence[Span]) -> str:
    """A reply as others read it."""
    pieces, done = list[str](), 0
    for span in spans:
        pieces += (text[done : span.start], MASK)
        done = span.end
    return "".join((*pieces, text[done:]))


def describe_spans(text: str, spans: Sequence[Span]) -> str:
    """The names in a reply that nobody else reads, for a violation."""
    names = ", ".join(words_at(text, [span for span in spans if not span.roles]))
    return names if len(names) <= LONGEST_DETAIL else f"{names[: LONGEST_DETAIL - 1]}…"


class MatchMask:
    """The names that are on record in a match so far."""

    def __init__(self) -> None:
        # by word, the roles that do not read it; empty: all
        self._words: dict[str, tuple[str, ...]] = {}

    def add(self, text: str, spans: Sequence[Span]) -> None:
        """From now on hide the names of a reply."""
        for span in spans:
            word = text[span.start : span.end]
            if self._words.get(word) != ():
                self._words[word] = span.roles

    def hide(self, text: str, role: str = "") -> str:
        """The referee's words as a role may read them; without a role, as everybody may."""
        words = (word for word, roles in self._words.items() if not roles or role in ("", *roles))
        return hide_words(text, tuple(words))

    @staticmethod
    def hide_own(text: str, said: str, spans: Sequence[Span]) -> str:
        """Words about one reply, for the seat that gave it: they do not depend on others."""
        return hide_words(text, tuple(words_at(said, spans)))


def hide_words(text: str, words: tuple[str, ...]) -> str:
    """Replace words wherever they stand by themselves."""
    return compile_hidden(words).sub(MASK, text) if words else text


@lru_cache(maxsize=256)
def compile_hidden(words: tuple[str, ...]) -> re.Pattern[str]:
    longest = sorted(words, key=lambda word: (-len(word), word))
    return re.compile("|".join(map(bound_word, longest)))


def bound_word(word: str) -> str:
    """A pattern for a word. In scripts without spaces it stands within others."""
    before = r"(?<![A-Za-z0-9])" if word[:1].isascii() and word[:1].isalnum() else ""
    after = r"(?![A-Za-z0-9])" if word[-1:].isascii() and word[-1:].isalnum() else ""
    return f"{before}{re.escape(word)}{after}"
