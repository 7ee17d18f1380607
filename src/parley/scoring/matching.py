"""When a guess names a word: by spelling, by its other names, or nearly so (AGE §3.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from unicodedata import category, normalize

NEAR = 0.8  # Jaro similarity above which two spellings are one word
BASIS = f"jaro>{NEAR:g},synonyms,folded"  # as it stands in signatures
ARTICLES = ("a", "an", "the")
LISTED = re.compile(r"[,;/|\\\n]|\bor\b|、|，|；|或")  # between words, of which only one may be named
UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")  # scripts that put nothing between words
MARKS = re.compile(r"[\u0300-\u036f]")


@lru_cache(4096)
def folded(text: str) -> str:
    """A word or phrase without what does not matter: case, width, accents, marks, an article before it, a plural."""
    words = words_of(text)
    if len(words) > 1 and words[0] in ARTICLES:
        words = words[1:]
    return " ".join([*words[:-1], singular(words[-1])]) if words else ""


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without accents and marks."""
    if text.isascii():
        return re.findall(r"[a-z]+|[0-9]+", re.sub(r"(?<=\w)'(?=\w)", "", text.lower()))
    shown = "".join(mark for mark in normalize("NFKC", text) if category(mark) != "Cf")  # invisible marks hide nothing
    bare = MARKS.sub("", normalize("NFD", normalize("NFKC", shown.casefold())))
    return re.findall(r"[^\W\d_]+|\d+", normalize("NFC", re.sub(r"(?<=\w)['’](?=\w)", "", bare)))


def singular(word: str) -> str:
    """An English word without the ending of its plural; words that only look like one lose no more than they can spare."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ches", "shes", "sses", "xes", "zes")) else word[:-1]


def similarity(one: str, other: str) -> float:
    """Jaro's similarity of two spellings, folded; from 0 to 1."""
    from rapidfuzz.distance import Jaro

    return Jaro.similarity(folded(one), folded(other))


def matches(guess: str, names: Sequence[str]) -> bool:
    """Whether a guess names a word: it is one of its names, or nearly the first of them; a list of words names none."""
    said = joined(folded(guess))
    if not said or not names:
        return False
    if any(said == joined(folded(name)) for name in names):
        return True
    return not LISTED.search(guess.strip().casefold()) and similarity(guess, names[0]) > NEAR


def alike(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, str] | None:
    """Names of two words that a guess could not tell apart, if there are any."""
    for one, other in product(ours, theirs):
        near = similarity(one, other) > NEAR and (one == ours[0] or other == theirs[0])
        if near or joined(folded(one)) == joined(folded(other)):
            return one, other
    return None


def mentions(text: str, word: str) -> bool:
    """Whether a text says a word: in any case, width or number, in one piece or in several."""
    wanted = joined(folded(word))
    if not wanted:
        return False
    words = words_of(text)
    if UNSPACED.search(wanted):
        return wanted in "".join(words)
    return any(says(words[start:], wanted) for start in range(len(words)))


def says(words: list[str], wanted: str) -> bool:
    """Whether the first words, put together, are the wanted one."""
    found = ""
    for word in words:
        if wanted in (found + word, found + singular(word)):
            return True
        found += word
        if len(found) >= len(wanted):
            break
    return False


def joined(phrase: str) -> str:
    return phrase.replace(" ", "")
