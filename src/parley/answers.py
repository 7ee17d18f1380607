"""How answers to questions are read from free text: the letter of a choice, a number, a few words."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random
from typing import Any
from unicodedata import normalize

import orjson

from parley.errors import Unreadable
from parley.expect import Said
from parley.material import LETTERS, Question
from parley.parsing import objects_in
from parley.task import Prompt

NUMERAL = re.compile(r"(?<![\w.])[-−+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,40})(?:\.\d{1,40}|/[1-9]\d{0,9})?(?!\d)")
# What announces an answer, and the signs that may stand around it.
STATED = re.compile(
    r"(?:####|\\boxed\{(?:\\text\{)?|\banswer\b(?:\s+(?:is|would\s+be|should\s+be|must\s+be))?"
    r"(?:\s+(?:the\s+)?(?:letter|option|choice)\b)?|(?:答案|故选|应选|应该选|我选|选择|(?<!不)选)(?:应该|应)?(?:是|为)?(?:选项)?)"
    r"[\s:：*_`\"'=]{0,20}",
    re.IGNORECASE,
)
OPENING, CLOSING = r"[\s(\[{（【「“\"'*_`$]*", r"[\s)\]}）】」”\"'*_`$.。!！]*"
SIGNS = " \t\r\n()[]{}（）【】「」“”\"'*_`$.。!！,;:"
ALONE = re.compile(rf"{OPENING}([A-Za-z]){CLOSING}")
LEADING = re.compile(r"[(\[（【「“\"'*_`$]*([A-Z]|[a-z](?=\)))(?:[)\]）】」”\"'*_`$]*[.:：、)\]）】]|[)\]）】」”\"'*_`$]+)(?!\w)")
MENTIONED = re.compile(r"(?<![\w'’])(?!A\s+(?!or\b|and\b|is\b)[a-z]|I\b)([A-Z])(?![\w'’])")  # no article, no pronoun
MARKED = re.compile(r"[(\[（【*]([A-Z])[)\]）】*]")
ANOTHER = re.compile(rf"{CLOSING}(?:,|/|、|\bor\b|\band\b|或|和|与){OPENING}([A-Z])(?![\w'’])")
DENIED = re.compile(r"\b(?:not|never|wrong|incorrect|neither|nor)\b|n['’]t\b|不|非|错", re.IGNORECASE)
ANNOUNCEMENTS, LONGEST_ANSWER = 64, 500  # of one reply, and characters of each, that are looked at
KEYS = ("answer", "choice", "option", "letter", "答案")
ARTICLES = re.compile(r"\b(?:a|an|the)\b")


@dataclass(frozen=True)
class Option:
    """One of several choices, by its letter or its whole text; what names two of them is unreadable."""

    choices: tuple[str, ...]
    hint: str = "Answer with the letter of the right choice."
    again: Prompt | None = None  # how it is asked for again, in another language say
    schema: None = None

    @property
    def letters(self) -> str:
        return LETTERS[: len(self.choices)]

    @cached_property
    def texts(self) -> dict[str, set[str]]:
        """The letters of each text; a published question may have a choice twice."""
        found: dict[str, set[str]] = {}
        for letter, text in zip(self.letters, self.choices, strict=True):
            found.setdefault(plain(text), set()).add(letter)
        return found

    def read(self, text: str) -> str:
        words = normalize("NFKC", text).strip()
        if (whole := ALONE.fullmatch(words)) and whole[1].upper() in self.letters:
            return whole[1].upper()
        for found in (self.in_object(words), self.stated(words), self.leading(words), self.mentioned(words)):
            if len(found) == 1:
                return Said(*found)
            if found:
                raise Unreadable(f"it names more than one choice: {', '.join(sorted(found))}")
        raise Unreadable(f"it names no choice from A to {self.letters[-1]}")

    def in_object(self, words: str) -> set[str]:
        """What a JSON object says."""
        said = said_in_object(words)
        return self.meant(str(said)) if said is not None else set()

    def stated(self, words: str) -> set[str]:
        """What is announced as the answer; the last announcement counts."""
        return next(filter(None, (self.meant(rest) for rest in announced(words))), set())

    def meant(self, said: str) -> set[str]:
        """The choices that these words begin with, or are."""
        if found := self.texts.get(plain(said)):
            letter = ALONE.fullmatch(said)
            return found if letter is None or letter[1].upper() not in self.letters else {letter[1].upper()}
        first = re.match(rf"{OPENING}([{self.letters}])(?![\w'’])", said)
        if first is None:
            lone = ALONE.fullmatch(said)
            return {lone[1].upper()} if lone and lone[1].upper() in self.letters else set()
        if another := ANOTHER.match(said, first.end()):
            return {first[1], another[1]}
        return {first[1]} | self.texts.get(plain(said[first.end() :]), set())

    def leading(self, words: str) -> set[str]:
        """What lines begin with, like `B. Paris`, or are, like `Paris`; where both are said they must agree."""
        found = set()
        for line in words.splitlines():
            begun = LEADING.match(line.strip()) or ALONE.fullmatch(line)
            if begun and begun[1].upper() in self.letters:
                found |= {begun[1].upper()} | self.texts.get(plain(line.strip()[begun.end() :]), set())
            else:
                found |= self.texts.get(plain(line), set())
        return found

    def mentioned(self, words: str) -> set[str]:
        """The letters in the last line, unless it denies something."""
        last = words.splitlines()[-1] if words else ""
        return set() if DENIED.search(last) else {*MARKED.findall(last), *MENTIONED.findall(last)} & set(self.letters)

    def write(self, value: Any, reason: str = "") -> str:
        return str(value)

    def sample(self, rng: Random) -> str:
        return rng.choice(self.letters)


@dataclass(frozen=True)
class Weighed(Option):
    """The choice whose letter a model finds the likeliest beginning of its reply: a reply is the log-probabilities of letters."""

    def weigh(self, tokens: Mapping[str, float]) -> str:
        """The reply that these tokens make; what begins with a letter in any spelling counts for it."""
        chances: dict[str, float] = {}
        for token, chance in tokens.items():
            letter = token.strip(SIGNS)
            if len(letter) == 1 and letter in self.letters:
                chances[letter] = chances.get(letter, 0.0) + math.exp(chance)
        return orjson.dumps({letter: math.log(chances[letter]) for letter in sorted(chances) if chances[letter]}).decode()

    def read(self, text: str) -> Likeliest:
        found = next((each for _, _, each in objects_in(text)), {})
        chances = {letter: found[letter] for letter in self.letters if isinstance(found.get(letter), int | float)}
        best = [letter for letter, chance in chances.items() if chance == max(chances.values())]
        if len(best) != 1:
            raise Unreadable("no letter is the likeliest" if best else "no letter is among the likeliest beginnings of the reply")
        weights = {letter: math.exp(chance - chances[best[0]]) for letter, chance in chances.items()}
        return Likeliest(best[0], {letter: weight / sum(weights.values()) for letter, weight in weights.items()})

    def write(self, value: Any, reason: str = "") -> str:
        return orjson.dumps({str(value): 0.0}).decode()


class Likeliest(str):
    """The letter that a model finds the likeliest, and how likely each is among the letters of all choices."""

    shares: Mapping[str, float]

    def __new__(cls, letter: str, shares: Mapping[str, float]) -> Likeliest:
        made = super().__new__(cls, letter)
        made.shares = shares
        return made


@dataclass(frozen=True)
class Exact:
    """A number or a few words, after any reasoning: what is announced as the answer, or stands alone.

    How a reply is read does not depend on the right answer, so that nothing can be learnt from being asked again.
    """

    hint: str = "End with a line that says `Answer:` and then the answer alone."
    again: Prompt | None = None
    schema: None = None

    def read(self, text: str) -> Said:
        words = normalize("NFKC", text).strip()
        found = said_in_object(words)
        said = str(found) if found is not None else next(filter(None, (each.strip(SIGNS) for each in announced(words))), "")
        if said.strip():
            return Said(said.strip())
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        if len(lines) == 1:
            return Said(lines[0][-LONGEST_ANSWER:])
        if lines and (last := only_number(lines[-1][-LONGEST_ANSWER:])):
            return Said(last)
        raise Unreadable("it does not say which answer it gives")

    def write(self, value: Any, reason: str = "") -> str:
        return f"{reason}\nAnswer: {value}".strip()

    def sample(self, rng: Random) -> Said:
        return Said(str(rng.randint(0, 100)))


def announced(words: str) -> Iterator[str]:
    """What follows an announcement on its line, the last first."""
    for end in reversed(deque((found.end() for found in STATED.finditer(words)), maxlen=ANNOUNCEMENTS)):
        yield words[end : end + LONGEST_ANSWER].partition("\n")[0]


def said_in_object(words: str) -> Any:
    """The answer in the last JSON object that has one."""
    found = (each[key] for _, _, each in objects_in(words) for key in KEYS if key in each)
    return next((said for said in found if isinstance(said, str | int | float)), None)


def number(text: str) -> Fraction | None:
    """The number that a text is, whatever its signs: thousands commas, a currency, per cent."""
    words = normalize("NFKC", text).strip().strip("$€£¥%*_` ").removesuffix(".").strip()
    if not NUMERAL.fullmatch(words):
        return None
    return Fraction(words.replace(",", "").replace("−", "-"))


def numeral(text: str) -> str:
    """A number in its plain spelling, nothing where it is none: 1,234.50 is 1234.5."""
    found = number(text)
    if found is None:
        return ""
    places = next((n for n in range(41) if (found * 10**n).denominator == 1), None)
    if places is None:
        return str(found)
    digits = f"{abs(found) * 10**places}".zfill(places + 1)
    whole = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{whole}" if found < 0 else whole


def plain(text: str) -> str:
    """Words without case, articles and the signs around them."""
    words = normalize("NFKC", text).strip(SIGNS).casefold()
    return " ".join(ARTICLES.sub(" ", words).split()) or words


def only_number(words: str) -> str:
    """The one number in some words, after the last sign of equality; nothing where there is none, or more than one."""
    found = {numeral(each) for each in NUMERAL.findall(words.rpartition("=")[2])}
    return found.pop() if len(found) == 1 else ""


def same(said: str, answer: str) -> bool:
    """Whether an answer is the right one: the same words, or the same number and no other."""
    wanted, mine = number(answer), number(said) if number(said) is not None else number(only_number(said))
    return plain(said) == plain(answer) or (wanted is not None and wanted == mine)


def is_right(said: str | None, item: Question) -> bool:
    """Whether a question is answered right. Words that a limit of length has cut are no answer; a letter alone is whole."""
    if said is None or getattr(said, "cut", False):
        return False
    return said == item.answer if item.choices else same(said, item.answer)


WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+(?:['’-]\w+)*")
GIVEN = re.compile(
    r"\b(?:(?:correct|right|actual|true) )?(?:answer|option|choice)(?: to [^.?!\n]{1,80}?)? (?:is|was|would be|should be)\b"
    r"(?: (?:option|choice))?|(?:正确(?:的)?)?(?:答案|选项)(?:是|为|应该是|应为)"
    r"|\b(?:you(?:'re| are) right|no|yes|indeed)\b[^.?!\n]{0,20}\bit is\b",
    re.IGNORECASE,
)
CONFIRMED = r"{}[\"”’']? (?:is|was) (?:the )?(?:correct|right)\b"


def words_in(text: str) -> int:
    """How many words a text has; a Chinese character counts as one."""
    return len(WORD.findall(text))


def gives_away(said: str, right: str, letter: str = "") -> bool:
    """Whether words announce the right answer as such; to mention a choice, or to ask about it, is not to give it away."""
    named = rf"(?<!\w){re.escape(right)}(?!\w)"
    spelt = rf"\W{{0,3}}{letter}(?![\w'’])" if letter else r"(?!)"  # the letter as it is written, which no article is
    for found in GIVEN.finditer(said):
        rest = re.split(r"[.?!\n。？！]", said[found.end() : found.end() + 200])[0]
        there = re.match(spelt, rest) or re.search(named, rest, re.IGNORECASE)
        if there and not DENIED.search(rest[: there.start()]):
            return True
    told = [
        each for each in re.findall(r"[^.?!\n。？！]+[.?!\n。？！]?", said) if each[-1] not in "?？" and not DENIED.search(each)
    ]
    confirmed = re.compile(CONFIRMED.format(named), re.IGNORECASE), re.compile(CONFIRMED.format(rf"\b{letter or '(?!)'}"))
    return any(pattern.search(each) for pattern in confirmed for each in told)
