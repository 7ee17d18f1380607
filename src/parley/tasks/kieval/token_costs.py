"""Tokens of interviews by role (KIEval, table 14), and the cost of more models, graded one by one
or in pairs (table 15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from parley.money import total_cost
from parley.results.scores import RunScores
from parley.runs.forecast import evaluation_cost, scale_costs
from parley.store.reader import RunReader
from parley.tasks.kieval.entries import dataset_name

MODELS = (1, 10, 100)


@dataclass(frozen=True)
class RoleSpending:
    """Tokens and cost of one role on one dataset, summed over conversations and models."""

    run: str
    dataset: str
    role: str
    models: int
    conversations: int
    calls: int
    counted: int  # calls whose tokens are known
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    usd: float | None
    usd_at_least: float | None

    def each(self, tokens: int | None) -> float | None:
        """Tokens per conversation."""
        return None if tokens is None or not self.conversations else tokens / self.conversations


def spending_by_role(run: RunScores) -> list[RoleSpending]:
    """The spending of one run by role."""
    reader, found = run.reader, []
    rows, money = reader.usage.by_model(), run.cost
    cast = {
        alias
        for match in run.matches
        for seat, alias in match.seats.items()
        if seat.role in run.roles
    }
    for role in reader.info.identity["roles"]:
        own = [row for row in rows if row.seat.role == role]
        if not own:
            continue
        read, cached, said = (
            sum_known(*(getattr(row, name) for row in own))
            for name in ("tokens_in", "tokens_cached", "tokens_out")
        )
        paid = total_cost(row for row in money if row["role"] == role)
        calls, counted = (sum(getattr(row, name) for row in own) for name in ("calls", "counted"))
        dataset, played = dataset_name(run.config.dataset), len(run.matches)
        size = (len(cast), played, calls, counted)
        found.append(
            RoleSpending(
                reader.info.id, dataset, role, *size, read, cached, said, paid.usd, paid.at_least
            )
        )
    return found


def merge_by_dataset(found: Sequence[RoleSpending]) -> list[RoleSpending]:
    """Add up the runs on one dataset."""
    kept: dict[tuple[str, str], RoleSpending] = {}
    for one in found:
        before = kept.get((one.dataset, one.role))
        kept[one.dataset, one.role] = one if before is None else add_spending(before, one)
    return list(kept.values())


def add_spending(one: RoleSpending, other: RoleSpending) -> RoleSpending:
    """Add two sums; the cost is known only if both costs are known."""
    return RoleSpending(
        f"{one.run}, {other.run}",
        one.dataset,
        one.role,
        one.models + other.models,
        one.conversations + other.conversations,
        one.calls + other.calls,
        one.counted + other.counted,
        sum_known(one.tokens_in, other.tokens_in),
        sum_known(one.tokens_cached, other.tokens_cached),
        sum_known(one.tokens_out, other.tokens_out),
        None if one.usd is None or other.usd is None else one.usd + other.usd,
        None
        if (one.usd_at_least, other.usd_at_least) == (None, None)
        else (one.usd_at_least or 0) + (other.usd_at_least or 0),
    )


def sum_known(*parts: int | None) -> int | None:
    """The sum of the known values; None if none is known."""
    counts = [part for part in parts if part is not None]
    return sum(counts) if counts else None


@dataclass(frozen=True)
class Scaling:
    """The cost of more models on a dataset, extrapolated from one run."""

    run: str
    dataset: str
    single: float
    pair: float
    rows: list[dict[str, float]]


def forecast_scaling(run: RunScores) -> Scaling | None:
    """Extrapolate the cost of one run's instruments; None if not all of their tokens are known, or
    if they are free.

    A pair costs, on every question, one reply of the evaluator to both full conversations.
    """
    reader, instruments = run.reader, run.config.instruments
    models = {
        alias
        for match in run.matches
        for seat, alias in match.seats.items()
        if seat.role in run.roles
    }
    paid = [row for row in run.cost if row["role"] in instruments]
    usd = total_cost(paid).usd
    if not usd or not models or not run.matches:
        return None
    single, pair = usd / len(models), pairwise_cost(reader, run)
    place = (reader.info.id, dataset_name(run.config.dataset))
    return (
        None if pair is None else Scaling(*place, single, pair, scale_costs(single, pair, MODELS))
    )


def pairwise_cost(reader: RunReader, run: RunScores) -> float | None:
    """The cost of comparing two models on all questions, each with the final length of its
    interview."""
    prices, by_question = run.prices, dict[str, list[float]]()
    for match in run.matches:
        calls = [call for call in reader.calls.of(match.number) if call.seat.role == "evaluator"]
        if not calls:
            continue
        last = max(calls, key=lambda call: (call.round, call.attempt))
        price = prices.of(match.seats[last.seat], last.reply.model_served)
        read, said = last.reply.usage.tokens_in, last.reply.usage.tokens_out
        if price is None or read is None or said is None:
            return None
        rate = price.rate(2 * read)
        by_question.setdefault(match.block, []).append(
            evaluation_cost(2 * read, said, rate.input, rate.output)
        )
    return sum(fmean(each) for each in by_question.values()) if by_question else None
