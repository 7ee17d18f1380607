"""Scores from first correct guesses: comprehension, confusion and their harmonic mean (AGE
§3.3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar

BEYOND = 2  # rounds
Never = Literal["zero", "l+1"]
Only = Literal["all", "successful", "successful_late"]
Who = TypeVar("Who")


def comprehension(first: int | None, length: int, never: Never = "zero") -> float:
    """1 / log2(f + 1): 1 for a right first guess. A player who never guesses right gets 0, or with
    `l+1` counts as right one step after the end."""
    if first is None and never == "zero":
        return 0.0
    return 1 / math.log2(limit_to_match(first, length) + 1)


def confusion(firsts: Iterable[int | None], length: int) -> float:
    """The logarithm, to the base l + 1, of the opponents' earliest f: 0 if one is right at once, 1
    if none ever is."""
    return math.log(min(limit_to_match(first, length) for first in firsts), length + 1)


def age(comprehension: float, confusion: float) -> float:
    """The harmonic mean of both; 0 if either is 0."""
    return (
        2 * comprehension * confusion / (comprehension + confusion)
        if comprehension and confusion
        else 0.0
    )


def score_players(
    firsts: Mapping[Who, int | None], groups: Mapping[Who, str], length: int, never: Never
) -> dict[Who, dict[str, float]]:
    """The scores of all players: each first correct guess counts for the player who made it and
    against those whose word it was."""
    found = {}
    for who, first in firsts.items():
        understood = comprehension(first, length, never)
        confused = confusion(
            [firsts[other] for other in firsts if groups[other] != groups[who]], length
        )
        found[who] = {
            "age": age(understood, confused),
            "comprehension": understood,
            "confusion": confused,
        }
    return found


def reached_third_round(rounds: int) -> bool:
    """Whether a match went beyond two rounds, in the more likely reading of §4.1: a third round was
    played."""
    return rounds > BEYOND


def went_on_late(both: int | None, rounds: int) -> bool:
    """Whether a match went beyond two rounds, in the other reading of §4.1: after two rounds at
    least one word had not been guessed, and there was a third round."""
    return (rounds if both is None else both) > BEYOND


def is_counted(only: Only, both: int | None, rounds: int) -> bool:
    """Whether a match has scores: all do, or only those in which both words were guessed and that
    went beyond two rounds, in one reading or the other."""
    if only == "all":
        return True
    beyond = reached_third_round(rounds) if only == "successful" else went_on_late(both, rounds)
    return both is not None and beyond


def limit_to_match(first: int | None, length: int) -> int:
    """The step of the first correct guess; one step after the end if there was none."""
    if length < 1 or (first is not None and not 1 <= first <= length):
        raise ValueError(
            f"the round of the first correct guess must be from 1 to {length}, the length of "
            f"the match, not {first}"
        )
    return length + 1 if first is None else first
