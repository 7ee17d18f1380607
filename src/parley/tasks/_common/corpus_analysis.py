"""Corpus-level scores: all texts of a pair of models are scored as one, from the counts that
matches note."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from parley.results.part import Part, Style
from parley.results.parts.roles import (
    PairCell,
    RoleTableResult,
    format_role_table,
    make_margins,
    make_pair_score,
    role_table_rows,
)
from parley.results.scores import RunScores, seat_name
from parley.results.types import Figure, Intervals, Point
from parley.rules.pool import Seat
from parley.statistics.agreement import FEWEST
from parley.statistics.block_draws import draw_block_counts
from parley.statistics.intervals import ALPHA, UNKNOWN, Interval
from parley.statistics.role_tables import (
    Margin,
    Margins,
    MeetingCell,
    Pair,
    average_margins,
    seat_models,
)
from parley.statistics.student_t import t_quantile
from parley.store.types import RunInfo
from parley.tables import Table, format_number
from parley.tasks._common.overlap import MEASURES, corpus_score, corpus_signature
from parley.tasks._common.writer_editor import OverlapCounts

DRAWS = 200


class CountedTexts:
    """The counts of many texts, and the block of each."""

    def __init__(self) -> None:
        self.blocks = array("i")  # the places of blocks, by name
        self._counts = array("i")

    def add(self, block: int, counts: Sequence[int]) -> None:
        self.blocks.append(block)
        self._counts.extend(counts)

    def table(self) -> NDArray[np.int32]:
        """One row per text."""
        return np.asarray(self._counts).reshape(len(self.blocks), -1)

    def table_by_block(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The blocks in the order of their names, and the sums of their texts."""
        blocks = np.asarray(self.blocks)
        order = np.argsort(blocks, kind="stable")
        found, starts = np.unique(blocks[order], return_index=True)
        return found, np.add.reduceat(self.table()[order], starts, dtype=np.int64)


@dataclass(frozen=True)
class CorpusTable(RoleTableResult):
    """A role table of corpus-level scores, with the signature of the metric."""

    signature: str


def compute_corpus(run: RunScores) -> tuple[CorpusTable, ...]:
    """Role tables like those of mean scores, with corpus-level scores in the cells."""
    # by measure, pair and role: the counts of every match
    counts: dict[str, dict[Pair, dict[str, CountedTexts]]] = {}
    blocks: dict[Pair, array[int]] = {}
    order = {name: at for at, name in enumerate(sorted(run.blocks))}
    if run.two_seats is None:
        return ()
    seated, seats = seat_models(run.seated, run.two_seats), [Seat(*each) for each in run.two_seats]
    met = set(seated.match[seated.complete].tolist())
    for match, note in run.notes(OverlapCounts):
        if match.number not in met:
            continue
        first, second = (match.seats[seat] for seat in seats)
        given = {seat: each for seat, each in note.overlap.items() if seat not in match.unscored}
        block = order[match.block]
        if given:
            blocks.setdefault((first, second), array("i")).append(block)
        for seat, found in given.items():
            for name, numbers in found.items():
                by_role = counts.setdefault(name, {}).setdefault((first, second), {})
                by_role.setdefault(seat.role, CountedTexts()).add(block, numbers)
    places = (seat_name(*run.two_seats[0]), seat_name(*run.two_seats[1]))
    basis, listed = run.identity.get("basis", {}), [*run.config.players, *run.config.excluded]
    tables = []
    for name, pairs in counts.items():
        drawn = {
            pair: [draw_corpus_scores(name, by_role.get(role, CountedTexts())) for role in places]
            for pair, by_role in pairs.items()
        }
        cells = {
            pair: make_corpus_cell(name, by_role, places, blocks[pair], drawn[pair])
            for pair, by_role in pairs.items()
        }
        edges = add_corpus_intervals(average_margins(cells, listed), drawn)
        tables.append(
            CorpusTable(
                metric=name,
                digits=run.metrics[name].digits if name in run.metrics else 2,
                first=places[0],
                second=places[1],
                cells=tuple(PairCell(*pair, make_pair_score(cell)) for pair, cell in cells.items()),
                **make_margins(edges),
                signature=corpus_signature(name, basis.get(name, "")),
            )
        )
    return tuple(tables)


def corpus_tables(found: Sequence[CorpusTable], style: Style) -> list[Table]:
    """First seats down, second seats across: all texts of a pair are scored as one."""
    return [
        each
        for table in found
        for each in format_role_table(
            table, f"corpus-level {table.metric} ({table.signature})", style
        )
    ]


def corpus_figures(found: Sequence[CorpusTable], style: Style) -> list[Figure]:
    """Each measure before and after the second model worked on the text, by pair of models."""
    figures: list[Figure] = []
    for table in found:
        points = list[Point]()
        for pair in table.cells:
            if (cell := pair.cell) is None:
                continue
            label = f"{pair.first} → {pair.second}"
            ends = (cell.first_low, cell.first_high), (cell.second_low, cell.second_high)
            before, after = f"before (the {table.first})", f"after (the {table.second})"
            points.append(Point(label, cell.first, *ends[0], before, pair.first))
            points.append(Point(label, cell.second, *ends[1], after, pair.second))
        title = f"Corpus-level {table.metric} before and after the {table.second}"
        said = "; ".join(
            f"{one.label}: {format_number(one.value)} to {format_number(two.value)}"
            for one, two in zip(points[::2], points[1::2], strict=True)
        )
        alt = f"{title}, with 95% intervals over blocks: {said}"
        figures.append(Intervals(title, alt, table.metric, tuple(points), table.digits))
    return figures


def make_corpus_cell(
    name: str,
    by_role: Mapping[str, CountedTexts],
    places: tuple[str, str],
    blocks: Sequence[int],
    drawn: Sequence[CorpusDraws],
) -> MeetingCell:
    """The texts of both sides in all their matches, each side scored as one text, with an interval
    over blocks."""
    given = [by_role.get(role, CountedTexts()) for role in places]
    first, second = (
        corpus_score(name, [side.table().sum(0).tolist()]) if side.blocks else None
        for side in given
    )
    unscored = len(blocks) - len(given[0].blocks), len(blocks) - len(given[1].blocks)
    return MeetingCell(
        first,
        second,
        len(blocks),
        len(set(blocks)),
        unscored,
        interval_of_draws(first, drawn[0].scores, drawn[0].count),
        interval_of_draws(second, drawn[1].scores, drawn[1].count),
    )


@dataclass(frozen=True)
class CorpusDraws:
    """The blocks of a score, and the score in bootstrap samples of blocks; no samples if there are
    too few blocks. Cells with the same blocks have the same samples."""

    blocks: bytes  # the places of blocks, by name
    count: int  # of blocks
    scores: Sequence[float]


NO_DRAWS = CorpusDraws(b"", 0, [])


def draw_corpus_scores(name: str, given: CountedTexts) -> CorpusDraws:
    """A corpus score in bootstrap samples of whole blocks, always the same samples."""
    if not given.blocks:
        return NO_DRAWS
    blocks, rows = given.table_by_block()
    found = CorpusDraws(blocks.tobytes(), len(blocks), [])
    if found.count < FEWEST:
        return found
    draws, columns = draw_block_counts(found.count, DRAWS, DRAWS), np.ascontiguousarray(rows.T)
    # `einsum` rather than `@`, which is slow for whole numbers
    totals = (np.einsum("i,ji->j", drawn, columns).tolist() for drawn in draws)
    return replace(found, scores=[corpus_score(name, [total]) for total in totals])


def interval_of_draws(value: float | None, scores: Sequence[float], blocks: int) -> Interval:
    """Student's t interval with the standard deviation of a score over bootstrap samples."""
    if value is None or not scores:
        return UNKNOWN
    half = t_quantile(1 - ALPHA / 2, blocks - 1) * stdev(scores)
    half *= math.sqrt(blocks / (blocks - 1))
    return Interval(max(0.0, value - half), min(1.0, value + half), "block bootstrap")


def add_corpus_intervals(edges: Margins, drawn: Mapping[Pair, Sequence[CorpusDraws]]) -> Margins:
    """Row and column means with their intervals over blocks, if all their cells have the same
    blocks: then a bootstrap sample of the cells is one of the mean."""

    def known(margin: Margin, side: int, alias: str | None = None) -> Margin:
        cells = [
            draws[side]
            for pair, draws in drawn.items()
            if alias in (None, pair[side]) and draws[side].blocks
        ]
        if margin.mean is None or len({cell.blocks for cell in cells}) != 1:
            return margin
        means = [fmean(scores) for scores in zip(*(cell.scores for cell in cells), strict=True)]
        interval = interval_of_draws(margin.mean, means, cells[0].count)
        return margin._replace(interval=interval)

    rows = {alias: known(margin, 0, alias) for alias, margin in edges.rows.items()}
    columns = {alias: known(margin, 1, alias) for alias, margin in edges.columns.items()}
    return Margins(rows, columns, known(edges.first, 0), known(edges.second, 1))


def has_references(info: RunInfo) -> bool:
    """Whether texts of the task are compared with references."""
    return bool(info.identity.get("basis", {}).keys() & MEASURES)


PARTS = (
    Part(
        "corpus",
        "Corpus-level scores",
        tuple[CorpusTable, ...],
        compute_corpus,
        tables=corpus_tables,
        rows=role_table_rows,
        figures=corpus_figures,
        applies=has_references,
        absent="not applicable: this task compares no texts with references, or no two models "
        "have met in a match",
    ),
)
