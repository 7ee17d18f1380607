"""Reads what the calls of a run used: tokens, time and served models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import Any

import orjson

from parley.match.protocol import DeviceSetup
from parley.rules.pool import Seat
from parley.store.reader.snapshot import Section, Snapshot
from parley.store.rows import setup_from
from parley.store.tables import CALLS, MATCHES
from parley.store.types import DeviceTime, MedianLatency, StageUsage, UsageRow

COUNT, SUM = int, int | None  # of SQL
MODEL = (str, *CALLS.types("model_served"))  # an alias, and the model served
USAGE = (str, *CALLS.types("seat", "model_served"), COUNT, COUNT, COUNT, *(SUM,) * 6)
DEVICE_TIME = (str, *CALLS.types("device"), COUNT, int | float, SUM, SUM)
STAGE = MATCHES.types("stage", "arm")


class UsageRows(Section):
    """What calls used."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self._usage_of_all: tuple[UsageRow, ...] | None = None

    def by_model(self, price_steps: Sequence[int] = ()) -> list[UsageRow]:
        """Calls and tokens by alias, seat and model served. Calls whose input exceeds a price step
        are counted separately."""
        if price_steps:
            return [self._usage_from(row) for row in self._usage("", price_steps)]
        if self._usage_of_all is None:  # several parts ask for it, and it reads all calls
            self._usage_of_all = tuple(map(self._usage_from, self._usage("", ())))
        return list(self._usage_of_all)

    def by_stage(self, price_steps: Sequence[int] = ()) -> list[StageUsage]:
        """Calls and tokens by stage and arm of the plan `evolve`."""
        found = []
        for stage, arm, *row in self._usage("m.stage, m.arm, ", price_steps):
            self._snapshot.check((stage, arm), STAGE, "the usage of a stage")
            found.append(StageUsage(stage, arm, self._usage_from(row)))
        return found

    def of_matches(
        self, numbers: Sequence[int], price_steps: Sequence[int] = ()
    ) -> dict[int, list[UsageRow]]:
        """The same for each of these matches."""
        found: dict[int, list[UsageRow]] = {number: [] for number in numbers}
        chosen = orjson.dumps(list(numbers)).decode()
        for number, *row in self._usage("c.match, ", price_steps, chosen):
            found[number].append(self._usage_from(row))
        return found

    def _usage(self, by: str, price_steps: Sequence[int], chosen: str = "") -> Iterator[Any]:
        """Calls and tokens by these columns, alias, seat and model served. `chosen`: only calls of
        these matches, as JSON."""
        size = "".join(f", COALESCE(c.tokens_in, 0) > {step:d}" for step in price_steps)
        counts = ("in", "cached", "out", "reasoning", "written")
        keys = ", ".join(str(1 + at) for at in range(3 + by.count(",")))
        return self._snapshot.rows(
            f"SELECT {by}s.value, c.seat, c.model_served, COUNT(*), "
            "COUNT(c.tokens_in + c.tokens_out), COUNT(COALESCE(c.tokens_in, c.tokens_out)), "
            f"MIN(c.tokens_in), "
            f"{', '.join(self._dialect.add_up(f'c.tokens_{count}') for count in counts)} "
            f"FROM {f'{self._dialect.chosen} CROSS JOIN ' if chosen else ''}calls c "
            f"JOIN matches m ON c.match = m.number JOIN {self._dialect.seats} ON s.key = c.seat "
            f"WHERE c.copied IS NULL {'AND c.match = chosen.value ' if chosen else ''}"
            f"GROUP BY {keys}{size} ORDER BY {keys} NULLS FIRST{size}",
            *filter(None, [chosen]),
        )

    def _usage_from(self, row: Sequence[Any]) -> UsageRow:
        self._snapshot.check(row, USAGE, "the usage of a model")
        alias, key, *rest = row
        self._snapshot.known_alias(alias)
        return UsageRow(alias, self._snapshot.seat(key, "the usage of a model"), *rest)

    def reply_lengths(self) -> Iterator[tuple[int, Seat, int]]:
        """(match, seat, number of characters) for the replies of each seat, by match."""
        # in the order of an index: to add up by seat, a database would sort all calls
        rows = self._snapshot.rows(
            f"SELECT match, seat, {self._dialect.length('content')} FROM calls "
            "ORDER BY match, round, seat, attempt"
        )
        for match, calls in groupby(rows, itemgetter(0)):
            lengths: dict[Any, int] = {}
            for _, key, length in calls:
                lengths[key] = lengths.get(key, 0) + length
            for key, length in lengths.items():
                yield match, self._snapshot.seat(key, f"a call of match {match}"), length

    def median_latencies(self) -> dict[tuple[str, str], MedianLatency]:
        """The median latency of calls, by alias and role; without those of bots."""
        rows = self._snapshot.rows(
            "SELECT s.value, c.seat, c.latency FROM calls c JOIN matches m ON c.match = m.number "
            f"JOIN {self._dialect.seats} ON s.key = c.seat "
            "WHERE c.copied IS NULL AND c.latency IS NOT NULL"
        )
        found: dict[tuple[str, str], list[float]] = {}
        roles: dict[str, str] = {}
        for alias, key, seconds in rows:
            if key not in roles:
                roles[key] = self._snapshot.seat(key, "the latency of a call").role
            found.setdefault((alias, roles[key]), []).append(seconds)
        return {
            (self._snapshot.known_alias(alias), role): MedianLatency(median(waited), len(waited))
            for (alias, role), waited in found.items()
        }

    def called_matches(self) -> Counter[tuple[str, str]]:
        """In how many matches a model was called, by alias and role, whether they ended or not; a
        model with two seats of a match counts once. Copied calls do not count."""
        rows = self._snapshot.rows(
            "SELECT c.match, s.value, c.seat FROM calls c JOIN matches m ON c.match = m.number "
            f"JOIN {self._dialect.seats} ON s.key = c.seat WHERE c.copied IS NULL "
            "GROUP BY 1, 2, 3 ORDER BY 1"
        )
        found: Counter[tuple[str, str]] = Counter()
        roles: dict[str, str] = {}
        for _, group in groupby(rows, key=itemgetter(0)):
            pairs = set()
            for _, alias, key in group:
                if key not in roles:
                    roles[key] = self._snapshot.seat(key, "a call").role
                pairs.add((self._snapshot.known_alias(alias), roles[key]))
            found.update(pairs)
        return found

    def device_times(self) -> list[DeviceTime]:
        """The time of devices by alias and by how a model is run; empty if it was not measured."""
        setups = {
            number: setup_from(self._snapshot.decode(text, DeviceSetup, "the setup of a device"))
            for number, text in self._snapshot.rows(
                "SELECT number, setup FROM devices ORDER BY number"
            )
        }
        if not setups:
            return []
        add_up = self._dialect.add_up
        rows = self._snapshot.rows(
            "SELECT s.value, c.device, COUNT(*), COALESCE(SUM(c.device_seconds), 0), "
            f"{add_up('c.tokens_in')}, {add_up('c.tokens_out')} FROM calls c "
            f"JOIN matches m ON c.match = m.number JOIN {self._dialect.seats} ON s.key = c.seat "
            "WHERE c.copied IS NULL GROUP BY 1, 2 ORDER BY 1, 2"
        )
        found, untimed = list[DeviceTime](), Counter[str]()
        for row in rows:
            self._snapshot.check(row, DEVICE_TIME, "the time of a device")
            alias, device, calls, seconds, into, out = row
            if device is None:
                untimed[alias] = calls
            elif device not in setups:
                self._snapshot.refuse(f"device {device} has no setup")
            else:
                used = (setups[device], calls, seconds, into, out)
                found.append(DeviceTime(self._snapshot.known_alias(alias), *used, untimed=0))
        return [each._replace(untimed=untimed[each.alias]) for each in found]

    def names_served(self) -> dict[str, list[str]]:
        """The served model names by alias, including copied calls."""
        found: dict[str, list[str]] = {}
        for alias, model in self.models_served(copied=True):
            if model is not None:
                found.setdefault(alias, []).append(model)
        return found

    def models_served(self, copied: bool = False) -> list[tuple[str, str | None]]:
        """Every alias with its served model names; None if an endpoint did not report one.
        `copied`: include calls that were copied from another run."""
        found: set[tuple[str, str | None]] = {
            (row.alias, row.model_served) for row in self.by_model()
        }
        if copied:
            for alias, model in self._snapshot.rows(
                "SELECT DISTINCT s.value, c.model_served FROM calls c "
                "JOIN matches m ON c.match = m.number "
                f"JOIN {self._dialect.seats} ON s.key = c.seat WHERE c.copied IS NOT NULL"
            ):
                self._snapshot.check((alias, model), MODEL, "the name of a served model")
                found.add((self._snapshot.known_alias(alias), model))
        return sorted(found, key=lambda each: (each[0], each[1] is not None, each[1] or ""))

    def unsupported_options(self) -> list[dict[str, Any]]:
        """Options that endpoints did not support, by alias, with the number of calls."""
        rows = self._snapshot.rows(
            "SELECT s.value, c.left_out, COUNT(*) FROM calls c "
            "JOIN matches m ON c.match = m.number "
            f"JOIN {self._dialect.seats} ON s.key = c.seat WHERE c.left_out IS NOT NULL GROUP BY "
            "1, 2 ORDER BY 1, 2"
        )
        return [
            {"alias": alias, "options": str(options).split(","), "calls": calls}
            for alias, options, calls in rows
        ]
