"""Figures of bootstrap samples of blocks, from rows of numbers and the number of each row's block.
A sample is a count: how often each block is drawn. Figures that are computed from the counts need
no copy of the rows, so runs of many matches have intervals too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Array = NDArray[np.float64]
Column = Sequence[float | None] | Array  # None and NaN: missing
Blocks = Sequence[str] | Counts  # names, or numbers in the order of the names
ENOUGH_SPREAD = 1e-3  # of the squares of a sample: with less, sums by block lose digits
SMALLEST_REACH = 1e-12  # of the largest value: values that differ less are equal
LARGEST_TABLE = 1_000_000  # numbers
LARGEST_RANKS = 2_000_000  # ranks of all rows among the rows of each kind of block
LARGEST_SAMPLES = 20_000_000  # counts that are kept, of a byte each
CountedFigure = Callable[[Counts], float | None]  # None: unknown for this sample
# from how often each kind of block is drawn: the sum of products of ranks on both sides, and the
# product of their sums of squares; None if a side is constant
RankProducts = Callable[[Array], tuple[float, float] | None]


def number_blocks(blocks: Blocks) -> Counts:
    """The number of each row's block, from 0, in the order of the names."""
    if isinstance(blocks, np.ndarray):
        found: Counts = np.unique(blocks, return_inverse=True)[1].reshape(-1)
        return found
    number = {name: at for at, name in enumerate(sorted(set(blocks)))}
    return np.array([number[name] for name in blocks], dtype=np.int64)


def pair_rows(x: Column, y: Column, blocks: Blocks) -> tuple[Array, Counts]:
    """The rows in which neither column is missing, and the numbers of their blocks."""
    pairs = np.stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)], axis=1)
    known = ~np.isnan(pairs).any(axis=1)
    return pairs[known], number_blocks(number_blocks(blocks)[known])


def draw_block_counts(blocks: int, draws: int, seed: int) -> Iterator[Counts]:
    """How often each block is drawn, sample by sample: as many draws as there are blocks. The
    samples are those of `Random(seed).choices(range(blocks), k=blocks)`."""
    if blocks * draws > LARGEST_SAMPLES:
        yield from make_block_counts(blocks, draws, seed)
    else:
        for counts in keep_block_counts(blocks, draws, seed):
            yield counts.astype(np.int64)


@lru_cache(maxsize=2)
def keep_block_counts(blocks: int, draws: int, seed: int) -> Sequence[NDArray[Any]]:
    """The same samples in little memory: the figures of a run use them many times."""
    made = make_block_counts(blocks, draws, seed)
    return [counts.astype(np.uint8) if counts.max() < 256 else counts for counts in made]


def make_block_counts(blocks: int, draws: int, seed: int) -> Iterator[Counts]:
    _, state, _ = Random(seed).getstate()
    source = np.random.RandomState()
    source.set_state(("MT19937", np.array(state[:-1], dtype=np.uint32), state[-1], 0, 0.0))
    for _ in range(draws):
        drawn = (source.random_sample(blocks) * blocks).astype(np.int64)
        yield np.bincount(drawn, minlength=blocks)


def count_product_moment(rows: Array, block: Counts) -> CountedFigure:
    """Pearson's r of pairs, as `product_moment` computes it, from sums by block. Where these would
    lose digits, because a sample varies much less than all rows do, it is computed from rows."""
    reach, largest = np.ptp(rows, axis=0), abs(rows).max(axis=0)
    x, y = ((rows - rows.mean(axis=0)) / np.where(reach > 0, reach, 1.0)).T
    columns = np.stack([np.ones(len(rows)), x, y, x * x, y * y, x * y])
    sums = np.array([np.bincount(block, column) for column in columns])
    # of the squares of a row: with more, a sample is not constant, as its reach is at least twice
    # its standard deviation
    varied = (SMALLEST_REACH * largest / np.where(reach > 0, reach, 1.0)) ** 2

    def figure(counts: Counts) -> float | None:
        # `einsum` rather than `@`: threads take more CPU time than they save
        totals = np.einsum("i,ji->j", counts.astype(float), sums)
        n, left, right, left_square, right_square, product = totals.tolist()
        spread = left_square - left * left / n, right_square - right * right / n
        enough = spread[0] > ENOUGH_SPREAD * left_square and spread[1] > (
            ENOUGH_SPREAD * right_square
        )
        if enough and spread[0] > n * varied[0] and spread[1] > n * varied[1]:
            return limit_correlation((product - left * right / n) / (spread[0] * spread[1]) ** 0.5)
        weights = counts[block].astype(float)
        drawn = rows[weights > 0]
        low, high = drawn.min(axis=0), drawn.max(axis=0)
        if not (high - low > SMALLEST_REACH * np.maximum(abs(low), abs(high))).all():
            return None
        return correlate_rows(weights, rows, high - low)

    return figure


def correlate_rows(weights: Array, rows: Array, reach: Array) -> float:
    """r of rows with these weights."""
    x, y = ((rows - (weights @ rows) / weights.sum()) / reach).T
    spread = float(weights @ (x * x)) * float(weights @ (y * y))
    return limit_correlation(float(weights @ (x * y)) / spread**0.5)


def count_rank_correlation(rows: Array, block: Counts) -> CountedFigure:
    """The rank correlation of pairs, as `rank_correlation` computes it. Rows are sorted once: the
    ranks in a sample follow from the counts. Blocks with the same rows are counted together."""
    left = np.unique(rows[:, 0], return_inverse=True)[1]
    rights, right = np.unique(rows[:, 1], return_inverse=True)
    pairs, pair = np.unique(left.reshape(-1) * len(rights) + right.reshape(-1), return_inverse=True)
    kinds, alike, parts = merge_equal_blocks(block, pair.reshape(-1))
    kind, pair, often = parts[np.argsort(parts[:, 1], kind="stable")].T
    if kinds * len(kind) <= LARGEST_RANKS and kinds**3 <= max(len(kind), 1000):
        left, right = np.divmod(pairs[pair], len(rights))
        compute = multiply_ranks_by_kind(kinds, kind, often, (left, right))
    else:
        compute = multiply_ranks(kind, pair, often, np.divmod(pairs, len(rights)))

    def figure(counts: Counts) -> float | None:
        found = compute(np.bincount(alike, counts.astype(float), kinds).astype(float))
        if found is None:
            return None
        product, spread = found
        return limit_correlation(product / spread**0.5)

    return figure


def multiply_ranks(
    kind: Counts, pair: Counts, often: Counts, sides: tuple[Counts, Counts]
) -> RankProducts:
    """The sums of products of ranks in a sample, from its rows. `sides` are the places of the
    values of each pair among all values; pairs are sorted by the left side."""
    left, right = sides
    last = np.flatnonzero(np.diff(left, append=-1))  # of equal values, on the left
    width = int(right.max()) + 1

    def compute(drawn: Array) -> tuple[float, float] | None:
        weights = drawn[kind] * often
        if len(left) < len(weights):
            weights = np.bincount(pair, weights).astype(float)
        below = np.cumsum(weights)[last]  # up to each value
        here = np.diff(below, prepend=0.0)
        there = np.bincount(right, weights, width)
        if np.count_nonzero(here) < 2 or np.count_nonzero(there) < 2:
            return None
        total = float(below[-1])
        # mid-ranks minus the mean rank
        first = below - (here + total) / 2
        second = np.cumsum(there) - (there + total) / 2
        # sums rather than `@`: its threads take more CPU time than they save
        product = float((weights * first[left] * second[right]).sum())
        return product, float((here * first**2).sum()) * float((there * second**2).sum())

    return compute


def multiply_ranks_by_kind(
    kinds: int, kind: Counts, often: Counts, sides: tuple[Counts, Counts]
) -> RankProducts:
    """The same for few kinds of blocks: a rank is a sum over kinds, so that sums of products are
    computed once for all kinds of a row and of the ranks on both sides."""
    ranks, ends = [], []
    for side in sides:
        by_kind = np.empty((kinds, len(side)))
        for each in range(kinds):
            here = np.bincount(side, often * (kind == each))
            by_kind[each] = (np.cumsum(here) - (here + here.sum()) / 2)[side]
        ranks.append(by_kind)
        low, high = np.full(kinds, np.iinfo(np.int64).max), np.full(kinds, -1)
        np.minimum.at(low, kind, side)
        np.maximum.at(high, kind, side)
        ends.append((low, high))
    first, second = ranks
    tables = np.empty((3, kinds, kinds, kinds))  # products, squares on the left and on the right
    for each in range(kinds):
        mine = np.flatnonzero(kind == each)
        one, two = first[:, mine] * often[mine], second[:, mine]
        tables[0, each], tables[1, each] = one @ two.T, one @ first[:, mine].T
        tables[2, each] = (two * often[mine]) @ two.T

    def compute(drawn: Array) -> tuple[float, float] | None:
        used = drawn > 0
        if any(low[used].min() == high[used].max() for low, high in ends):
            return None
        product, left, right = (tables @ drawn @ drawn @ drawn).tolist()
        return product, left * right

    return compute


def merge_equal_blocks(block: Counts, value: Counts) -> tuple[int, Counts, Counts]:
    """Blocks with the same values, equally often, are of one kind. Returns the number of kinds, the
    kind of each block, and which kind has which value how often."""
    width = int(value.max()) + 1
    cells, often = np.unique(block * width + value, return_counts=True)
    of, values = np.divmod(cells, width)
    contents = np.stack([values, often], axis=1)
    ends = np.flatnonzero(np.diff(of, append=-1)) + 1
    kinds: dict[bytes, int] = {}
    parts: list[Counts] = []
    alike = np.empty(len(ends), dtype=np.int64)
    for n, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        found = contents[start:end]
        alike[n] = kind = kinds.setdefault(found.tobytes(), len(kinds))
        if kind == len(parts):
            parts.append(np.column_stack([np.full(len(found), kind), found]))
    return len(kinds), alike, np.concatenate(parts)


def limit_correlation(r: float) -> float:
    """r without the rounding errors of a perfect correlation."""
    return (1.0 if r > 0 else -1.0) if abs(r) > 1 - 1e-12 else r


def count_alpha(rows: Array, block: Counts, level: str) -> CountedFigure:
    """Krippendorff's alpha of units, whose missing ratings are NaN. Units with the same ratings are
    counted together."""
    ordered, blocks = np.sort(rows, axis=1), int(block.max()) + 1  # missing ratings are last
    distinct, unit = number_distinct_rows(np.where(np.isnan(ordered), np.inf, ordered))
    number = {tuple(row[np.isfinite(row)].tolist()): n for n, row in enumerate(distinct)}
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
    if blocks * len(number) <= LARGEST_TABLE:
        table = np.zeros((blocks, len(number)))
        np.add.at(table, (block, unit), 1)

    def figure(counts: Counts) -> float | None:
        times = (
            np.bincount(unit, counts[block], len(number))
            if table is None
            else np.einsum("i,ij->j", counts.astype(float), table)
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


def make_units(units: Sequence[Sequence[float | None]] | Array) -> Array:
    """Units as rows of equal length; missing ratings are NaN."""
    if isinstance(units, np.ndarray):
        return units
    raters = list(zip_longest(*units))
    return np.array(raters, dtype=float).reshape(len(raters), len(units)).T


def number_distinct_rows(table: Array) -> tuple[Array, Counts]:
    """The distinct rows of a table, and which of them each row is."""
    order = np.lexsort(table.T)
    ordered = table[order]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    number = np.empty(len(table), dtype=np.int64)
    number[order] = np.cumsum(is_new) - 1
    return ordered[is_new], number


def columns_of(rows: Sequence[tuple[float, ...]], width: int) -> list[NDArray[Any]]:
    """Rows as columns: places as whole numbers, a last column of weights as it is."""
    table = np.array(rows, dtype=float).reshape(-1, width)
    return [column.astype(np.int64) if at < 3 else column for at, column in enumerate(table.T)]
