"""Decide whether a guess names a word: by spelling, synonyms or similarity (AGE §3.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from unicodedata import category, normalize

from parley.tasks._common.plurals import possible_singulars

NEAR = 0.8  # Jaro similarity above which two spellings count as one word
BASIS = f"jaro>{NEAR:g},synonyms,folded"  # part of signatures
ARTICLES = ("a", "an", "the")
# separators: a guess may name only one word
LISTED = re.compile(r"[,;/|\\\n&、，；或]|(?<=\w)\s*\+\s*(?=\w)|\b(?:and|or)\b")
# scripts without spaces between words
UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
MARKS = re.compile(r"[\u0300-\u036f]")
PLURAL_S = re.compile(r"(?<=\w[^s])s$")
LONGER = 4  # maximum number of letters that a plural adds


@lru_cache(4096)
def fold_phrase(text: str) -> str:
    """A word or phrase without case, width, accents, punctuation and leading articles."""
    words = split_words(text)
    while len(words) > 1 and words[0] in ARTICLES:
        words = words[1:]
    return " ".join(words)


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, without accents and punctuation."""
    if text.isascii():
        return re.findall(r"[a-z]+|[0-9]+", re.sub(r"(?<=\w)'(?=\w)", "", text.lower()))
    # remove invisible characters
    shown = "".join(mark for mark in normalize("NFKC", text) if category(mark) != "Cf")
    bare = MARKS.sub("", normalize("NFD", normalize("NFKC", shown.casefold())))
    return re.findall(r"[^\W\d_]+|\d+", normalize("NFC", re.sub(r"(?<=\w)['’](?=\w)", "", bare)))


@lru_cache(4096)
def possible_spellings(phrase: str) -> frozenset[str]:
    """Spellings of a folded phrase without spaces: as it is, and with the first or last word in a
    possible singular."""
    words = phrase.split() or [""]
    before, after = "".join(words[:-1]), "".join(words[1:])
    found = {before + one for one in possible_singulars(words[-1])} | {
        one + after for one in possible_singulars(words[0])
    }
    # l e a v e s
    return frozenset(
        found | possible_singulars(before + words[-1]) if len(words[-1]) == 1 else found
    )


def jaro_similarity(one: str, other: str) -> float:
    """Jaro similarity of two spellings, folded and without a plural s; from 0 to 1."""
    from rapidfuzz.distance import Jaro

    return Jaro.similarity(PLURAL_S.sub("", fold_phrase(one)), PLURAL_S.sub("", fold_phrase(other)))


def names_word(guess: str, names: Sequence[str], others: Sequence[str] = ()) -> bool:
    """Whether a guess is one of a word's names, or similar to the first of them.

    A guess that lists several words names none. Neither does a guess that mentions one of the
    `others`, the names of the other word.
    """
    if not fold_phrase(guess) or not names:
        return False
    if any(is_same_phrase(guess, name) for name in names):
        return True
    listed = set(LISTED.findall(guess.strip().casefold())) - set(
        LISTED.findall(names[0].casefold())
    )
    return (
        not listed
        and not any(mentions_word(guess, other) for other in others)
        and jaro_similarity(guess, names[0]) > NEAR
    )


def is_same_phrase(one: str, other: str) -> bool:
    """Whether two phrases are the same after folding, in singular or plural."""
    return not possible_spellings(fold_phrase(one)).isdisjoint(
        possible_spellings(fold_phrase(other))
    )


def find_confusable(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, str] | None:
    """A name of each word, if there are two that a guess could not tell apart."""
    for one, other in product(ours, theirs):
        near = jaro_similarity(one, other) > NEAR and (one == ours[0] or other == theirs[0])
        if near or is_same_phrase(one, other):
            return one, other
    return None


def mentions_word(text: str, word: str) -> bool:
    """Whether a text contains a word: in any case or width, singular or plural, also if split."""
    wanted = possible_spellings(fold_phrase(word)) - {""}
    if not wanted:
        return False
    words = split_words(text)
    if UNSPACED.search(word):
        return any(each in "".join(words) for each in wanted)
    longest = max(map(len, wanted)) + LONGER
    return any(
        begins_with_word(words[start : start + longest], wanted, longest)
        for start in range(len(words))
    )


def begins_with_word(words: list[str], wanted: frozenset[str], longest: int) -> bool:
    """Whether the first words, joined, are the wanted one."""
    length = 0
    for end, word in enumerate(words, 1):
        length += len(word)
        if length > longest:
            return False
        if not wanted.isdisjoint(possible_spellings(" ".join(words[:end]))):
            return True
    return False
