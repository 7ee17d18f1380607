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
    """Pearson's r, as `product_moment` computes it from rows."""
    import numpy as np

    rows = np.array([row for group in groups for row in group], dtype=float).reshape(-1, 2)
    sizes = np.array([len(group) for group in groups])

    def figure(counts: Counts) -> float | None:
        weights = np.repeat(counts, sizes).astype(float)
        drawn = weights > 0
        sides = []
        for values in rows.T:
            here = values[drawn]
            if not here.size:
                return None
            low, high = here.min(), here.max()
            if not high - low > 1e-12 * max(abs(low), abs(high)):
                return None
            mean = (weights @ values) / weights.sum()
            sides.append((values - mean) / (high - low))
        return correlate_sides(weights, *sides)

    return figure


def count_rank_correlation(groups: Sequence[Sequence[tuple[float, float]]]) -> CountedFigure:
    """The rank correlation, as `rank_correlation` computes it from rows. Rows are sorted once: the
    ranks in a sample follow from the counts."""
    import numpy as np

    rows = np.array([row for group in groups for row in group], dtype=float).reshape(-1, 2)
    sizes = np.array([len(group) for group in groups])
    places, ends = [], []  # by side: the place of each row's value in order, and how many values
    for values in rows.T:
        distinct, place = np.unique(values, return_inverse=True)
        places.append(place.reshape(-1))
        ends.append(len(distinct))

    def figure(counts: Counts) -> float | None:
        weights = np.repeat(counts, sizes).astype(float)
        total, product, spread = weights.sum(), weights, 1.0
        for place, distinct in zip(places, ends, strict=True):
            ties = np.bincount(place, weights, distinct)
            if np.count_nonzero(ties) < 2:
                return None
            above_mean = np.cumsum(ties) - (ties + total) / 2  # the mid-rank minus the mean rank
            product = product * above_mean[place]
            spread *= float(ties @ above_mean**2)
        return limit_correlation(float(product.sum()) / spread**0.5)

    return figure


def correlate_sides(weights: Array, x: Array, y: Array) -> float:
    """r of centred values."""
    spread = (weights @ (x * x)) * (weights @ (y * y))
    return limit_correlation(float(weights @ (x * y)) / float(spread) ** 0.5)


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

    def figure(counts: Counts) -> float | None:
        times = np.bincount(unit, np.repeat(counts, sizes), len(number))
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
