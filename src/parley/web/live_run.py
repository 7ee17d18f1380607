"""A run while it is played: progress, pace, endpoints and the latest matches, from few queries."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from parley.money import format_usd
from parley.results.match_list import ListedSeat, rank_scored_seats
from parley.results.run_facts import count_workers, describe_workers, group_attempts
from parley.results.scores import parse_metric
from parley.store.batch_records import Batch
from parley.store.reader import RunReader
from parley.store.types import ENDED, NOBODY, EndpointRecord, MatchRow, RecentCall, RunInfo
from parley.tables import format_duration, plural

RECENT = 200  # calls that pace and latency are taken from
LATEST = 8  # matches
MINUTE = 60.0
SILENT = 30.0  # seconds without a reply after which a page says so


@dataclass(frozen=True)
class LiveProgress:
    """How far a run is."""

    state: str
    reason: str
    done: int
    failed: int
    in_flight: int
    planned: int
    grows: bool  # the plan adds matches as it learns
    pace: str  # calls a minute
    left: str  # the time left; empty if unknown
    spent: str  # against the budget; empty without one
    silence: str  # how long no reply has come, if that is long
    batches: str  # the oldest batch that the run waits for
    has_person: bool  # a person plays, whose answers take longer than those of models
    workers: str  # of a shared run
    resume: str  # the command that continues a run

    @property
    def ended(self) -> int:
        return self.done + self.failed


@dataclass(frozen=True)
class EndpointLine:
    """One model: how fast it answers now, and what limits it."""

    alias: str
    model: str
    place: str  # where it is served
    roles: str
    latency: str
    pace: str
    refused: int  # requests that the endpoint rejected
    unanswered: int  # requests that broke off without a reply
    waiting: int  # calls that wait because the endpoint is down
    limits: str  # as the user set them


@dataclass(frozen=True)
class LatestMatch:
    """A match that was played just now."""

    row: MatchRow
    round: int
    seats: tuple[ListedSeat, ...]
    violations: int

    @property
    def scores(self) -> list[tuple[str, str]]:
        """The models that are scored, with their scores."""
        return [(seat.alias, seat.score_text) for seat in self.seats]


@dataclass(frozen=True)
class LiveRun:
    """What changes on the page of a run while it is played."""

    info: RunInfo
    counts: dict[str, int]
    progress: LiveProgress
    endpoints: tuple[EndpointLine, ...]
    latest: tuple[LatestMatch, ...]


def read_live(reader: RunReader) -> LiveRun:
    """The state of a run. The work does not grow with the number of calls on record."""
    info, counts, now = reader.info, reader.matches.counts(), time.time()
    calls = reader.calls.recent(RECENT)
    matches = read_latest(reader, calls)
    return LiveRun(
        info,
        counts,
        describe_live(reader, counts, calls, now),
        list_endpoints(reader, calls, now),
        matches,
    )


def describe_live(
    reader: RunReader, counts: Mapping[str, int], calls: Sequence[RecentCall], now: float
) -> LiveProgress:
    """Progress, pace and the time left."""
    info, config = reader.info, reader.info.config
    runs = info.state == "running"
    done = sum(counts.get(state, 0) for state in ENDED)
    grows = config.stop is not None or config.evolve is not None
    silent = now - calls[0].at if calls else now - info.created
    spent = ""
    if config.budget_usd is not None:
        usd = reader.run.spent_at_most()[1]
        known = "" if usd is None else f"{format_usd(usd)} of "
        spent = f"{known}{format_usd(config.budget_usd)} USD"
    return LiveProgress(
        state=info.state,
        reason=info.reason or "",
        done=done,
        failed=counts.get("failed", 0),
        in_flight=counts.get("running", 0) if runs else 0,
        planned=info.planned,
        grows=grows,
        pace=describe_pace(calls, calls, now) if runs else "",
        left="" if grows or not runs else describe_left(info.planned - done, calls, now),
        spent=spent,
        silence=f"no reply for {format_duration(silent)}" if runs and silent > SILENT else "",
        batches=describe_sent_batches(reader.batches.read(), now) if runs else "",
        workers=describe_workers(found) if (found := count_workers(reader)) and runs else "",
        resume=f"parley worker {info.id}" if info.reason == NOBODY else f"parley resume {info.id}",
        has_person=any(
            str(options.get("model", "")).startswith("human/")
            for options in config.live_models.values()
        ),
    )


def describe_sent_batches(batches: Sequence[Batch], now: float) -> str:
    """The oldest batch that a provider has, and how many more there are; empty without one. The
    record of a run does not contain how many of its requests are done."""
    sent = [batch for batch in batches if batch.state == "sent"]
    if not sent:
        return ""
    first = sent[0]
    more = f" and {plural(len(sent) - 1, 'more batch', 'more batches')}" if len(sent) > 1 else ""
    return (
        f"waiting for batch {first.number} of {first.alias} "
        f"({plural(first.requests, 'request')}) for {format_duration(now - first.began)}{more}"
    )


def describe_pace(own: Sequence[RecentCall], calls: Sequence[RecentCall], now: float) -> str:
    """How many of the recent calls are `own`, by minute; empty if there are none. It is an estimate
    if the recent ones span less than a minute."""
    recent = sum(now - call.at <= MINUTE for call in own)
    if not recent:
        return ""
    span = now - calls[-1].at
    if len(calls) == RECENT and 0 < span < MINUTE:
        return f"about {round(recent / span * MINUTE):,}"
    return f"{recent:,}"


def describe_left(rest: int, calls: Sequence[RecentCall], now: float) -> str:
    """The time that the rest takes if matches end as fast as they did lately."""
    if not calls or rest <= 0:
        return ""
    since = calls[-1].at
    ended = {call.match for call in calls if call.match_ended and call.match_ended >= since}
    if len(ended) < 2 or now <= since:
        return ""
    return f"about {format_duration(rest * (now - since) / len(ended))} left"


def list_endpoints(
    reader: RunReader, calls: Sequence[RecentCall], now: float
) -> tuple[EndpointLine, ...]:
    """The models that are called, with their latency and pace."""
    config, unanswered, health = (
        reader.info.config,
        reader.run.unanswered(),
        reader.run.endpoint_health(),
    )
    by_alias: dict[str, list[RecentCall]] = {}
    for call in calls:
        by_alias.setdefault(call.alias, []).append(call)
    lines = []
    for alias, options in config.live_models.items():
        own = by_alias.get(alias, [])
        waits = [call.latency for call in own if call.latency is not None]
        roles = dict.fromkeys(call.seat.role for call in own)
        lines.append(
            EndpointLine(
                alias,
                str(options.get("model", "")),
                urlsplit(str(options.get("base_url", ""))).netloc.rpartition("@")[2],
                ", ".join(role.replace("_", " ") for role in roles),
                format_duration(median(waits)) if waits else "–",
                describe_pace(own, calls, now) if reader.info.state == "running" else "",
                health.get(alias, EndpointRecord()).refused,
                sum(unanswered.get(alias, {}).values()),
                health.get(alias, EndpointRecord()).waiting,
                describe_limits(options),
            )
        )
    return tuple(lines)


def describe_limits(options: Mapping[str, Any]) -> str:
    """The limits that the user set for a model."""
    words = {
        "concurrency": "{:,} at a time",
        "rpm": "{:,} requests a minute",
        "tpm": "{:,} tokens a minute",
    }
    return ", ".join(
        form.format(options[name])
        for name, form in words.items()
        if isinstance(options.get(name), int | float)
    )


def read_latest(reader: RunReader, calls: Sequence[RecentCall]) -> tuple[LatestMatch, ...]:
    """The matches of the latest calls."""
    rounds: dict[int, int] = {}
    for call in calls:
        if call.match in rounds or len(rounds) < LATEST:
            rounds[call.match] = max(call.round, rounds.get(call.match, 0))
    metrics = [parse_metric(each) for each in reader.info.identity["metrics"]]
    roles, found = reader.info.identity["roles"], []
    for number, round in rounds.items():
        row = reader.matches.find(number)
        if row is not None:
            seats = rank_scored_seats(row, roles, metrics, reader.scores.of(number))
            faults = len(group_attempts(reader.violations.read(number)))
            found.append(LatestMatch(row, round, seats, faults))
    return tuple(found)
