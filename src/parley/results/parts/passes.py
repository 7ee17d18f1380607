"""Pass@K: the chance that at least one of K samples is right, estimated without bias from n
samples."""

from __future__ import annotations

from math import comb


def pass_at(k: int, samples: int, right: int) -> float:
    """1 − C(n − c, k) / C(n, k), for c right ones of n samples (Chen et al. 2021, eq. 1)."""
    if not 0 <= right <= samples or not 1 <= k <= samples:
        raise ValueError(
            f"Pass@{k} of {right} right ones among {samples} samples cannot be estimated"
        )
    return 1 - comb(samples - right, k) / comb(samples, k)
