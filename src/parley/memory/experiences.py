"""What a model remembers between stages: experiences from finished matches, and which are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple

import orjson

from parley.rules.pool import Example

DIGITS = re.compile(r"(\d+)")


class MemoryOwner(NamedTuple):
    """Whose memory it is. Owners never share experiences."""

    alias: str
    role: str
    arm: str
    series: int


@dataclass(frozen=True, slots=True)
class Experience:
    """One interaction of a model, and whether it was a success."""

    match: int  # below 0: transferred from another run
    seat: str
    alias: str
    role: str
    item: str
    stage: int
    arm: str  # empty for the standard stage, which all arms share
    series: int
    cue: str  # the words that searches compare
    turns: tuple[Example, ...]
    success: bool  # by the feedback of the arm
    right: bool  # by the task's own score
    subject: str = ""
    lesson: str = ""  # what the model wrote down about it

    @property
    def key(self) -> tuple[int, str]:
        """Identifies it in records."""
        return self.match, self.seat


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """What a memory keeps."""

    keep: Literal["positive", "all"] = "positive"
    refresh: Literal["merge", "replace"] = "merge"
    stream: bool = False  # the standard stage is a control and is not remembered
    lessons: bool = False  # keep every lesson, whatever the outcome of its match


def select_experiences(
    experiences: Iterable[Experience],
    owner: MemoryOwner,
    stage: int,
    kept: MemoryPolicy,
    held_out: frozenset[str] = frozenset(),
) -> list[Experience]:
    """The memory of one owner when a stage begins, in the order of items.

    Only earlier stages of the same arm count, and the standard stage. With `merge`, a newer success
    on an item replaces older ones, and a failure removes nothing. With `replace`, only the stage
    before counts.
    """
    found: dict[tuple[str, bool], list[Experience]] = {}
    for each in experiences:
        if each.alias != owner.alias or each.role != owner.role or each.item in held_out:
            continue
        transferred = each.match < 0
        if not transferred and (
            each.series != owner.series
            or each.stage >= stage
            or (each.stage == 0 and kept.stream)
            or (each.stage > 0 and each.arm != owner.arm)
        ):
            continue
        if kept.refresh == "replace" and not transferred and each.stage != stage - 1:
            continue
        if kept.lessons:
            if not each.lesson:
                continue
        elif not each.success and kept.keep == "positive":
            continue
        others = found.setdefault((each.item, each.success), [])
        newest = max(map(age_rank, others), default=-2)
        rank = age_rank(each)
        if rank > newest:
            others[:] = [each]
        elif rank == newest:
            others.append(each)
    return sorted(
        (each for group in found.values() for each in group),
        key=lambda each: (item_order(each.item), each.stage, each.seat, each.match),
    )


def age_rank(experience: Experience) -> int:
    """Orders experiences by age; those of another run are the oldest."""
    return -1 if experience.match < 0 else experience.stage


def item_order(item: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key for ids that puts q2 before q10, whatever the order in which items are played."""
    return tuple(
        (0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part)
        for part in DIGITS.split(item)
    )


def memory_version(memory: Sequence[Experience]) -> str:
    """A digest of a whole memory."""
    mark = blake2b(digest_size=12)
    for each in memory:
        turns = [[turn.question, turn.answer, turn.hint] for turn in each.turns]
        mark.update(orjson.dumps([each.match, each.seat, each.success, turns, each.lesson]))
    return mark.hexdigest()


def choose_held_out(strata: Mapping[str, Sequence[str]], share: float, seed: int) -> frozenset[str]:
    """The items that are never remembered, drawn with the seed: the given share of all items, and
    of every stratum, up to rounding. The order of items does not matter."""
    found: set[str] = set()
    passed = 0
    for name in sorted(strata, key=lambda name: draw_share(f"{seed}|stratum|{name}")):
        items = strata[name]
        drawn = sorted(items, key=lambda item: draw_share(f"{seed}|held out|{item}"))
        count = round(share * (passed + len(items))) - round(share * passed)
        found |= set(drawn[:count])
        passed += len(items)
    return frozenset(found)


def draw_share(text: str) -> float:
    """A number from 0 to 1 that depends on a text only."""
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest()) / 2**48


class ShownExperience(NamedTuple):
    """An experience that a seat was shown, by its match and seat, and how far it was from the new
    item."""

    match: int
    seat: str
    distance: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """What one seat of one match was shown of a memory."""

    match: int
    seat: str
    version: str  # of the memory that was searched
    shown: tuple[ShownExperience, ...]  # in the order of the prompt
    k: int  # how many were wanted; the task's own examples fill up what is missing
    dropped: int = 0  # found, but too long for the model's context or for `fit`
    shuffle: str = ""  # the seed by which the task's own examples were shuffled
