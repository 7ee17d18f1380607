"""Combine the votes of several judges into one number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median
from typing import Literal

VoteRule = Literal["mean", "median", "majority"]


def combine_votes(given: Sequence[float], vote: VoteRule = "mean") -> float | None:
    """The mean, the median or the most frequent vote; the mean of several equally frequent ones.
    None without votes."""
    if not given:
        return None
    if vote == "majority":
        counts = Counter(given)
        return fmean(value for value, count in counts.items() if count == max(counts.values()))
    return fmean(given) if vote == "mean" else float(median(given))
