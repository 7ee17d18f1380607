"""Forecasts the same run with other numbers of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from parley.config.prepare import Prepared
from parley.errors import UsageError
from parley.money import format_usd
from parley.plans import MatchSpec
from parley.plans.arrangements import ARRANGEMENTS, SeatingProblem
from parley.tables import plural

NUMBERS = (1, 10, 100)  # of models, as in KIEval's table 15
MOST_MATCHES = 100_000  # of a block; more are not counted


def forecast_growth(
    prepared: Prepared, specs: Sequence[MatchSpec], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Matches, calls and cost for other numbers of models like these, with the same number of
    blocks.

    Each further contestant is assumed to cost as much per seat as the present ones do on average.
    Judges, other instruments and an adversary cost as much per match as now. Numbers of models that
    the plan cannot seat are left out, and so is a race, whose matches depend on its scores.
    """
    config = prepared.config
    models = list(config.contestants)
    now = count_seats(prepared, len(models))
    if config.plan == "race" or config.rejudged or config.screening or now is None or not specs:
        return []
    matches, seats = now
    blocks = len(specs) / matches

    def total(numbers: Sequence[float | None], share: float) -> float | None:
        known = [number for number in numbers if number is not None]
        return None if len(known) < len(numbers) else sum(known) * share

    def sum_rows(key: str, end: str, more_seats: float, more_matches: float) -> float | None:
        parts = [
            total(
                [
                    row["usd"][end] if key == "usd" else row["range"][key][end]
                    for row in rows
                    if (row["alias"] in models and not prepared.task.roles[row["role"]].instrument)
                    is ranked
                ],
                share,
            )
            for ranked, share in ((True, more_seats), (False, more_matches))
        ]
        return None if None in parts else sum(filter(None, parts))

    found = []
    for number in sorted({*NUMBERS} - {len(models)}):
        then = count_seats(prepared, number)
        if then is None:
            continue
        shares = then[1] / seats, then[0] / matches
        calls = {end: sum_rows("calls", end, *shares) for end in ("low", "high")}
        found.append(
            {
                "models": number,
                "matches": round(then[0] * blocks),
                "calls": {end: round(value or 0) for end, value in calls.items()},
                "usd": {end: sum_rows("usd", end, *shares) for end in ("low", "high")},
            }
        )
    return found


def count_seats(prepared: Prepared, models: int) -> tuple[int, int] | None:
    """The matches of a block for a number of models, and the seats that they take there; None if
    the plan cannot seat them or there are too many matches."""
    config = prepared.config
    if config.plan not in ARRANGEMENTS:
        return None
    names = [f"model {number}" for number in range(1, models + 1)]
    problem = SeatingProblem(
        prepared.task, names, config.seats, config.seed, config.adversary or ""
    )
    try:
        found = list(islice(ARRANGEMENTS[config.plan](problem, 0, 0), MOST_MATCHES + 1))
    except UsageError:
        return None
    if not 0 < len(found) <= MOST_MATCHES:
        return None
    seats = sum(alias in set(names) for seating in found for alias in seating.values())
    return len(found), seats


def describe_growth(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for every number of models."""
    found = []
    for row in rows:
        calls, usd = row["calls"], row["usd"]
        cost = (
            "cost unknown"
            if usd["low"] is None or usd["high"] is None
            else f"{format_usd(usd['low'])} to {format_usd(usd['high'])} USD"
        )
        found.append(
            f"with {plural(row['models'], 'model')} like these: "
            f"{plural(row['matches'], 'match', 'matches')}, {calls['low']:,} to "
            f"{calls['high']:,} calls, {cost}"
        )
    return found
