"""Parts of a public goods result besides its scores: the payoffs of single matches, and what models
paid in each round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import fmean, median, quantiles

from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores
from parley.results.types import Box, Boxes, Figure, Lines, Series
from parley.statistics.estimates import merge_blocks, tally_cells
from parley.statistics.intervals import compute_interval
from parley.statistics.score_table import Observation, ScoreTable
from parley.tables import Table, format_estimate, format_number, pivot, plural

MOST_DOTS = 200  # payoffs of a model that are listed and drawn one by one


@dataclass(frozen=True)
class PayoffSpread:
    """The payoffs of a model over its matches. `payoffs` has all of them, and is empty if they are
    more than 200; `missing` matches have no payoff."""

    alias: str
    matches: int
    missing: int
    low: float
    first_quartile: float
    median: float
    third_quartile: float
    high: float
    payoffs: tuple[float, ...]


BANDS = (
    "A band can be wide although all amounts of a model are equal: a few equal amounts do not show "
    "that later ones would be equal too, so the interval allows for the whole range of amounts."
)


@dataclass(frozen=True)
class PaymentRow:
    """What a model paid in one round, on average; `missing` amounts could not be read."""

    alias: str
    round: int
    mean: float | None
    low: float | None
    high: float | None
    blocks: int
    matches: int
    missing: int


def compute_payoffs(run: RunScores) -> tuple[PayoffSpread, ...]:
    """By model, in the order of the configuration."""
    spreads = (spread_of(alias, list_payoffs(run, alias)) for alias in run.config.contestants)
    return tuple(spread for spread in spreads if spread is not None)


def list_payoffs(run: RunScores, alias: str) -> list[float]:
    """The payoffs of a model by match; NaN if one is missing."""
    own = run.observations.with_seats(lambda seat: seat.alias == alias)
    payoffs: list[float] = own.rows["value"].tolist()
    return payoffs


def spread_of(alias: str, payoffs: Sequence[float]) -> PayoffSpread | None:
    """Median, quartiles and ends; None without payoffs. A missing payoff is NaN."""
    ordered = sorted(value for value in payoffs if value == value)
    if not ordered:
        return None
    single = ordered * 3  # quartiles need two values
    first, _, third = quantiles(ordered, n=4, method="inclusive") if ordered[1:] else single
    return PayoffSpread(
        alias,
        len(payoffs),
        len(payoffs) - len(ordered),
        ordered[0],
        first,
        median(ordered),
        third,
        ordered[-1],
        tuple(value for value in payoffs if value == value) if len(ordered) <= MOST_DOTS else (),
    )


def compute_payments(run: RunScores) -> tuple[PaymentRow, ...]:
    """The mean payment of each model in each round, with an interval over blocks. An amount that
    could not be read is missing, although the rule counts it as 0."""
    unread = {
        (each.match, each.round, each.seat.key)
        for each in run.reader.violations.read()
        if each.outcome == "default"
    }
    found = list_payments(run, unread)
    order, most = list(run.config.contestants), float(run.config.params["endowment"])
    tallies = sorted(
        ((alias, int(number), tally) for (number, _, alias), tally in tally_cells(found).items()),
        key=lambda each: (order.index(each[0]), each[1]),
    )
    rows = []
    for alias, number, (means, paid, missing) in tallies:
        values, weights = merge_blocks(means, run.same)
        low, high, _ = compute_interval(values, (0.0, most), method=run.method, weights=weights)
        mean = fmean(means.values()) if means else None
        rows.append(PaymentRow(alias, number, mean, low, high, len(values), paid, missing))
    return tuple(rows)


def list_payments(run: RunScores, unread: set[tuple[int, int, str]]) -> ScoreTable:
    """What was paid in each round, without a value if it could not be read. Every payment counts on
    its own, also where a model has several seats."""

    number = count()

    def list_each() -> Iterator[Observation]:
        for note in run.reader.notes.read():
            match, invested = run.match_by_number.get(note.match), note.facts.get("invested")
            if match is None or invested is None:
                continue
            for seat, alias in run.contestants_of(match):
                known = (note.match, note.round, seat.key) not in unread
                amount = invested[seat.key] if known else None
                metric = str(note.round)
                yield Observation(match.block, next(number), alias, seat.role, metric, amount)

    return ScoreTable.of(list_each())


def payoff_tables(found: Sequence[PayoffSpread], style: Style) -> list[Table]:
    ends = ("low", "first_quartile", "median", "third_quartile", "high")
    digits = style.digits_of("payoff")
    rows = [
        [row.alias, *(format_number(getattr(row, name), digits) for name in ends)]
        + [str(row.matches), str(row.missing)]
        for row in found
    ]
    header = ["model", "lowest", "first quartile", "median", "third quartile", "highest"]
    note = "payoffs of single matches; half of them lie between the quartiles"
    return [Table([*header, "matches", "missing"], rows, note=note)]


def payoff_rows(found: Sequence[PayoffSpread]) -> Rows:
    """One row per model, without the single payoffs."""
    return [
        {name: value for name, value in vars(row).items() if name != "payoffs"} for row in found
    ]


def payoff_figures(found: Sequence[PayoffSpread], style: Style) -> list[Figure]:
    """Boxes with a dot for each match."""
    boxes = tuple(
        Box(
            row.alias,
            row.low,
            row.first_quartile,
            row.median,
            row.third_quartile,
            row.high,
            row.matches - row.missing,
            row.payoffs,
        )
        for row in sorted(found, key=lambda row: -row.median)
    )
    title = "Payoff of every match: box: the middle half; line: median; dots: matches"
    if not all(row.payoffs for row in found):
        title = "Payoffs of matches: box: the middle half; line: median; thin line: all matches"
    said = "; ".join(f"{box.label}: median {format_number(box.median)}" for box in boxes)
    return [Boxes(title, f"{title}. {said}", "coins", boxes, style.digits_of("payoff"))]


def payment_tables(found: Sequence[PaymentRow], style: Style) -> list[Table]:
    """By model, one column per round."""
    numbers = sorted({row.round for row in found})
    cells = (
        ((row.alias,), row.round, format_estimate(row.mean, row.low, row.high)) for row in found
    )
    gone = sum(row.missing for row in found)
    note = f"mean coins with 95% intervals over blocks{style.fixed_blocks_note}"
    if gone:
        note += f"; {plural(gone, 'amount')} could not be read and {'is' if gone == 1 else 'are'} "
        note += "left out, not counted as 0"
    header = ["model", *(f"round {each}" for each in numbers)]
    return [Table(header, pivot(cells, numbers), note=note)]


def payment_figures(found: Sequence[PaymentRow], style: Style) -> list[Figure]:
    """A line for each model."""
    series = []
    for alias in dict.fromkeys(row.alias for row in found):
        rows = [row for row in found if row.alias == alias]
        series.append(
            Series(
                alias,
                tuple(float(row.round) for row in rows),
                tuple(row.mean for row in rows),
                tuple(row.low for row in rows),
                tuple(row.high for row in rows),
                alias,
            )
        )
    title = "Coins paid into the pool by round, with 95% intervals"
    said = "; ".join(
        f"{each.label} from {format_number(each.y[0])} to {format_number(each.y[-1])}"
        for each in series
    )
    alt = f"{title}: {said}"
    return [Lines(title, alt, "round", "coins paid", tuple(series), legend=BANDS)]


PARTS = (
    Part(
        "payoffs",
        "Every match",
        tuple[PayoffSpread, ...],
        compute_payoffs,
        tables=payoff_tables,
        rows=payoff_rows,
        figures=payoff_figures,
        absent="no match of this run has a payoff yet",
    ),
    Part(
        "payments",
        "Investments by round",
        tuple[PaymentRow, ...],
        compute_payments,
        tables=payment_tables,
        figures=payment_figures,
        absent="no round of this run was played to its end",
    ),
)
