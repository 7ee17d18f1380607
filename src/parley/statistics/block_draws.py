"""Bootstrap samples of blocks as counts: how often each block is drawn. Figures that are computed
from the counts need no copy of the rows, so runs of many matches have intervals too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Array = NDArray[np.float64]

ENOUGH_SPREAD = 1e-3  # of the squares of a sample: with less, sums by block lose digits
LARGEST_TABLE = 1_000_000  # numbers
CountedFigure = Callable[["Counts"], float | None]  # None: unknown for this sample


def draw_block_counts(blocks: int, draws: int, seed: int) -> Iterator[Counts]:
    """How often each block is drawn, sample by sample: as many draws as there are blocks. The
    samples are those of `Random(seed).choices(range(blocks), k=blocks)`."""
    import numpy as np

    _, state, _ = Random(seed).getstate()
    source = np.random.RandomState()
    source.set_state(("MT19937", np.array(state[:-1], dtype=np.uint32), state[-1], 0, 0.0))
    for _ in range(draws):
        drawn = (source.random_sample(blocks) * blocks).astype(np.int64)
        yield np.bincount(drawn, minlength=blocks)


def count_product_moment(groups: Sequence[Sequence[tuple[float, float]]]) -> CountedFigure:
    """Pearson's r, as `product_moment` computes it from rows, from sums by block. Where these would
    lose digits, because a sample varies much less than all rows do, it is computed from rows."""
    import numpy as np

    rows = np.array([row for group in groups for row in group], dtype=float).reshape(-1, 2)
    sizes = np.array([len(group) for group in groups])
    starts = np.cumsum(sizes) - sizes
    reach = np.ptp(rows, axis=0)
    x, y = ((rows - rows.mean(axis=0)) / np.where(reach > 0, reach, 1.0)).T
    columns = np.stack([np.ones(len(rows)), x, y, x * x, y * y, x * y], axis=1)
    sums = np.add.reduceat(columns, starts)
    lows, highs = np.minimum.reduceat(rows, starts), np.maximum.reduceat(rows, starts)

    def figure(counts: Counts) -> float | None:
        drawn = counts > 0
        low, high = lows[drawn].min(axis=0), highs[drawn].max(axis=0)
        if not (high - low > 1e-12 * np.maximum(abs(low), abs(high))).all():
            return None
        n, left, right, left_square, right_square, product = (counts @ sums).tolist()
        spread = left_square - left * left / n, right_square - right * right / n
        if spread[0] < ENOUGH_SPREAD * left_square or spread[1] < ENOUGH_SPREAD * right_square:
            return correlate_rows(np.repeat(counts, sizes).astype(float), rows, high - low)
        return limit_correlation((product - left * right / n) / (spread[0] * spread[1]) ** 0.5)

    return figure


def correlate_rows(weights: Array, rows: Array, reach: Array) -> float:
    """r of rows with these weights."""
    x, y = ((rows - (weights @ rows) / weights.sum()) / reach).T
    spread = float(weights @ (x * x)) * float(weights @ (y * y))
    return limit_correlation(float(weights @ (x * y)) / spread**0.5)


def count_rank_correlation(groups: Sequence[Sequence[tuple[float, float]]]) -> CountedFigure:
    """The rank correlation, as `rank_correlation` computes it from rows. Rows are sorted once: the
    ranks in a sample follow from the counts."""
    import numpy as np

    rows = np.array([row for group in groups for row in group], dtype=float).reshape(-1, 2)
    block = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    order = np.argsort(rows[:, 0], kind="stable")
    block, (left, right) = block[order], rows[order].T
    starts = np.flatnonzero(np.diff(left, prepend=np.nan) != 0)  # of equal values, on the left
    distinct, place = np.unique(right, return_inverse=True)
    place = place.reshape(-1)

    def figure(counts: Counts) -> float | None:
        weights = counts.astype(float)[block]
        total = float(weights.sum())
        here = np.add.reduceat(weights, starts)
        there = np.bincount(place, weights, len(distinct))
        if np.count_nonzero(here) < 2 or np.count_nonzero(there) < 2:
            return None
        # mid-ranks minus the mean rank
        first = np.cumsum(here) - (here + total) / 2
        second = np.cumsum(there) - (there + total) / 2
        weights *= second[place]
        product = float(np.add.reduceat(weights, starts) @ first)
        spread = float(here @ first**2) * float(there @ second**2)
        return limit_correlation(product / spread**0.5)

    return figure


def limit_correlation(r: float) -> float:
    """r without the rounding errors of a perfect correlation."""
    return (1.0 if r > 0 else -1.0) if abs(r) > 1 - 1e-12 else r


def count_alpha(groups: Sequence[Sequence[tuple[float, ...]]], level: str) -> CountedFigure:
    """Krippendorff's alpha, as `alpha_of_units` computes it from rows: units with the same ratings
    are counted together."""
    import numpy as np

    number: dict[tuple[float, ...], int] = {}
    unit = np.array(
        [number.setdefault(row, len(number)) for group in groups for row in group], dtype=np.int64
    )
    sizes = np.array([len(group) for group in groups])
    values = sorted({value for row in number for value in row})
    place = {value: n for n, value in enumerate(values)}
    ratings: list[tuple[int, int]] = []  # distinct unit, value
    clashes: list[tuple[int, int, int, float]] = []  # distinct unit, two values, weight
    for row, n in number.items():
        ratings += [(n, place[value]) for value in row]
        clashes += [
            (n, place[one], place[other], 1 / (len(row) - 1))
            for at, one in enumerate(row)
            for other in row[at + 1 :]
            if one != other
        ]
    rated, value_of = columns_of(ratings, 2)
    clashing, first, second, share = columns_of(clashes, 4)
    scale = np.array(values, dtype=float)
    table = None  # how often each block has each distinct unit, if that is small
    if len(groups) * len(number) <= LARGEST_TABLE:
        table = np.zeros((len(groups), len(number)))
        np.add.at(table, (np.repeat(np.arange(len(groups)), sizes), unit), 1)

    def figure(counts: Counts) -> float | None:
        times = (
            np.bincount(unit, np.repeat(counts, sizes), len(number))
            if table is None
            else counts @ table
        )
        totals = np.bincount(value_of, times[rated], len(values))
        if np.count_nonzero(totals) < 2:
            return None
        n, weights = float(totals.sum()), times[clashing] * share
        if level == "nominal":
            within, chance = float(weights.sum()), (n * n - float(totals @ totals)) / 2
        else:
            spots = np.cumsum(totals) - totals / 2 if level == "ordinal" else scale
            middle = float(totals @ spots) / n
            within = float(weights @ (spots[first] - spots[second]) ** 2)
            chance = n * float(totals @ (spots - middle) ** 2)
        return 1 - (n - 1) * within / chance if chance > 0 else None

    return figure


def columns_of(rows: Sequence[tuple[float, ...]], width: int) -> list[NDArray[Any]]:
    """Rows as columns: places as whole numbers, a last column of weights as it is."""
    import numpy as np

    table = np.array(rows, dtype=float).reshape(-1, width)
    return [column.astype(np.int64) if at < 3 else column for at, column in enumerate(table.T)]
