"""Self-disclosure: what a seat says about which model it is, is masked before others read it.

The rule reads and scores what was said. The mask is put on where words are delivered: on all that
the referee tells or asks once somebody has named itself, and on what annotators read. Only claims
about the speaker are masked ("as GPT-4, I …", "I am Claude"); a name that the task or its item
brings in stays. Masked words are on record, so you can check for false alarms.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple

from parley.match.claims import (
    ABOUT_OTHERS,
    ARTICLE,
    ATTRIBUTED,
    CAPITAL,
    CASED,
    CONFIGURATION,
    EITHER,
    EMPLOYED,
    JOINS,
    LABEL,
    MAKER_SIGNS,
    OF_A_MODEL,
    PEOPLE,
    QUOTATION,
    QUOTED,
    RIDDLE,
    SIGNS,
    WORD_OUTSIDE,
    claim_table,
    family_of,
    kind_of_name,
    name_pattern,
    satellites_of,
    search_shortest_words,
    searched_words,
)
from parley.match.context import Words, score_name, split_for_context
from parley.match.evidence import find_evidence
from parley.match.folding import Folded, fold_for_search
from parley.match.lexicon import Tagged, tag_text
from parley.match.starts import find_starts

KIND_OF_SIGN = {sign: kind for kind, sign in SIGNS.items()}
MASK = "[name withheld]"
BEFORE, AFTER = 320, 200  # how far from a name its claim can reach
# Log odds by the words around a name: above the first, they make a claim; below the second, a claim
# that a rule has found is none.
CLAIMED, UNCLAIMED = 4.5, -1.5
# A plain statement right before a name: no word around it, like those of code, speaks against it.
STATED = re.compile(
    r"(?:\b(?:i am|i['’]m|my name is|ich bin|je suis|yo soy|eu sou)\s+|我是|我叫)$", re.IGNORECASE
)
SHOWN_BEFORE, SHOWN_AFTER = 3, 2  # words of a claim that is on record for its context
NEAR = 300  # how far from a masked name others of its family are masked, too
UNSEEN = (
    "No rule can see a name in leetspeak, backwards, encoded, spelled out or in an acrostic, nor "
    "an allusion, a knowledge cut-off, a manner of writing or a sign agreed on before."
)


class Claim(NamedTuple):
    """What a seat said of itself: as it was said, as others read it, and the names in it."""

    said: str
    shown: str
    names: frozenset[str]


class FoundName(NamedTuple):
    """A name in a text: where it stands in the original, and how it reads in small letters."""

    start: int
    end: int
    name: str


class NamesInText:
    """A text, the names in it, and which of them its speaker claims."""

    def __init__(
        self,
        text: str,
        names: frozenset[str],
        stay: frozenset[str] = frozenset(),
        only: frozenset[str] | None = None,
    ) -> None:
        self._stay, self._only = stay, only
        self.text = text
        self.found: list[FoundName] = []
        self.hidden: dict[int, tuple[int, int]] = {}  # number of a name: the span of its claim
        folded = fold_for_search(text, closed_words(names))
        lowered = lower_text(folded.text)
        # Almost no text holds a name, so this check has to be fast.
        if search_shortest_words(names, lowered.isascii()).has_word(lowered):
            words = searched_words(names)
            present = frozenset(word for word in words if word in lowered)
            if present:
                self._find_names(folded, lowered, names, present | satellites_of(present))
                self._find_claims(folded)

    def _find_names(
        self, folded: Folded, lowered: str, names: frozenset[str], present: frozenset[str]
    ) -> None:
        """Put a sign for every name."""
        pattern = name_pattern(names, present)
        spans: list[tuple[int, int]] = []
        kinds: list[str] = []
        done = 0
        for place in find_places(lowered, present):
            name = pattern.match(lowered, place) if place >= done else None
            if name is None:
                continue
            start, end = name.span()
            if CASED.get(name[0], written := folded.text[start:end]) != written:
                continue
            capital = folded.text[start] != lowered[start] or not lowered[start].isascii()
            if not capital and lowered[end : end + 1] == "s":
                continue  # several animals or things
            done = end
            kinds.append(kind_of_name(name, names, capital))
            spans.append((start, done))
            self.found.append(FoundName(*folded.original_span(start, done), name[0]))
        self._join_makers(folded.text, spans, kinds)
        families = [family_of(found.name) for found in self.found]
        kinds = settle_kinds(folded.text, spans, kinds, families)
        pieces: list[str] = []
        self._shifts: list[int] = []  # characters that the signs up to here have saved
        self._places: list[int] = []
        length = done = 0
        for (start, end), kind in zip(spans, kinds, strict=True):
            pieces += (folded.text[done:start], SIGNS[kind])
            length += start - done + 1
            self._places.append(length - 1)
            self._shifts.append(end - length)
            done = end
        self._signed = "".join((*pieces, folded.text[done:]))

    def _join_makers(self, text: str, spans: list[tuple[int, int]], kinds: list[str]) -> None:
        """A maker right before its model makes one name with it: Amazon Nova."""
        for number in reversed(range(len(spans) - 1)):
            (start, end), (model, last) = spans[number], spans[number + 1]
            first, second = self.found[number], self.found[number + 1]
            if (
                text[end:model] == " "
                and kinds[number] in ("maker", "lab")
                and kinds[number + 1] not in ("maker", "lab", "odd")
                and family_of(first.name) == family_of(second.name)
            ):
                kind = "own" if kinds[number + 1] == "own" else "known"
                spans[number : number + 2] = [(start, last)]
                kinds[number : number + 2] = [kind]
                name = f"{first.name} {second.name}"
                self.found[number : number + 2] = [FoundName(first.start, second.end, name)]

    def _find_claims(self, folded: Folded) -> None:
        lowered = lower_text(self._signed)
        for start, end in merge_windows(self._places, len(self._signed)):
            for claim in self._match_rows(lowered, start, end):
                number = bisect_left(self._places, claim.start("name"))
                if self._stays(number) or not self._is_meant(claim):
                    continue
                self.hidden.setdefault(number, claim.span())
        self._weigh_evidence()
        self._weigh_context()
        self._hide_joined()
        self._hide_kin()
        self._spans = {
            number: folded.original_span(self._unsigned(start), self._unsigned(end - 1, True) + 1)
            for number, (start, end) in self.hidden.items()
        }

    def _weigh_evidence(self) -> None:
        """Names that no row has found, and that the words around them show to be the speaker's."""
        for start, end in merge_windows(self._places, len(self._signed)):
            tagged: Tagged | None = None
            first, last = bisect_left(self._places, start), bisect_left(self._places, end)
            for number in range(first, last):
                if number in self.hidden or self._stays(number):
                    continue
                if tagged is None:
                    tagged = tag_text(self._signed, start, end, MAKER_SIGNS)
                place = self._places[number]
                kind = KIND_OF_SIGN[self._signed[place]]
                claim = find_evidence(
                    tagged,
                    bisect_left(tagged.starts, place),
                    kind,
                    lambda: not self._is_configuration and not self._is_dialogue,
                )
                if claim and not self._is_denied(claim[0], place):
                    self.hidden[number] = claim

    def _weigh_context(self) -> None:
        """What the words around a name make likely: names that no rule has found are claimed, and
        what a rule has found by mistake is not."""
        for start, end in merge_windows(self._places, len(self._signed)):
            words: Words | None = None
            first, last = bisect_left(self._places, start), bisect_left(self._places, end)
            for number in range(first, last):
                if self._stays(number) or self._signed[self._places[number]] == SIGNS["model"]:
                    continue  # a name of this run that is a plain word is left to the rules
                if words is None:
                    words = split_for_context(self._signed, start, end)
                place = self._places[number]
                at = bisect_left(words.starts, place)
                score = score_name(words, at, KIND_OF_SIGN[self._signed[place]])
                if score > CLAIMED and number not in self.hidden:
                    begin = words.starts[max(0, at - SHOWN_BEFORE)]
                    after = min(at + SHOWN_AFTER, len(words.starts) - 1)
                    finish = words.starts[after] + len(words.words[after])
                    self.hidden[number] = begin, max(place + 1, min(finish, end))
                elif score < UNCLAIMED and self._only is None and not self._is_stated(place):
                    self.hidden.pop(number, None)

    def _is_stated(self, place: int) -> bool:
        return STATED.search(self._signed[max(0, place - 16) : place]) is not None

    def _is_denied(self, start: int, place: int) -> bool:
        """Whether a claim is quoted, denied or about somebody else."""
        before = self._signed[max(0, start - 120) : start]
        if self._signed[place] in MAKER_SIGNS and self._is_riddle:
            return True
        return bool(
            is_about_others(self._signed, place)
            or QUOTED.search(before)
            or self._is_reported(start, place)
        )

    def _is_reported(self, start: int, place: int) -> bool:
        """Whether a claim stands inside quotation marks, in a text that goes on outside of them."""
        number = bisect_right(self._quotations, start, key=lambda span: span[0]) - 1
        if number < 0:
            return False
        begin, end = self._quotations[number]
        return (
            place < end
            and WORD_OUTSIDE.search(self._signed[:begin] + self._signed[end:]) is not None
        )

    @cached_property
    def _quotations(self) -> list[tuple[int, int]]:
        """Where quotations begin and end."""
        return [found.span() for found in QUOTATION.finditer(self._signed)]

    def _match_rows(self, lowered: str, start: int, end: int) -> Iterator[re.Match[str]]:
        """What the rows of the table find in a part of the text, in the order of the rows."""
        table = claim_table()
        first, last = bisect_left(self._places, start), bisect_left(self._places, end)
        names = self._places[first:last]
        signs = {self._signed[place] for place in names}
        starts: dict[str, list[int]] = {}
        if table.filed:
            for key, place in find_starts(lowered, start, names, table.marks):
                starts.setdefault(key, []).append(place)
        tried: dict[int, list[int]] = {number: [] for number in table.everywhere}
        for key, places in starts.items():
            for number in table.filed.get(key, ()):
                tried.setdefault(number, []).extend(places)
        for number in sorted(tried):
            if signs.isdisjoint(table.signs[number]):
                continue
            pattern, done = table.patterns[number], start
            if not tried[number]:
                yield from pattern.finditer(self._signed, start, end)
            for place in sorted(tried[number]):
                if place >= done and (claim := pattern.match(self._signed, place, end)):
                    done = claim.end()
                    yield claim

    def _is_meant(self, claim: re.Match[str]) -> bool:
        """Whether a claim means its speaker, and not somebody or something else."""
        place = claim.start("name")
        if self._is_reported(claim.start(), place) or ATTRIBUTED.match(self._signed, place + 1):
            return False
        if "mine" in claim.re.groupindex:
            return True
        if "label" in claim.re.groupindex and self._is_dialogue:
            return False
        if "field" in claim.re.groupindex and self._is_configuration:
            return False
        if self._signed[claim.start("name")] in MAKER_SIGNS and self._is_riddle:
            return False
        before = self._signed[max(0, claim.start() - 120) : claim.start()]
        return not (is_about_others(self._signed, claim.start("name")) or QUOTED.search(before))

    @cached_property
    def _is_riddle(self) -> bool:
        """Whether a text asks who its speaker is: a riddle about a maker."""
        return RIDDLE.search(self._signed) is not None

    @cached_property
    def _is_dialogue(self) -> bool:
        """Whether lines begin with the labels of several speakers: a list or a play."""
        labels = set()
        for found in LABEL.finditer(self._signed):
            number = bisect_left(self._places, found.start("label"))
            if number < len(self._places) and self._places[number] == found.start("label"):
                labels.add(family_of(self.found[number].name))
            else:
                labels.add(found["label"])
        return len(labels) > 1

    @cached_property
    def _is_configuration(self) -> bool:
        """Whether a text is code, settings or a list of models with their prices."""
        return CONFIGURATION.search(self._signed) is not None

    def _hide_joined(self) -> None:
        """A name that stands beside a masked one and goes with it is masked too."""
        numbers, claimed = range(len(self.found) - 1), dict(self.hidden)
        for one, other in (
            *((n, n + 1) for n in numbers),
            *((n + 1, n) for n in reversed(numbers)),
        ):
            if one in self.hidden and other not in self.hidden:
                first, last = sorted((self._places[one], self._places[other]))
                if not self._stays(other) and JOINS.fullmatch(self._signed, first + 1, last):
                    start, end = claimed.get(one, (first, last + 1))
                    self.hidden[other] = min(start, first), max(end, last + 1)

    def _hide_kin(self) -> None:
        """Near a masked name, the other names of its family are masked too: who is "Claude" is
        from Anthropic."""
        numbers = range(len(self.found))
        families = [family_of(found.name) for found in self.found]
        for order in (numbers, reversed(numbers)):
            last: dict[str, int] = {}
            for number in order:
                near = last.get(families[number])
                if number not in self.hidden and near is not None and self._is_kin(number, near):
                    start, end = sorted((self._places[near], self._places[number]))
                    self.hidden[number] = start, end + 1
                if number in self.hidden:
                    last[families[number]] = number

    def _is_kin(self, number: int, near: int) -> bool:
        """Whether a name is that of the speaker because one of its family, nearby, is."""
        place = self._places[number]
        return (
            abs(place - self._places[near]) <= NEAR
            and self._signed[place] not in (SIGNS["shared"], SIGNS["odd"])
            and not self._stays(number)
            and not is_about_others(self._signed, place)
        )

    def _stays(self, number: int) -> bool:
        name = self.found[number].name
        return name in self._stay or (self._only is not None and name not in self._only)

    def _unsigned(self, place: int, last: bool = False) -> int:
        """A place in the signed text as one in the folded text; of a sign, its begin or its
        last character."""
        number = bisect_left(self._places, place)
        if last and number < len(self._places) and self._places[number] == place:
            return place + self._shifts[number]
        return place + (self._shifts[number - 1] if number else 0)

    @property
    def masked(self) -> str:
        """The text as others read it."""
        return self._mask(0, len(self.text))

    @cached_property
    def claims(self) -> list[Claim]:
        """What the speaker says of itself, in the order of the names."""
        spans = {number: self._trim(*self._spans[number]) for number in sorted(self.hidden)}
        return [
            Claim(
                self.text[slice(*span)],
                self._mask(*span),
                frozenset(found.name for found in self._hidden_within(*span)),
            )
            for span in spans.values()
        ]

    def _trim(self, start: int, end: int) -> tuple[int, int]:
        """A span without the spaces before it."""
        return start + len(self.text[start:end]) - len(self.text[start:end].lstrip()), end

    def _mask(self, start: int, end: int) -> str:
        pieces: list[str] = []
        done = start
        for found in self._hidden_within(start, end):
            pieces += (self.text[done : found.start], MASK)
            done = found.end
        return "".join((*pieces, self.text[done:end]))

    def _hidden_within(self, start: int, end: int) -> Iterator[FoundName]:
        """The masked names in a part of the text."""
        number = bisect_left(self.found, start, key=lambda found: found.start)
        while number < len(self.found) and self.found[number].end <= end:
            if number in self.hidden:
                yield self.found[number]
            number += 1


def is_about_others(signed: str, place: int) -> bool:
    """Whether the words around a name show that somebody or something else is meant."""
    if ABOUT_OTHERS.match(signed, place + 1) or ATTRIBUTED.match(signed, place + 1):
        return True
    if EITHER.search(signed[max(0, place - 6) : place]):
        return True
    if signed[place] in MAKER_SIGNS and EMPLOYED.match(signed, place + 1):
        return True
    if signed[place] in PEOPLE and CAPITAL.match(signed, place + 1):
        return True
    return (
        signed[place] in PEOPLE
        and signed[place] != SIGNS["cast"]
        and ARTICLE.search(signed[max(0, place - 6) : place]) is not None
        and OF_A_MODEL.match(signed, place + 1) is None
    )


def settle_kinds(
    text: str, spans: list[tuple[int, int]], kinds: list[str], families: list[str]
) -> list[str]:
    """A name that people bear too is a model's where its maker, or a name of its family that is
    surely a model's, stands near: Gemini beside Google is no star sign."""
    settled = list(kinds)
    numbers = range(len(kinds))
    for order in (numbers, reversed(numbers)):
        last: dict[str, int] = {}
        for number in order:
            (start, end), family = spans[number], families[number]
            if kinds[number] in ("maker", "lab", "own", "known"):
                last[family] = start
            elif (
                family in last
                and abs(last[family] - start) <= NEAR // 2
                and not text[start].islower()
                and not CAPITAL.match(text, end)
            ):
                settled[number] = "known"
    return settled


def find_places(text: str, words: Iterable[str]) -> list[int]:
    """Where any of these words, or a sign of the search, begins in a text."""
    signs = () if text.isascii() else SIGNS.values()
    found = set()
    for word in (*words, *signs):
        place = text.find(word)
        while place >= 0:
            found.add(place)
            place = text.find(word, place + 1)
    return sorted(found)


def merge_windows(places: Iterable[int], length: int) -> Iterator[tuple[int, int]]:
    """The parts of a text that are near to a name: nothing else can hold a claim."""
    start = end = -1
    for place in places:
        if place - BEFORE > end:
            if end >= 0:
                yield start, end
            start = max(0, place - BEFORE)
        end = min(length, place + AFTER)
    if end >= 0:
        yield start, end


def lower_text(text: str) -> str:
    """A text in small letters, character by character, so that places stay."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


@lru_cache(maxsize=256)
def closed_words(names: frozenset[str]) -> frozenset[str]:
    """The names as letters alone: what spaced letters or look-alikes may make up."""
    words = {re.sub("[^a-z]", "", name) for name in searched_words(names)}
    return frozenset(word for word in words if len(word) >= 3)


def mask_names(
    text: str, names: frozenset[str], stay: frozenset[str] = frozenset()
) -> tuple[str, list[str]]:
    """Mask claims of identity in a reply; return the text that others may read, and the claims.
    The names in `stay` are never masked."""
    found = NamesInText(text, names, stay)
    return (found.masked, [claim.said for claim in found.claims]) if found.hidden else (text, [])


def list_names(text: str, names: frozenset[str]) -> frozenset[str]:
    """All names that a text holds, claimed or not."""
    return frozenset(found.name for found in NamesInText(text, names).found)


class MatchMask:
    """The mask of one match. The rule is given what was said; as soon as a seat has named itself,
    the mask is on all that the referee tells or asks."""

    def __init__(self, names: frozenset[str], words_of_task: Callable[[], str]) -> None:
        self._names, self._words_of_task = names, words_of_task
        self._claims: dict[str, Claim] = {}
        self._disclosing: dict[str, NamesInText] = {}  # replies, by their text

    @cached_property
    def names_of_task(self) -> frozenset[str]:
        """Names that occur in the task or its item. A seat that says one may mean that."""
        return list_names(self._words_of_task(), self._names)

    def find_claims(self, text: str) -> NamesInText:
        """What a reply says of its speaker."""
        if text in self._disclosing:
            return self._disclosing[text]
        found = NamesInText(text, self._names)
        if found.hidden and self.names_of_task:
            found = NamesInText(text, self._names, self.names_of_task)
        if found.hidden:  # it is asked for again when the reply is delivered
            self._disclosing[text] = found
        return found

    def add_reply(self, text: str) -> None:
        """From now on mask what this reply says of its speaker."""
        self._claims.update((claim.said, claim) for claim in self.find_claims(text).claims)

    def mask_own(self, text: str, reply: str) -> str:
        """Words about one reply, for the seat that gave it: they do not depend on others."""
        return self._mask(text, {claim.said: claim for claim in self.find_claims(reply).claims})

    def mask(self, text: str) -> str:
        """The referee's words as all seats may read them."""
        return self._mask(text, self._claims)

    def _mask(self, text: str, claims: Mapping[str, Claim]) -> str:
        """Mask the claims word by word, and those that the rule has put in another form."""
        if not claims:
            return text
        said = claim_texts(tuple(sorted(claims, key=len, reverse=True)))
        text = said.sub(lambda found: claims[found[0]].shown, text)
        names = frozenset(name for claim in claims.values() for name in claim.names)
        return NamesInText(text, self._names, self.names_of_task, names).masked


@lru_cache(maxsize=64)
def claim_texts(claims: tuple[str, ...]) -> re.Pattern[str]:
    """Claims where they stand by themselves; "Claude Monet" is somebody else."""
    words = (re.escape(text) + "(?! [A-Z][a-z])" * text.isalpha() for text in claims)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(words)})(?![A-Za-z0-9])")
