"""What a run that stopped did not bring: matches that failed or were never played, by model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from parley.rules.pool import Seat
from parley.rules.task import Metric
from parley.store.sqlite.reader import Archive

MOST = 8  # models that are named


def failed(archive: Archive, metrics: Sequence[Metric], contestants: Sequence[str]) -> Counter[tuple[str, str, str]]:
    """By alias, role and metric, the scores that matches which failed have not given; a plan that looks knows none of them."""
    seats = [
        (alias, Seat.of(seat).role)
        for match in (archive.matches() if archive.config.stop is None else ())
        if match["state"] == "failed"
        for seat, alias in match["seats"].items()
        if seat not in match["idle"]
    ]
    return Counter(
        (alias, role, metric.name) for alias, role in seats for metric in metrics if role in (metric.roles or contestants)
    )


def unfinished(archive: Archive) -> list[dict[str, Any]]:
    """In a run that stopped, the models with matches that were not finished, and how many were planned for them."""
    if archive.state not in ("stopped", "failed"):
        return []
    planned, ended = Counter[str](), Counter[str]()
    for match in archive.matches():
        aliases = set(match["seats"].values())
        planned.update(aliases)
        ended.update(aliases if match["state"] in ("done", "aborted") else ())
    return [
        {"alias": alias, "matches": planned[alias] - ended[alias], "planned": planned[alias]}
        for alias in archive.config.models
        if planned[alias] > ended[alias]
    ]


def not_finished(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line on the models whose matches were not finished."""
    shown = [f"{each['alias']} {each['matches']:,} of {each['planned']:,} matches" for each in found[:MOST]]
    more = [f"and {len(found) - MOST} more models"] if len(found) > MOST else []
    return [f"not finished: {', '.join([*shown, *more])}"] if shown else []
