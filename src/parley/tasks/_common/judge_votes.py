"""What several judges say, as one number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median
from typing import Literal

VoteRule = Literal["mean", "median", "majority"]


def combine_votes(given: Sequence[float], vote: VoteRule = "mean") -> float | None:
    """The mean, the median or what most say, and where as many say the one as the other, their
    mean; None without a vote."""
    if not given:
        return None
    if vote == "majority":
        counts = Counter(given)
        return fmean(value for value, count in counts.items() if count == max(counts.values()))
    return fmean(given) if vote == "mean" else float(median(given))
