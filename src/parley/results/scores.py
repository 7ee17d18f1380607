"""What a run has found, as plain data: computed from the run's file alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from parley.errors import UsageError
from parley.money import costs as costs
from parley.plans.stop_targets import leading_metrics
from parley.results.signature import signature
from parley.rules.task import Metric
from parley.statistics import bradley_terry as bradley_terry
from parley.statistics import estimates as plain
from parley.statistics import role_tables as roles
from parley.statistics.estimates import Observation
from parley.statistics.intervals import ALPHA, interval
from parley.statistics.role_tables import Seated
from parley.store import RunReader
from parley.tables import plural

if TYPE_CHECKING:
    from parley.statistics.anytime import Anytime


class Findings:
    """A run's scores, looked at from every side; what is idle does not count."""

    def __init__(self, reader: RunReader, method: str = "block") -> None:
        self.reader, self.config, self.method = reader, reader.info.config, method
        self.metrics: dict[str, dict[str, Any]] = {
            metric["name"]: dict(metric) for metric in reader.info.identity["metrics"]
        }
        self.bounds = {
            name: (metric["low"], metric["high"]) for name, metric in self.metrics.items()
        }
        self.lower = frozenset(
            name for name, metric in self.metrics.items() if metric["better"] == "lower"
        )
        self.roles = [
            name for name, kind in reader.info.identity["roles"].items() if kind == "contestant"
        ]
        self._scores = list(reader.scores())
        # those that count
        self.matches = [match for match in reader.matches() if match.has_ended]
        if self.config.stop is not None:
            if method != "block":
                raise UsageError(
                    "this run stopped by what it saw: "
                    "only intervals that hold at every look are right for it"
                )
            # its plan looks at whole blocks only, and so do its results
            whole = whole_blocks(reader)
            self._scores = [score for score in self._scores if score.block in whole]
            self.matches = [match for match in self.matches if match.block in whole]
        self.observations = [
            Observation(
                score.block, score.match, score.alias, score.seat.role, score.metric, score.value
            )
            for score in self._scores
            if not score.idle
        ]

    @cached_property
    def _anytime(self) -> dict[str, Anytime] | None:
        """By metric, what can be said of a run that stopped by what it saw."""
        stop = self.config.stop
        if stop is None:
            return None
        from parley.statistics.anytime import Scale, anytime

        population = len(self.reader.items()) if stop.target == "these_items" else None
        repeats = {match.number: match.repeat for match in self.reader.matches()}
        found = {}
        for metric in self._declared:
            scale = Scale(metric.low, metric.high, stop.epsilon(metric, self._declared[0]))
            if scale.low < scale.high and scale.epsilon > 0:
                found[metric.name] = anytime(
                    self.observations,
                    metric.name,
                    scale,
                    stop.alpha,
                    len(self.roles),
                    repeats,
                    population,
                )
        return found

    @property
    def _declared(self) -> list[Metric]:
        return [
            Metric(**{**metric, "roles": tuple(metric["roles"])})
            for metric in self.metrics.values()
        ]

    def measured(self, role: str) -> str | None:
        """What a role is known by: the first metric that is measured for it alone, else the first
        that is measured for it."""
        own = [
            metric
            for metric in self.metrics.values()
            if not metric.get("judged") and (not metric["roles"] or role in metric["roles"])
        ]
        alone = [metric for metric in own if list(metric["roles"]) == [role]]
        return next((str(metric["name"]) for metric in [*alone, *own]), None)

    def leading(self, role: str) -> str | None:
        """What a role is ranked by: what is measured of it alone; where nothing is, the task's
        first metric that it has."""
        own = [
            metric
            for metric in self.metrics.values()
            if not metric["roles"] or role in metric["roles"]
        ]
        alone = [
            metric for metric in own if list(metric["roles"]) == [role] and not metric.get("judged")
        ]
        return next((str(metric["name"]) for metric in [*alone, *own]), None)

    def results(self) -> list[dict[str, Any]]:
        """Every model in every role and metric: mean, interval, n, what is missing, what the score
        rests on."""
        served, order = self.reader.names_served(), list(self.metrics)
        faults = Counter((fault.alias, fault.seat.role) for fault in self.reader.violations())
        found = plain.cells(self.observations, self.bounds, self.method)
        without = failed(self.reader, self._declared, self.roles)
        cells = {(cell.alias, cell.role, cell.metric) for cell in found}
        nothing = interval([], (0, 0))
        found += [
            plain.Cell(*key, None, nothing, None, 0, 0, 0) for key in without if key not in cells
        ]
        rows = []
        for cell in sorted(
            found, key=lambda cell: (order.index(cell.metric), cell.role, cell.alias)
        ):
            low, high, kind = self._interval(cell)
            facts = {
                "alias": cell.alias,
                "model_requested": self.config.models[cell.alias]["model"],
                "model_served": served.get(cell.alias, []),
                "role": cell.role,
                "metric": cell.metric,
                "unit": self.metrics[cell.metric]["unit"],
                "mean": cell.mean,
                "low": low,
                "high": high,
                "sd": cell.sd,
                "interval": kind,
                "blocks": cell.blocks,
                "matches": cell.matches,
                "missing": cell.missing + without[cell.alias, cell.role, cell.metric],
                "violations": faults[cell.alias, cell.role],
                "signature": signature(self.reader, cell.matches),
            }
            rows.append(facts)
        return rows

    def _interval(self, cell: plain.Cell) -> tuple[float | None, float | None, str | None]:
        """The interval of a fixed run; of one that stopped by what it saw, the one that holds at
        every look."""
        if self._anytime is None:
            return cell.interval
        known = self._anytime.get(cell.metric)
        found = known.intervals.get((cell.metric, cell.role, cell.alias)) if known else None
        return (*found, "anytime") if found else (None, None, None)

    def pairs(self) -> list[plain.Pair]:
        """All differences between models in one role and metric, in a fixed order."""
        if self._anytime is None:
            found = plain.pairs(
                plain.block_means(self.observations), self.bounds, method=self.method
            )
        else:
            found = [pair for each in self._anytime.values() for pair in each.pairs]
        order = list(self.metrics)
        return sorted(found, key=lambda pair: (order.index(pair.metric), pair.role, pair.a, pair.b))

    def ranks(self, pairs: Sequence[plain.Pair]) -> list[plain.Rank]:
        """The places that each model may truly hold."""
        order, alpha = list(self.metrics), self.config.stop.alpha if self.config.stop else ALPHA
        found = plain.ranks(plain.block_means(self.observations), pairs, self.lower, alpha)
        return sorted(
            found,
            key=lambda rank: (order.index(rank.metric), rank.role, rank.low, rank.high, rank.alias),
        )

    def seated(self) -> list[Seated]:
        """Scores with their places; an idle seat is known, its score is not."""
        return [
            Seated(
                s.block,
                s.match,
                s.seat.role,
                s.seat.number,
                s.alias,
                s.metric,
                None if s.idle else s.value,
            )
            for s in self._scores
            if s.seat.role in self.roles
        ]

    @cached_property
    def places(self) -> tuple[roles.Place, roles.Place] | None:
        return roles.places(self.seated(), self.roles)

    def meetings(self) -> list[roles.Meeting]:
        """Matches of two, where that is what is played."""
        return roles.meetings(self.seated(), self.places) if self.places else []

    def tables(self) -> list[dict[str, Any]]:
        """First seats down, second seats across (DynaEval, tables 1 to 6); unplayed pairs are
        null."""
        seats = self.places
        if seats is None:
            return []
        found = roles.role_tables(
            self.meetings(), [*self.config.players, *self.config.excluded], self.bounds
        )
        return [
            {
                "metric": metric,
                "digits": self.metrics[metric].get("digits", 2),
                "first": place_name(*seats[0]),
                "second": place_name(*seats[1]),
                "cells": [
                    {"first": row, "second": column, "cell": None if cell is None else cell.facts()}
                    for (row, column), cell in found[metric].cells.items()
                    if row != column
                ],
                **found[metric].margins.facts(),
            }
            for metric in self.metrics
            if metric in found
        ]

    def positions(self) -> list[dict[str, Any]]:
        """What sitting early or late in a role was worth."""
        return [
            {
                "role": effect.role,
                "metric": effect.metric,
                "position": effect.position,
                "effect": effect.mean,
                "low": effect.interval.low,
                "high": effect.interval.high,
                "blocks": effect.blocks,
            }
            for effect in roles.position_effects(self.seated(), self.bounds)
        ]

    def ratings(self) -> list[dict[str, Any]]:
        """Bradley-Terry ratings of the metrics that say who of two won."""
        met = self.meetings()
        found = []
        for metric, bounds in self.bounds.items():
            here = [meeting for meeting in met if meeting.metric == metric]
            if bradley_terry.is_win_loss(here, bounds):
                fitted = bradley_terry.ratings(bradley_terry.games(here))
                models = [
                    {"alias": m.alias, "group": m.group, "matches": m.matches, "blocks": m.blocks}
                    | {"logit": m.logit._asdict(), "elo": m.elo._asdict()}
                    for m in fitted.models
                ]
                found.append(
                    {
                        "metric": metric,
                        "models": models,
                        "first_mover": fitted.first_mover._asdict(),
                    }
                )
        return found

    def stability(self) -> dict[str, Any] | None:
        """How the intervals of a run that stopped by what it saw became narrow, look by look."""
        stop = self.config.stop
        if stop is None or self._anytime is None:
            return None
        leading = leading_metrics(self._declared, self.roles, stop)
        paths = []
        for metric in dict.fromkeys(leading.values()):
            path = self._anytime[metric.name].path
            points = [
                {
                    "blocks": point.blocks,
                    "matches": point.matches,
                    "half_widths": [
                        {"role": role, "alias": alias, "half_width": width}
                        for (role, alias), width in point.half_widths.items()
                        if role in leading and leading[role].name == metric.name
                    ],
                }
                for point in path
            ]
            paths.append({"metric": metric.name, "half_width": metric.epsilon, "points": points})
        return {**asdict(stop), "plan": self.config.plan, "paths": paths}


def whole_blocks(reader: RunReader) -> set[str]:
    """Blocks of which every match has ended."""
    matches = list(reader.matches())
    return {match.block for match in matches} - {m.block for m in matches if not m.has_ended}


def place_name(role: str, position: int) -> str:
    """A seat's role and position as a table names them."""
    return f"{role} {position}" if position else role


def run_facts(reader: RunReader) -> dict[str, Any]:
    """The `run` object of results and of `parley ls`."""
    config, counts = reader.info.config, reader.counts()
    return {
        "id": reader.info.id,
        "name": config.name or None,
        "task": reader.info.identity["task"],
        "params": config.params,
        "models": config.models,
        "excluded": config.excluded,
        "plan": config.plan,
        "seed": config.seed,
        "sandbox": config.sandbox if reader.info.identity.get("runs_code") else None,
        "budget": {"usd": config.budget_usd, "calls": config.max_calls},
        "state": reader.info.state,
        "stop": {"status": reader.info.status, "reason": reader.info.reason},
        "matches": {
            "planned": reader.info.planned,
            "done": counts.get("done", 0) + counts.get("aborted", 0),
            "failed": counts.get("failed", 0),
        },
        "parley": reader.info.identity["parley"],
        "created": datetime.fromtimestamp(reader.info.created, UTC).isoformat(timespec="seconds"),
    }


def violated(reader: RunReader) -> list[dict[str, Any]]:
    """The `violations` object: how often which model did what."""
    counted = Counter((each.alias, each.kind) for each in reader.violations())
    return [
        {"alias": alias, "kind": kind, "count": count}
        for (alias, kind), count in sorted(counted.items())
    ]


def asked_without(left_out: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for every model whose endpoint did not take all that was set for it."""
    said = {"system": "a system role"}
    return [
        f"{found['alias']} was asked without "
        f"{', '.join(said.get(option, option) for option in found['options'])} "
        f"in {plural(found['calls'], 'call')}: its endpoint does not take that"
        for found in left_out
    ]


MOST = 8  # models that are named


def failed(
    reader: RunReader, metrics: Sequence[Metric], contestants: Sequence[str]
) -> Counter[tuple[str, str, str]]:
    """By alias, role and metric, the scores that matches which failed have not given; a plan that
    looks knows none of them."""
    seats = [
        (alias, seat.role)
        for match in (reader.matches() if reader.info.config.stop is None else ())
        if match.state == "failed"
        for seat, alias in match.seats.items()
        if seat not in match.idle
    ]
    return Counter(
        (alias, role, metric.name)
        for alias, role in seats
        for metric in metrics
        if role in (metric.roles or contestants)
    )


def unfinished(reader: RunReader) -> list[dict[str, Any]]:
    """In a run that stopped, the models with matches that were not finished, and how many were
    planned for them."""
    if reader.info.state not in ("stopped", "failed"):
        return []
    planned, ended = Counter[str](), Counter[str]()
    for match in reader.matches():
        aliases = set(match.seats.values())
        planned.update(aliases)
        ended.update(aliases if match.has_ended else ())
    return [
        {"alias": alias, "matches": planned[alias] - ended[alias], "planned": planned[alias]}
        for alias in reader.info.config.models
        if planned[alias] > ended[alias]
    ]


def not_finished(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line on the models whose matches were not finished."""
    shown = [
        f"{each['alias']} {each['matches']:,} of {each['planned']:,} matches"
        for each in found[:MOST]
    ]
    more = [f"and {len(found) - MOST} more models"] if len(found) > MOST else []
    return [f"not finished: {', '.join([*shown, *more])}"] if shown else []
