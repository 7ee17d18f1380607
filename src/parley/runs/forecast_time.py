"""Forecasts how long a run will take with its limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from parley.participants._registry import ModelLimits
from parley.runs.stand_ins import Count
from parley.tables import format_duration

MINUTE = 60.0


class CallSpeed(NamedTuple):
    """How fast an endpoint is assumed to answer."""

    wait: float  # seconds until the first token
    tokens: float  # per second

    def seconds(self, count: Count) -> float:
        """How long the calls take, one after the other."""
        return count.calls * self.wait + count.tokens_out / self.tokens


FAST, SLOW = CallSpeed(0.5, 100.0), CallSpeed(3.0, 25.0)


class RunTime(NamedTuple):
    """How many seconds a run takes, and which limit determines that."""

    seconds: float
    limited_by: str


def estimate_time(
    loads: Mapping[str, Count],
    limits: Mapping[str, ModelLimits],
    rounds: float,
    matches: int,
    concurrency: int,
    speed: CallSpeed,
) -> RunTime:
    """The time of a run, which its tightest limit determines.

    `loads` has the calls of every model that takes time; bots do not. In a round all seats are
    asked at the same time, so a match takes as many replies as it has rounds. `rounds` is the
    number of rounds of all matches together.
    """
    calls = sum(count.calls for count in loads.values())
    if not calls:
        return RunTime(0.0, "")
    reply = sum(speed.seconds(count) for count in loads.values()) / calls
    at_once = min(concurrency, matches)
    found = [RunTime(min(rounds, calls) * reply / at_once, f"--concurrency {concurrency}")]
    for alias, count in loads.items():
        own = limits.get(alias, ModelLimits())
        if own.concurrency:
            seconds = speed.seconds(count) / own.concurrency
            found.append(RunTime(seconds, f"{alias}.concurrency={own.concurrency}"))
        if own.rpm:
            found.append(RunTime(count.calls / own.rpm * MINUTE, f"{alias}.rpm={own.rpm}"))
        if own.tpm:
            tokens = count.tokens_in + count.tokens_out
            found.append(RunTime(tokens / own.tpm * MINUTE, f"{alias}.tpm={own.tpm}"))
    return max(found)


def describe_time(low: RunTime, high: RunTime) -> str:
    """The time of a run in a line, with what it assumes."""
    return (
        f"the run takes about {format_duration(low.seconds)} to {format_duration(high.seconds)}, "
        f"limited by {high.limited_by} (assuming {FAST.wait:g} to {SLOW.wait:g} s to the first "
        f"token, then {SLOW.tokens:g} to {FAST.tokens:g} tokens per second)"
    )
