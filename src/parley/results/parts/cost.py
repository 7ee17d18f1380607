"""Calls, tokens and money, by model and role."""

from __future__ import annotations

from dataclasses import dataclass

from parley.money import COUNTS, cost_rows, price_rows, total_cost
from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.results.types import PriceRow, as_json
from parley.tables import Table


@dataclass(frozen=True)
class CostRow:
    """What a model has cost in a role; `usd` is None unless all of it is known."""

    alias: str
    role: str
    calls: int
    tokens_in: int | None
    tokens_cached: int | None
    tokens_written: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    lost: int
    usd: float | None
    usd_at_least: float | None


@dataclass(frozen=True)
class Cost:
    """What a run has cost, and the prices that this was computed with."""

    cost: tuple[CostRow, ...]
    prices: tuple[PriceRow, ...]


def compute_cost(run: RunScores) -> Cost:
    """What the run has cost so far."""
    return Cost(
        tuple(CostRow(**row) for row in cost_rows(run.reader, run.prices)),
        tuple(PriceRow(**row) for row in price_rows(run.reader, run.prices)),
    )


def cost_tables(found: Cost, style: Style) -> list[Table]:
    """By model and role, and in all."""
    listed = [as_json(row) for row in found.cost]
    rows = [
        [row["alias"], row["role"], str(row["calls"])]
        + ["–" if row[name] is None else str(row[name]) for name in COUNTS]
        + [str(row["lost"]), str(total_cost([row]))]
        for row in listed
    ]
    whole = total_cost(listed)
    lost = str(sum(row.lost for row in found.cost))
    rows.append(["all", "", str(whole.calls), *[""] * len(COUNTS), lost, str(whole)])
    header = [
        "model",
        "role",
        "calls",
        "tokens in",
        "cached",
        "written",
        "tokens out",
        "reasoning",
        "lost",
        "usd",
    ]
    notes = [
        "cached and written (read from a cache, and written to one) are part of tokens in, "
        "reasoning of tokens out; lost: requests that broke off on the way and may have been paid "
        "without a reply; ≥: not all of it is known",
        *describe_prices(found.prices),
    ]
    return [Table(header, rows, left=2, note="\n".join(notes))]


def describe_prices(prices: tuple[PriceRow, ...]) -> list[str]:
    """At what the tokens of each model were taken, in a line each."""
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
        more = f" (calls of more than {above:,} tokens have prices of their own)" if above else ""
        known = ", ".join(filter(None, [row.source, row.as_of]))
        lines.append(f"{row.alias}{name}: {paid} USD per million tokens{more} [{known}]")
    return lines


PARTS = (
    Part(
        "cost",
        "What it cost",
        Cost,
        compute_cost,
        tables=cost_tables,
        rows=lambda found: [as_json(row) for row in found.cost],
        section="cost",
        spread=True,
    ),
)
