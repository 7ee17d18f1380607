"""Reads the run as a whole: what it is, how it ended, what it has cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict, get_args

from parley.errors import StoreError, UsageError
from parley.rules.parsing import is_deeper_than
from parley.store.config import DEEPEST, Config, Identity, PriceFacts
from parley.store.decoding import find_misfit
from parley.store.owner import Owner, seems_alive
from parley.store.reader.snapshot import Snapshot
from parley.store.tables import HISTORY, PART_RESULTS, RUN_TABLES, RUNS, list_names
from parley.store.types import (
    EndpointRecord,
    HistoryEntry,
    HistoryKind,
    RunInfo,
    StoredPart,
    WorkerRow,
)
from parley.tables import shorten

RUN = (
    *("id", "created", "config", "identity", "state", "status", "reason", "planned", "owner"),
    *("heartbeat", "digest"),
)
RUN_TYPES = RUNS.types(*RUN)
SECRET = re.compile(r"[0-9a-f]{32}")
LATEST = 253_402_300_799  # seconds from 1970 to the end of the year 9999


class SettingsFacts(TypedDict):
    """Settings of a run, as its history has them."""

    settings: dict[str, Any]


class SealFacts(TypedDict):
    """The end of a run when it was sealed, as its history has it."""

    state: str
    status: str | None
    reason: str | None
    matches: int


ENTRY_FACTS = {
    "began": SettingsFacts,
    "opened": dict[str, Any],
    "settings": SettingsFacts,
    "prices": dict[str, Any],
    "sealed": SealFacts,
}


class RunFactsReader(Snapshot):
    """Reads the facts of the run as a whole."""

    def _read_info(self) -> RunInfo:
        """Read what others need to check what they read."""
        row = self._row(f"SELECT {', '.join(RUN)} FROM runs")
        if row is None:
            raise StoreError(f"{self.ref.location} contains no run: it may be incomplete")
        self._check(row, RUN_TYPES, "the run")
        id, created, config, identity, state, status, reason, planned, owner, heartbeat, digest = (
            row
        )
        try:
            known = Config.decoded(config)
        except (ValueError, TypeError, UsageError) as wrong:
            raise StoreError(
                f"{self.ref.location}: the configuration of the run cannot be read: {wrong}"
            ) from None
        if state == "running" and not self._is_played(Owner.of(owner or ""), float(heartbeat or 0)):
            state, status, reason = "stopped", "interrupted", self._why_interrupted()
        if not 0 <= created <= LATEST:
            self._damaged(f"its creation time {created:g} is not a valid time")
        rests: Identity = self._json(identity, Identity, "identity")
        if is_deeper_than(rests, DEEPEST):
            self._damaged(f"its identity has more than {DEEPEST} nested levels")
        for role in rests["seats"]:
            if role not in rests["roles"]:
                self._damaged(f"its identity has seats for {role!r}, which is not a role")
        if not rests["metrics"]:
            self._damaged("its identity has no metrics")
        for alias, price in rests.get("prices", {}).items():
            self._check_price(price, f"the price of {alias}")
        return RunInfo(
            self.ref,
            id,
            created,
            known,
            rests,
            state,
            status,
            reason,
            planned,
            digest=digest or "",
        )

    def _why_interrupted(self) -> str:
        """Why nobody plays a run that has not ended."""
        return "the process was killed or crashed"

    def _is_played(self, owner: Owner, heartbeat: float) -> bool:
        """Whether a process plays the run now."""
        return seems_alive(owner, heartbeat)

    def workers(self) -> list[WorkerRow]:
        """The workers of a shared run, the oldest first."""
        return []

    def items(self) -> list[dict[str, Any]]:
        """The items of the run, as they were when it began."""
        found = []
        for id, data in self._rows("SELECT id, data FROM items ORDER BY number"):
            item = self._json(data, dict[str, Any], f"item {id}")
            if str(item.get("id")) != id:
                self._damaged(f"item {shorten(id)} has a different id in its data")
            found.append(item)
        return found

    def quotation_secret(self) -> str:
        """The secret of the run from which the marks of its quotations come, in hexadecimal. Show
        it to nobody."""
        (secret,) = self._row("SELECT quotation_secret FROM runs")
        if not isinstance(secret, str) or not SECRET.fullmatch(secret):
            self._damaged("the secret of its quotations must be 32 hexadecimal digits")
        return secret

    def prices(self) -> list[dict[str, Any]]:
        """The prices when the run was played, by alias and served model name."""
        kept = self._row("SELECT prices FROM runs")[0] or "[]"
        found: list[dict[str, Any]] = self._json(kept, list[PriceFacts], "prices")
        for price in found:
            if wrong := find_misfit(
                [price.get("alias"), price.get("model_served") or ""],
                list[str],
                "the model of a price",
            ):
                self._damaged(wrong)
            self._check_price(price, "a price")
        return found

    def _check_price(self, price: Mapping[str, Any], what: str) -> None:
        rates = price["rates"]
        if not rates or any(len(rate) not in (4, 5) or None in rate[:4] for rate in rates):
            self._damaged(
                f"{what} is {shorten(rates)}: each rate must have a size and three or four prices"
            )

    def _counts(self) -> tuple[str | None, str | None, str | None]:
        """Spending, unanswered requests and the health of endpoints, as JSON."""
        found: tuple[str | None, str | None, str | None] = self._row(
            "SELECT spent, unanswered, health FROM runs"
        )
        return found

    def count_replies(self) -> int:
        """The number of replies on record, without copied ones."""
        return int(self._row("SELECT COUNT(*) FROM calls WHERE copied IS NULL")[0])

    def spent_at_most(self) -> tuple[int, float | None]:
        """Upper bounds of the number of calls sent and, if known, of their cost."""
        kept = self._json(self._counts()[0] or "{}", dict[str, float | None], "spent")
        return max(self.count_replies(), int(kept.get("calls") or 0)), kept.get("usd")

    def unanswered(self) -> dict[str, dict[str, int]]:
        """Requests that broke off after they were sent, by alias and role: they may have been
        billed without a reply on record."""
        found: dict[str, dict[str, int]] = self._json(
            self._counts()[1] or "{}", dict[str, dict[str, int]], "unanswered"
        )
        return found

    def endpoint_health(self) -> dict[str, EndpointRecord]:
        """How endpoints answer, by alias; those without any trouble may be missing."""
        facts = self._json(self._counts()[2] or "{}", dict[str, dict[str, int]], "health")
        return {
            alias: EndpointRecord(each.get("refused", 0), each.get("waiting", 0))
            for alias, each in facts.items()
        }

    def history(self) -> list[HistoryEntry]:
        """What happened to the run as a whole: its settings, its seals, and when it was opened."""
        found = []
        for row in self._rows(f"SELECT {HISTORY.row} FROM history ORDER BY number"):
            self._check(row, HISTORY.types(), "the history of the run")
            number, at, kind, facts, digest = row
            if kind not in get_args(HistoryKind):
                self._damaged(f"the history of the run has an entry of the unknown kind {kind!r}")
            decoded = self._json(facts, ENTRY_FACTS[kind], f"entry {number} of the history")
            found.append(HistoryEntry(number, at, kind, decoded, digest))
        return found

    def part_results(self) -> list[StoredPart]:
        """The stored results of analyses."""
        rows = self._rows(f"SELECT {PART_RESULTS.row} FROM part_results ORDER BY name")
        found = []
        for row in rows:
            self._check(row, PART_RESULTS.types(), "the result of a part")
            found.append(StoredPart(*row))
        return found

    def moved_rows(self, table: str) -> Iterator[Any]:
        """The rows of a table as they move to another store."""
        spec = RUN_TABLES[table]
        return self._rows(f"SELECT {list_names(spec.moved)} FROM {table} ORDER BY {spec.order}")
