"""Correction for multiple comparisons."""

from __future__ import annotations

from collections.abc import Sequence


def holm(family: Sequence[float | None]) -> list[float | None]:
    """Holm's correction (1979) of the p-values of a family; unknown p-values are not counted."""
    known = sorted((p, place) for place, p in enumerate(family) if p is not None)
    found: list[float | None] = [None] * len(family)
    worst = 0.0
    for done, (p, place) in enumerate(known):
        worst = max(worst, min(1.0, (len(known) - done) * p))
        found[place] = worst
    return found
