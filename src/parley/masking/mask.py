"""The mask of one match: recorded names are replaced in all that the referee delivers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from parley.masking.folding import ENCODED, decode_character, fold_for_search
from parley.masking.spans import Roster, Span, Spared, closed_words, find_spans, find_spared

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
    def spared(self) -> Spared:
        """What the task, its prompts or its item names."""
        return find_spared(self._words_of_task(), self._roster)

    def find(self, text: str) -> list[Span]:
        """The names in a reply that others do not read."""
        found = find_spans(text, self._roster)
        return find_spans(text, self._roster, self.spared) if found and any(self.spared) else found


def words_at(text: str, spans: Sequence[Span]) -> list[str]:
    """The names in a reply as they were written, each once."""
    return list(dict.fromkeys(text[span.start : span.end] for span in spans))


def hidden_words(text: str, spans: Sequence[Span]) -> list[str]:
    """The names in a reply as others might read them: as written and in capitals, with escapes of
    JSON and entities decoded, without markup and look-alikes, and escaped as in JSON, because a
    rule may decode, clean and encode what it hands on."""
    forms = list[str]()
    for word in words_at(text, spans):
        decoded = ENCODED.sub(decode_character, word)
        plain = fold_for_search(word, closed_words(())).text
        forms += (word, word.upper(), decoded, plain, json.dumps(decoded)[1:-1])
    return list(dict.fromkeys(forms))


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
            for word in hidden_words(text, [span]):
                known = self._words.get(word, span.roles)
                both = (*known, *span.roles) if known and span.roles else ()
                self._words[word] = tuple(dict.fromkeys(both))

    def hide(self, text: str, role: str = "") -> str:
        """The referee's words as a role may read them; without a role, as everybody may."""
        words = (word for word, roles in self._words.items() if not roles or role in ("", *roles))
        return hide_words(text, tuple(words))

    @staticmethod
    def hide_own(text: str, said: str, spans: Sequence[Span]) -> str:
        """Words about one reply, for the seat that gave it: they do not depend on others."""
        return hide_words(text, tuple(hidden_words(said, spans)))


def hide_words(text: str, words: tuple[str, ...]) -> str:
    """Replace words wherever they stand by themselves."""
    return compile_hidden(words).sub(MASK, text) if words else text


@lru_cache(maxsize=256)
def compile_hidden(words: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for words, the longest first. Words with the same bounds share them: a reply may
    have thousands of names."""
    groups: dict[tuple[str, str], list[str]] = {}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        groups.setdefault(bounds_of(word), []).append(write_hidden(word))
    return re.compile(
        "|".join(
            f"{before}(?:{'|'.join(patterns)}){after}"
            for (before, after), patterns in groups.items()
        )
    )


def bounds_of(word: str) -> tuple[str, str]:
    """What stands before and after a word by itself. In scripts without spaces it stands within
    others; an escape of JSON may stand before it."""
    word = word.strip()
    before = (
        r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))" if word[:1].isascii() and word[:1].isalnum() else ""
    )
    after = r"(?![A-Za-z0-9])" if word[-1:].isascii() and word[-1:].isalnum() else ""
    return before, after


def write_hidden(word: str) -> str:
    """A pattern for a word: a rule may have wrapped it, or set it on one line."""
    return r"\s+".join(map(re.escape, word.split())) or re.escape(word)
