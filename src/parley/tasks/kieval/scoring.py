"""The score of an interview from the marks of its rounds (KIEval §3.3): early rounds weigh more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Scale = Literal["published", "linear"]
Missing = Literal["played", "zero"]

MARKS: dict[str, dict[int, float]] = {
    "published": {1: 0.1, 2: 0.3, 3: 0.7, 4: 1.0},  # from the authors' code
    "linear": {1: 0.0, 2: 1 / 3, 3: 2 / 3, 4: 1.0},
}


def mark_value(mark: int, scale: Scale = "published") -> float:
    """The value of a mark, from 0 to 100."""
    return 100 * MARKS[scale][mark]


def interview_score(
    given: Sequence[float | None], rounds: int, missing: Missing = "played"
) -> float | None:
    """The mean value of the replies, with weight exp(−i/n) in round i of n; None if no reply could
    be judged.

    A reply that could not be judged keeps its place and does not count. `zero` counts the rounds
    after an early end as 0; `played` leaves them out.
    """
    weighed = [
        (math.exp(-number / rounds), value)
        for number, value in enumerate(given, 1)
        if value is not None
    ]
    if not weighed:
        return None
    lost = (
        sum(math.exp(-number / rounds) for number in range(len(given) + 1, rounds + 1))
        if missing == "zero"
        else 0.0
    )
    return sum(weight * value for weight, value in weighed) / (
        sum(weight for weight, _ in weighed) + lost
    )
