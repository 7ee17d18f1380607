"""Read answers to questions from free text: the letter of a choice, a number, or a few words."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import orjson

from parley import Prompt, Question, ReplyText
from parley.errors import Unreadable
from parley.rules.items.question import LETTERS
from parley.rules.numerals import (
    DENIED,
    LONGEST_ANSWER,
    find_only_number,
    fold_widths,
    is_same_answer,
    normalise_words,
)
from parley.rules.parsing import find_objects

DECORATION = re.compile(r"^[\s*_`]+|(?:\s|\*\*|__|`)+$|\.$")
OPENING, CLOSING = r"[\s(\[{（【「“\"'*_`$]{0,20}", r"[\s)\]}）】」”\"'*_`$.。!！]{0,20}"
SIGNS = " \t\r\n()[]{}（）【】「」“”\"'*_`$.。!！,;:"
ALONE = re.compile(rf"{OPENING}([A-Za-z]){CLOSING}")
LEADING = re.compile(
    r"[(\[（【「“\"'*_`$]*([A-Z]|[a-z](?=\)))(?:[)\]）】」”\"'*_`$]*[.:：、)\]）】]|[)\]）】」”\"'*_`$]+)(?!\w)"
)
LETTER = r"(?!A\s+(?!or\b|and\b|is\b)[a-z]|I\b)([A-Z])(?![\w'’])"  # no article, no pronoun
MENTIONED = re.compile(rf"(?<![\w'’]){LETTER}")
MARKED = re.compile(r"[(\[（【*]([A-Z])[)\]）】*]")
# between a letter and its text
BEHIND = re.compile(r"[)\]}）】」”\"'*_`$]*[.:：、,)-]?[\s*_`]*")


ANOTHER = re.compile(
    rf"(?:[\s)\]}}）】*]{{1,9}}|{CLOSING}(?:[(（\[]\s?)?(?:[,，;；/、&+]|[-=]>|→|\b(?:but\s)?now\b|\bor\b|\band\b|或者?|和|与|及)\s{{0,3}}"
    rf"(?:(?:(?:or|and|maybe|perhaps|possibly|even|also|either)\b|可能是?|也许是?|或者?)\s{{0,3}}){{0,4}}){OPENING}{LETTER}"
)


CORRECTED = re.compile(
    r"\b(?i:no\b(?=[\s,:.;!]*(?:wait|it|the|make|[a-z])\b)|wait|sorry|actually|correction|oops|scratch)\b"
    rf"[^\n]{{0,40}}?(?<![\w'’]){LETTER}"
)


# Words that take a letter back, and letters that are mentioned only to be denied.
FAULT = (
    r"wrong|incorrect|false|mistakes?|mistaken|traps?|errors?|distractors?|impossible|excluded|"
    r"eliminated"
)
RIGHT = r"correct|right|true|answer|it|possible|valid|best|one"
FEW = r"(?:\w{1,30}\s{1,3}){0,3}?"


RETRACTED = re.compile(
    r"[)\]}）】」”\"'*_`$]*\s{0,3}(?:[?？×✗✘❌]|(?:if|unless)\b"
    rf"|[(（:：,.–—-]{{0,2}}\s{{0,3}}(?:(?:{FAULT})\b(?=\W{{0,5}}(?:\Z|[).,;\n]))|错误?(?!\w))"
    r"|[,，]?\s{0,3}(?:(?:but|and|it|this|that|which)\s{1,3}){0,2}"
    rf"(?:(?:is|was|are|seems|looks|would\s+be|may\s+be|can|could)\s{{1,3}}{FEW}(?:{FAULT}|not\s{{1,3}}{FEW}(?:{RIGHT}))\b"
    r"|(?:is|was|ca|could|wo|would)n['’]t\b|cannot\b|can\s+not\b)"
    r"|选?项?(?:是|也)?(?:错|不|有误)|[,，]\s?(?:这|那|它)个?(?:选项)?(?:显然)?(?:是|也)?(?:错|不|有误))",
    re.IGNORECASE,
)


SUPPOSED = re.compile(
    r"\b(?:if|suppose|assuming|worst|least|opposite)\b|若|如果|假如|假设|要是|有的|同学|[✗✘❌×]|[?？]\W{0,5}\Z",
    re.IGNORECASE,
)


DENIED_LETTERS = re.compile(
    r"(?i:\b(?:not|neither|nor|rather\s{1,3}than|instead\s{1,3}of|except|(?:any|anything|all|every)\b[^.,;\n]{0,30}?\bbut)|n['’]t"
    r"|不(?:能|应|应该|会|可|该)?(?:是|选择?)?)\s{0,3}(?i:(?:the\s{1,3})?(?:answer|option|choice|选项))?"
    r"(?:\s{0,3}(?:,|/|、|\bn?or\b|\band\b|或|和)?\s{0,3}[(（\[*]{0,2}[A-Z](?![\w'’])[)）\]*]{0,2})+"
)


@dataclass(frozen=True)
class LetterChoice:
    """One of several choices, by its letter or its whole text. A reply that names two of them is
    unreadable."""

    choices: tuple[str, ...]
    hint: str = "Answer with the letter of the right choice."
    again: Prompt | None = None  # prompt for a second attempt, in another language say
    schema: None = None

    @property
    def letters(self) -> str:
        return LETTERS[: len(self.choices)]

    @cached_property
    def texts(self) -> dict[str, set[str]]:
        """The letters of each choice text; published questions may contain a choice twice."""
        found: dict[str, set[str]] = {}
        for letter, text in zip(self.letters, self.choices, strict=True):
            found.setdefault(normalise_words(text), set()).add(letter)
        return found

    def read(self, text: str) -> str:
        words = fold_widths(text).strip()
        if (whole := ALONE.fullmatch(words)) and whole[1].upper() in self.letters:
            return whole[1].upper()
        found, around = split_objects(words)
        inside = set[str]().union(
            *(self.letters_meant(str(said)) for each in found for said in each.values())
        )
        lines = drop_choice_list(around.splitlines(), self.letters)
        for named in (
            inside | self.announced_letters(around, STATED, CHOSEN),
            self.announced_letters(around, WEAK),
            leading_letters(lines, self),
            mentioned_letters(lines),
        ):
            if len(named & set(self.letters)) == 1:
                return ReplyText(*named & set(self.letters))
            if named & set(self.letters):
                raise Unreadable(f"it names more than one choice: {', '.join(sorted(named))}")
        raise Unreadable(f"it names no choice from A to {self.letters[-1]}")

    def announced_letters(self, words: str, *patterns: re.Pattern[str]) -> set[str]:
        """The letters announced as the answer; the last announcement counts."""
        return next(
            filter(None, (self.letters_meant(rest) for rest in find_announced(words, *patterns))),
            set(),
        )

    def letters_meant(self, said: str) -> set[str]:
        """The choices that a text begins with or consists of; empty if the text takes them back."""
        letter = ALONE.fullmatch(said)
        if letter and letter[1].upper() in self.letters:
            return {letter[1].upper()}
        if found := self.texts.get(normalise_words(said)):
            return found
        first = re.match(rf"{OPENING}([{self.letters}])(?:(?=选?项)|(?![\w'’]))", said)
        return self.add_other_letters(first[1], said, first.end()) if first else set()

    def add_other_letters(self, letter: str, said: str, end: int) -> set[str]:
        """A letter that is not taken back, the choice whose text follows it, and letters that are
        named beside or instead of it."""
        behind = BEHIND.match(said, end)
        text = self.texts.get(normalise_words(said[behind.end() if behind else end :]), set())
        if letter in text:
            return text if len(text) == 1 else {letter}
        if RETRACTED.match(said, end):
            return set()
        others = ANOTHER.match(said, end), CORRECTED.search(said, end, end + LONGEST_ANSWER)
        return {letter} | text | ({found[1] for found in others if found} & set(self.letters))

    def write(self, value: Any, reason: str = "") -> str:
        return str(value)

    def sample(self, rng: Random) -> str:
        return rng.choice(self.letters)


@dataclass(frozen=True)
class WeighedChoice(LetterChoice):
    """The choice whose letter is the most likely beginning of the reply. The reply is the
    log-probabilities of the letters."""

    def weigh(self, tokens: Mapping[str, float]) -> str:
        """Make the reply from token log-probabilities. Every token that is a letter, in any
        spelling, counts for it."""
        chances: dict[str, float] = {}
        for token, chance in tokens.items():
            letter = token.strip(SIGNS)
            if len(letter) == 1 and letter in self.letters:
                chances[letter] = chances.get(letter, 0.0) + math.exp(chance)
        return orjson.dumps(
            {letter: math.log(chances[letter]) for letter in sorted(chances) if chances[letter]}
        ).decode()

    def read(self, text: str) -> Likeliest:
        found = next((each for _, _, each in find_objects(text)), {})
        chances = {
            letter: found[letter]
            for letter in self.letters
            if isinstance(found.get(letter), int | float)
        }
        best = [letter for letter, chance in chances.items() if chance == max(chances.values())]
        if len(best) != 1:
            raise Unreadable(
                "no letter is the likeliest"
                if best
                else "no letter is among the likeliest beginnings of the reply"
            )
        return Likeliest(
            best[0], {letter: math.exp(min(chance, 0.0)) for letter, chance in chances.items()}
        )

    def write(self, value: Any, reason: str = "") -> str:
        return orjson.dumps({str(value): 0.0}).decode()


class Likeliest(str):
    """The most likely letter, with the probability of each letter as the beginning of the reply."""

    chances: Mapping[str, float]

    def __new__(cls, letter: str, chances: Mapping[str, float]) -> Likeliest:
        made = super().__new__(cls, letter)
        made.chances = chances
        return made


@dataclass(frozen=True)
class ExactAnswer:
    """A number or a few words after any reasoning: the announced answer, or a reply of one line.

    Reading does not depend on the right answer, so a second attempt reveals nothing about it.
    """

    hint: str = "End with a line that says `Answer:` and then the answer alone."
    again: Prompt | None = None
    schema: None = None

    def read(self, text: str) -> ReplyText:
        words = fold_widths(text).strip()
        found, around = split_objects(words)
        inside = [str(next(iter(each.values()))) for each in found]
        stated = next(
            filter(None, (DECORATION.sub("", each) for each in find_announced(around, STATED))), ""
        )
        said = list(dict.fromkeys(each.strip() for each in [*inside, stated] if each.strip()))
        if any(
            not is_same_answer(each, said[0]) and not is_same_answer(said[0], each) for each in said
        ):
            raise Unreadable("it names two different answers")
        if said:
            return ReplyText(said[0])
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        if len(lines) == 1:
            return ReplyText(lines[0][-LONGEST_ANSWER:])
        if lines and (last := find_only_number(lines[-1][-LONGEST_ANSWER:])):
            return ReplyText(last)
        raise Unreadable("it does not say which answer it gives")

    def write(self, value: Any, reason: str = "") -> str:
        return f"{reason}\nAnswer: {value}".strip()

    def sample(self, rng: Random) -> ReplyText:
        return ReplyText(str(rng.randint(0, 100)))


def drop_choice_list(lines: list[str], letters: str) -> list[str]:
    """The lines of a reply without a list of the choices, if it says more than that."""
    lines = [line.strip() for line in lines if line.strip()]
    begun = {
        at: found[1]
        for at, line in enumerate(lines)
        if (found := LEADING.match(line)) and not ALONE.fullmatch(line)
    }
    listed = len(begun) > 1 and "".join(begun.values()) == letters[: len(begun)]
    others = [line for at, line in enumerate(lines) if at not in begun]
    return others if listed and others else lines


def leading_letters(lines: list[str], option: LetterChoice) -> set[str]:
    """The letters that lines begin with, like `B. Paris`, or whose text a line is, like
    `Paris`."""
    found = set()
    for line in lines:
        begun = LEADING.match(line) or ALONE.fullmatch(line)
        if begun and begun[1].upper() in option.letters:
            found |= option.add_other_letters(begun[1].upper(), line, begun.end(1))
        else:
            found |= option.texts.get(normalise_words(line), set())
    return found


def mentioned_letters(lines: list[str]) -> set[str]:
    """The letters in the last line without those it denies; none if it denies or supposes anything
    else."""
    last = DENIED_LETTERS.sub(" ", lines[-1]) if lines else ""
    return (
        set()
        if DENIED.search(last) or SUPPOSED.search(last)
        else {*MARKED.findall(last), *MENTIONED.findall(last)}
    )


def is_right(said: str | None, item: Question) -> bool:
    """Whether an answer is right. An answer that was cut by the length limit is not; a letter is
    never cut."""
    if said is None or getattr(said, "cut", False):
        return False
    return said == item.answer if item.choices else is_same_answer(said, item.answer)


def whole_reply(answer: str | None) -> str | None:
    """The whole reply that an answer was read from, if it is known."""
    if not isinstance(answer, ReplyText) or not answer.said:
        return answer
    whole = ReplyText(answer.said)
    whole.cut = answer.cut
    return whole


WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+(?:['’-]\w+)*")


GIVEN = re.compile(
    r"\b(?:(?:correct|right|actual|true) )?(?:answer|option|choice)(?: to [^.?!\n]{1,80}?)? "
    r"(?:is|was|would be|should be)\b(?: "
    r"(?:option|choice))?|(?:正确(?:的)?)?(?:答案|选项)(?:是|为|应该是|应为)|\b(?:you(?:'re| "
    r"are) right|no|yes|indeed)\b[^.?!\n]{0,20}\bit is\b",
    re.IGNORECASE,
)


CONFIRMED = r"{}[\"”’']? (?:is|was) (?:the )?(?:correct|right)\b"


def count_words(text: str) -> int:
    """Count words; each Chinese character counts as one."""
    return len(WORD.findall(text))


def gives_away(said: str, right: str, letter: str = "") -> bool:
    """Whether a text announces the right answer. Mentioning a choice, or asking about it, does not
    count."""
    named = rf"(?<!\w){re.escape(right)}(?!\w)"
    # in upper case only, so that the article "a" does not match
    spelt = rf"\W{{0,3}}{letter}(?![\w'’])" if letter else r"(?!)"
    for found in GIVEN.finditer(said):
        rest = re.split(r"[.?!\n。？！]", said[found.end() : found.end() + 200])[0]
        there = re.match(spelt, rest) or re.search(named, rest, re.IGNORECASE)
        if there and not DENIED.search(rest[: there.start()]):
            return True
    told = [
        each
        for each in re.findall(r"[^.?!\n。？！]+[.?!\n。？！]?", said)
        if each[-1] not in "?？" and not DENIED.search(each)
    ]
    confirmed = (
        re.compile(CONFIRMED.format(named), re.IGNORECASE),
        re.compile(CONFIRMED.format(rf"\b{letter or '(?!)'}")),
    )
    return any(pattern.search(each) for pattern in confirmed for each in told)


KEYS = ("answer", "choice", "option", "letter", "答案")
ANNOUNCEMENTS, BEFORE = 64, 60  # limits: announcements per reply, characters before each
IS = r"(?:is|was|would\s+be|should\s+be|must\s+be|has\s+to\s+be|will\s+be)\b"
FILLER = r"(?:[\s:：*_`=]|\\[\[(]){0,20}"
SURELY = r"(?:(?:clearly|definitely|therefore|thus|obviously|indeed|simply)\b,?\s{1,3})?"
NAMED = (
    rf"{SURELY}(?:(?:the\s{{1,3}})?(?:letter|option|choice)\b(?=[\s:(\[*_`\"']{{1,"
    rf"5}}[A-Za-z]\b))?{FILLER}"
)


STATED = re.compile(
    rf"(?:####{FILLER}|<answer>|(?P<boxed>\\boxed\{{)|\banswer\b(?:\s+to\s[^.:?!\n]{{1,80}}?\s|\s{{1,3}})(?={IS}){IS}{FILLER}{NAMED}"
    rf"|\banswer[*_`\"']{{0,3}}\s{{0,3}}[:：=]{FILLER}{NAMED}"
    rf"|^[#*_ \t]{{0,9}}(?:the\s|final\s|correct\s){{0,2}}answer[*_ \t]{{0,9}}$\s{{1,9}}"
    rf"|答案[】\]*_\s\"”]{{0,5}}(?:应该|应)?(?:[是为:：】\]])(?:选项|选)?{FILLER})",
    re.IGNORECASE | re.MULTILINE,
)


# CHOSEN announces a choice only; WEAK is used if nothing else matches.
CHOSEN = re.compile(
    rf"(?:\b(?:correct|right|best)\s+(?:option|choice|letter|one)\s+{IS}{FILLER}{NAMED}"
    rf"|\bI(?:['’]d|['’]ll|\s+would|\s+will)?\s+(?:choose|pick|select|go\s+with)\b{FILLER}{NAMED}"
    rf"|正确的?选项(?:应该|应)?[是为:：]{FILLER}|(?:故|因此|所以|我)(?:应该|应|本题)?选择?(?:选项)?{FILLER})",
    re.IGNORECASE,
)


WEAK = re.compile(
    rf"(?:\banswer\b{FILLER}{NAMED}|答案{FILLER}|选择?(?:选项|[是为])?{FILLER})", re.IGNORECASE
)


# Words before an announcement that show it is not meant as the answer.
CLAUSE = re.compile(r"[.!?;,:\n。！？；，：]")


UNMEANT = re.compile(
    r"(?:\b(?:wrong|incorrect|false|not|never|cannot|unable|any|no|if|suppose|assume|assuming|than|might|could|may|who|students?"
    r"|worst|least|opposite|other|another|first|initial|previous|earlier|original|tempting)"
    r"|n['’]t)(?:\s+(?:think|believe|say|agree|assume|that|to|be|the|this|my|your|its|final|correct|right|best|likely|an?))*\s*\Z"
    r"|(?:不(?!难|过)|非|勿|误|错误?的?|别|若|如果|假如|假设|要是|有的|有人|同学|学生)[^\s]{0,6}\Z",
    re.IGNORECASE,
)


def split_objects(words: str) -> tuple[list[dict[str, Any]], str]:
    """The JSON objects in a reply that contain an answer, and the text around them."""
    found, around, past = [], [], 0
    for start, end, each in find_objects(words):
        if any(isinstance(each.get(key), str | int | float) for key in KEYS):
            found.append(
                {key: each[key] for key in KEYS if isinstance(each.get(key), str | int | float)}
            )
            around.append(words[past:start])
            past = end
    return found, " ".join([*around, words[past:]])


def find_announced(words: str, *patterns: re.Pattern[str]) -> Iterator[str]:
    """The rest of the line after each announcement, the last one first. Announcements that deny or
    suppose something are left out."""
    places = sorted(
        (found.start(), found)
        for pattern in patterns
        for found in deque(pattern.finditer(words), ANNOUNCEMENTS)
    )
    for start, found in reversed(places):
        before = CLAUSE.split(words[max(0, start - BEFORE) : start])[-1]
        if not UNMEANT.search(before):
            rest = (
                words[found.end() : found.end() + LONGEST_ANSWER]
                .partition("\n")[0]
                .partition("</answer>")[0]
            )
            yield before_closing_brace(rest) if found.groupdict().get("boxed") else rest


def before_closing_brace(rest: str) -> str:
    """The text before the brace that closes a `\\boxed{`."""
    depth = 0
    for at, mark in enumerate(rest):
        depth += (mark == "{") - (mark == "}")
        if depth < 0:
            return rest[:at]
    return rest
