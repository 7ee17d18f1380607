"""Calls, tokens and money, by model and role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parley.money import COUNTS, price_rows, total_cost
from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.results.types import Bar, Bars, Figure, PriceRow, as_json
from parley.tables import Table


@dataclass(frozen=True)
class CostRow:
    """Cost of a model in a role; `usd` is None unless the whole cost is known."""

    alias: str
    role: str
    calls: int
    tokens_in: int | None
    tokens_cached: int | None
    tokens_written: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    unanswered: int
    usd: float | None
    usd_at_least: float | None


@dataclass(frozen=True)
class Cost:
    """Cost of a run, and the prices used to compute it."""

    cost: tuple[CostRow, ...]
    prices: tuple[PriceRow, ...]


def compute_cost(run: RunScores) -> Cost:
    return Cost(
        tuple(CostRow(**row) for row in run.cost),
        tuple(PriceRow(**row) for row in price_rows(run.reader, run.prices)),
    )


def cost_tables(found: Cost, style: Style) -> list[Table]:
    """One row per model and role, and the total."""
    listed = [as_json(row) for row in found.cost]
    rows = [
        [row["alias"], row["role"], str(row["calls"])]
        + ["–" if row[name] is None else str(row[name]) for name in COUNTS]
        + [str(row["unanswered"]), str(total_cost([row]))]
        for row in listed
    ]
    whole = total_cost(listed)
    unanswered = str(sum(row.unanswered for row in found.cost))
    rows.append(["all", "", str(whole.calls), *[""] * len(COUNTS), unanswered, str(whole)])
    header = [
        "model",
        "role",
        "calls",
        "tokens in",
        "cached",
        "written",
        "tokens out",
        "reasoning",
        "unanswered",
        "usd",
    ]
    notes = [
        "`tokens in` includes input tokens read from a cache (`cached`) and written to a cache "
        "(`written`); `tokens out` includes reasoning; `unanswered` counts requests whose "
        "connection broke and that may have been billed without a reply; ≥ means that part of the "
        "cost is unknown, for example of requests that are still with a provider",
        *describe_prices(found.prices),
    ]
    return [Table(header, rows, left=2, note="\n".join(notes))]


def cost_figures(found: Cost, style: Style) -> list[Figure]:
    """A bar for each model with a piece for each role: USD if all are known and not 0, else tokens,
    else calls."""
    spent: dict[str, list[float | None]] = {
        "USD": [row.usd for row in found.cost],
        "tokens": [count_tokens(row) for row in found.cost],
        "calls": [row.calls for row in found.cost],
    }
    for unit, amounts in spent.items():
        known = [amount for amount in amounts if amount is not None]
        if any(known) and len(known) == len(amounts):
            bars = make_cost_bars(unit, found.cost, known)
            is_even = len({tuple(sorted(bar.pieces.items())) for bar in bars.bars}) == 1
            # equal numbers of calls, as in runs of bots, need no picture
            return [] if unit == "calls" and is_even and len(bars.bars) > 1 else [bars]
    return []


def count_tokens(row: CostRow) -> int | None:
    """Tokens in and out; None unless both are known."""
    known = row.tokens_in is not None and row.tokens_out is not None
    return (row.tokens_in or 0) + (row.tokens_out or 0) if known else None


def make_cost_bars(unit: str, rows: Sequence[CostRow], amounts: Sequence[float]) -> Bars:
    """The largest amount first."""
    by: dict[str, dict[str, float]] = {}
    for row, amount in zip(rows, amounts, strict=True):
        by.setdefault(row.alias, {})[row.role] = amount
    digits = ".4g" if unit == "USD" else ",.0f"
    bars = tuple(
        Bar(alias, pieces, f"{sum(pieces.values()):{digits}} {unit}")
        for alias, pieces in sorted(by.items(), key=lambda pair: -sum(pair[1].values()))
    )
    title = f"{'Cost in USD' if unit == 'USD' else unit.capitalize()} by model and role"
    alt = "; ".join(f"{bar.label}: {bar.note}" for bar in bars)
    return Bars(title, f"{title}: {alt}", unit, bars)


def describe_prices(prices: tuple[PriceRow, ...]) -> list[str]:
    """The prices used for each model, one line each."""
    long = {(row.alias, row.model_served): row.above for row in prices if row.above > 0}
    lines = []
    for row in prices:
        if row.above > 0:
            continue
        name = f" as {row.model_served}" if row.model_served else ""
        kinds = {"cached": row.cached_input, "written": row.written_input}
        apart = [f"{usd:g} {word}" for word, usd in kinds.items() if usd not in (None, row.input)]
        paid = ", ".join([f"{row.input:g} in", *apart, f"{row.output:g} out"])
        above = long.get((row.alias, row.model_served))
        more = f" (calls above {above:,} tokens have different prices)" if above else ""
        known = ", ".join(filter(None, [row.source, row.as_of]))
        lines.append(f"{row.alias}{name}: {paid} USD per million tokens{more} [{known}]")
    return lines


PARTS = (
    Part(
        "cost",
        "Cost",
        Cost,
        compute_cost,
        tables=cost_tables,
        figures=cost_figures,
        rows=lambda found: [as_json(row) for row in found.cost],
        section="cost",
        open_tables=0,
        spread=True,
    ),
)
