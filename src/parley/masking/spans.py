"""Finds names of models and makers in a reply: which parts of it other seats do not read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from parley.masking.folding import fold_for_search
from parley.masking.names import all_spellings, plain_word

TIERS = (
    "advanced|air|base|chat|code|coder|core|experimental|exp|fast|flash|haiku|heavy|instant|"
    "instruct|it|large|lightning|lite|live|maverick|max|medium|micro|mini|nano|nemo|omni|opus|plus|"
    "premier|preview|pro|reasoner|reasoning|scout|small|sonnet|thinking|tiny|turbo|ultra|vision"
)
# What may follow a name: 2.5, -4.1, 3B, Pro, -instruct, -2024-05-13.
VERSION = rf"(?:[-_ .]?v?\d[a-z0-9]{{0,9}}(?:\.\d{{1,3}})*|[-_ ]?(?:{TIERS})(?![a-z]))"
DECLINED = "(?:ами|ом|ем|ой|ою|ью|[аеиуыьюя])?(?![а-яё])"
# What may follow a name in Korean within one word.
PARTICLES = "[은는이가을를의와과도에로야]|입니|예요|라고|한테|처럼|부터|까지|만"
PREFIX = "meta"  # of many words: Meta-analysis
SMALLEST = 3  # characters of a name of this run


class Span(NamedTuple):
    """A name in a text: where it stands, and its family."""

    start: int
    end: int
    family: str
    # The roles that do not read it; empty: all. Where a recorded match is judged again, a name of
    # the new judges' family stays for those who had read it then.
    roles: tuple[str, ...] = ()


class Spared(NamedTuple):
    """What a task names, and what therefore stays: families, and single words. An ordinary word
    that is no name in the task ("palm oil") spares only itself."""

    families: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


NOTHING_SPARED = Spared()


@dataclass(frozen=True)
class Roster:
    """Who plays: the families of the models of a run, and their own names, each with its family."""

    families: frozenset[str] = frozenset()
    own: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, models: Iterable[str]) -> Roster:
        """The roster of models, each with its name at its provider (`org/Name-7B`)."""
        families, own = set[str](), dict[str, str]()
        for model in models:
            found = families_in(model)
            families |= found
            whole = model.rstrip("/").rpartition("/")[2].lower()
            # the tag of a local model or a revision is seldom said: zorb-7b:latest, zorb-7b@main
            for name in dict.fromkeys((whole, re.split("[:@]", whole)[0])):
                if len(name) >= SMALLEST and re.search("[a-z]", name) and re.search(r"[\d-]", name):
                    own[plain_word(name)] = min(families_in(whole) or found, default=whole)
        return cls(frozenset(families | set(own.values())), tuple(sorted(own.items())))


def families_in(text: str) -> frozenset[str]:
    """The families that a text names, also by ordinary words and in small letters."""
    lowered = lower_text(fold_for_search(text, closed_words(())).text)
    return frozenset(
        family_of(found, ()) for found in find_matches(lowered, present_words(lowered, ()))
    )


def find_spared(text: str, roster: Roster) -> Spared:
    """What the words of a task, its prompts and its item spare."""
    folded = fold_for_search(text, closed_words(roster.own)).text
    lowered, ordinary = lower_text(folded), ordinary_words()
    families, words = set[str](), set[str]()
    for found in find_matches(lowered, present_words(lowered, roster.own)):
        words.add(found.word)
        if found.word in family_by_word() and (
            found.word not in ordinary or is_name(folded, found)
        ):
            families.add(family_by_word()[found.word])
    return Spared(frozenset(families), frozenset(words))


class Found(NamedTuple):
    """A spelling in a folded text, with its version."""

    start: int
    end: int
    word: str
    version: str


def find_spans(text: str, roster: Roster, spared: Spared = NOTHING_SPARED) -> list[Span]:
    """The names in a reply that others do not read.

    An ordinary word counts only if a model of its family plays. But as soon as one name is hidden,
    all names of the table are: who lists names would otherwise learn from what is missing who
    plays.
    """
    folded = fold_for_search(text, closed_words(roster.own))
    lowered = lower_text(folded.text)
    words = present_words(lowered, roster.own)
    if not words:
        return []
    ordinary = ordinary_words()
    own = dict(roster.own)
    certain, possible = list[tuple[Found, str]](), list[tuple[Found, str]]()
    every = list(find_matches(lowered, words))
    starts = {found.start for found in every}
    for found in every:
        family = family_of(found, roster.own)
        if family in spared.families:
            continue
        if found.word in spared.words and not re.search(r"\d", found.version):
            continue
        if found.word in own and is_phrase(lowered[found.start : found.end], family):
            continue
        if found.word in own or found.word not in ordinary:
            certain.append((found, family))
        elif is_name(folded.text, found, is_last=found.end + 1 not in starts):
            (certain if family in roster.families else possible).append((found, family))
    if not certain:
        return []
    hidden = sorted((*certain, *possible), key=lambda each: each[0].start)
    return [Span(*folded.original_span(found.start, found.end), family) for found, family in hidden]


def is_name(text: str, found: Found, *, is_last: bool = True) -> bool:
    """Whether an ordinary word is a name where it stands: it has a version, or a capital where its
    script has capitals, and is no part of a longer name. Another name of the table may follow
    ("Google Gemini"): then it is not the last."""
    if text[max(0, found.start - 1) : found.start] == "-":
        return False
    if re.search(r"\d", found.version) or found.version.startswith("-"):
        return True
    first = text[found.start]
    if first.lower() != first.upper() and not first.isupper():
        return False
    if not is_last:
        return True
    after = text[found.end : found.end + 3]
    if found.word == PREFIX and re.match("-[a-z]", after):
        return False
    return not re.match(r"[^\S\n][A-ZÀ-ÞА-ЯЁ][a-zß-ÿа-яё]|-[A-ZÀ-ÞА-ЯЁ]", after)


def is_phrase(written: str, family: str) -> bool:
    """Whether a name of the run's own models is only words where it stands: `my-model` is a name,
    "my model" is not."""
    return family not in family_by_word().values() and not re.search(r"[\d_-]", written)


def find_matches(lowered: str, words: tuple[str, ...]) -> Iterable[Found]:
    """Where these words stand in a text in small letters, the longest first."""
    for found in compile_words(words).finditer(lowered) if words else ():
        word = found[found.lastgroup or 0]
        yield Found(*found.span(), plain_word(word), found[0][len(word) :])


def family_of(found: Found, own: tuple[tuple[str, str], ...]) -> str:
    return dict(own).get(found.word) or family_by_word()[found.word]


@cache
def family_by_word() -> Mapping[str, str]:
    return {each.word: each.family for each in reversed(all_spellings())}


@cache
def ordinary_words() -> frozenset[str]:
    return frozenset(each.word for each in all_spellings() if each.is_ordinary)


@lru_cache(maxsize=64)
def words_of(own: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Every word that is looked for, the longest first."""
    words = {*(name for name, _ in own), *family_by_word()}
    return tuple(sorted(words, key=lambda word: (-len(word), word)))


@lru_cache(maxsize=64)
def closed_words(own: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """The names as letters alone: what spaced letters or look-alikes may make up."""
    words = {re.sub("[^a-z]", "", word) for word in words_of(own)}
    return frozenset(word for word in words if len(word) >= SMALLEST)


def present_words(lowered: str, own: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The words that a text contains. Almost no text has one, so this has to be fast."""
    plain = plain_word(lowered)
    return tuple(word for word in words_of(own) if word in plain)


@lru_cache(maxsize=1024)
def compile_words(words: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for words with their versions."""
    latin, russian, others = list[str](), list[str](), list[str]()
    for word in words:
        if word[0].isascii():
            latin.append(write_word(word))
        elif "а" <= word[0] <= "я":
            russian.append(write_word(word))
        elif re.match("[ァ-ヺー]", word):
            others.append(f"(?<![ァ-ヺー]){write_word(word)}(?![ァ-ヺー])")
        elif re.match("[가-힣]", word):
            others.append(f"(?<![가-힣]){write_word(word)}(?![가-힣])")
            others.append(f"(?<![가-힣]){write_word(word)}(?={PARTICLES})")
        else:
            others.append(write_word(word))
    kinds = [
        rf"(?<![a-z0-9])(?P<latin>{'|'.join(latin)})" if latin else "",
        rf"(?<![а-яё])(?P<russian>{'|'.join(russian)}){DECLINED}" if russian else "",
        f"(?P<other>{'|'.join(others)})" if others else "",
    ]
    more = r"(?:(?<=\d)(?:-[a-z0-9.]{1,12}){1,3})?"  # of a version: -it-q4
    ends = r"(?:(?<![a-z0-9])|(?=s?(?![a-z0-9])))"
    return re.compile(f"(?:{'|'.join(filter(None, kinds))})(?:{VERSION}){{0,5}}{more}{ends}")


def write_word(word: str) -> str:
    """A pattern for a word: its parts may be joined by a hyphen, an underscore or a space."""
    return re.escape(word).replace(r"\ ", r"[\s_-]{1,2}")


def lower_text(text: str) -> str:
    """A text in small letters, character by character, so that places stay."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)
