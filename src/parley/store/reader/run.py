"""Reads the run as a whole: what it is, how it ended, what it has cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypedDict, get_args

from parley.errors import StoreError, UsageError
from parley.rules.parsing import is_deeper_than
from parley.store.config import DEEPEST, Config, Identity, PriceFacts
from parley.store.decoding import find_misfit
from parley.store.owner import Owner
from parley.store.reader.calls import CallRows
from parley.store.reader.snapshot import Section, Snapshot
from parley.store.tables import HISTORY, PART_RESULTS, RUNS
from parley.store.types import (
    EndpointRecord,
    HistoryEntry,
    HistoryKind,
    RunInfo,
    StoredPart,
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


class RunRows(Section):
    """The facts of the run as a whole."""

    def __init__(self, snapshot: Snapshot, calls: CallRows) -> None:
        super().__init__(snapshot)
        self._calls = calls

    def items(self) -> list[dict[str, Any]]:
        """The items of the run, as they were when it began."""
        found = []
        for id, data in self._snapshot.rows("SELECT id, data FROM items ORDER BY number"):
            item = self._snapshot.decode(data, dict[str, Any], f"item {id}")
            if str(item.get("id")) != id:
                self._snapshot.refuse(f"item {shorten(id)} has a different id in its data")
            found.append(item)
        return found

    def quotation_secret(self) -> str:
        """The secret of the run from which the marks of its quotations come, in hexadecimal. Show
        it to nobody."""
        (secret,) = self._snapshot.row("SELECT quotation_secret FROM runs")
        if not isinstance(secret, str) or not SECRET.fullmatch(secret):
            self._snapshot.refuse("the secret of its quotations must be 32 hexadecimal digits")
        return secret

    def prices(self) -> list[dict[str, Any]]:
        """The prices when the run was played, by alias and served model name."""
        kept = self._snapshot.row("SELECT prices FROM runs")[0] or "[]"
        found: list[dict[str, Any]] = self._snapshot.decode(kept, list[PriceFacts], "prices")
        for price in found:
            if wrong := find_misfit(
                [price.get("alias"), price.get("model_served") or ""],
                list[str],
                "the model of a price",
            ):
                self._snapshot.refuse(wrong)
            check_price(self._snapshot, price, "a price")
        return found

    def spent_at_most(self) -> tuple[int, float | None]:
        """Upper bounds of the number of calls sent and, if known, of their cost."""
        kept = self._snapshot.decode(
            self._snapshot.counters()[0] or "{}", dict[str, float | None], "spent"
        )
        return max(self._calls.count(), int(kept.get("calls") or 0)), kept.get("usd")

    def unanswered(self) -> dict[str, dict[str, int]]:
        """Requests that broke off after they were sent, by alias and role: they may have been
        billed without a reply on record."""
        found: dict[str, dict[str, int]] = self._snapshot.decode(
            self._snapshot.counters()[1] or "{}", dict[str, dict[str, int]], "unanswered"
        )
        return found

    def endpoint_health(self) -> dict[str, EndpointRecord]:
        """How endpoints answer, by alias; those without any trouble may be missing."""
        facts = self._snapshot.decode(
            self._snapshot.counters()[2] or "{}", dict[str, dict[str, int]], "health"
        )
        return {
            alias: EndpointRecord(each.get("refused", 0), each.get("waiting", 0))
            for alias, each in facts.items()
        }

    def history(self) -> list[HistoryEntry]:
        """What happened to the run as a whole: its settings, its seals, and when it was opened."""
        found = []
        for row in self._snapshot.rows(f"SELECT {HISTORY.row} FROM history ORDER BY number"):
            self._snapshot.check(row, HISTORY.types(), "the history of the run")
            number, at, kind, facts, digest = row
            if kind not in get_args(HistoryKind):
                self._snapshot.refuse(
                    f"the history of the run has an entry of the unknown kind {kind!r}"
                )
            decoded = self._snapshot.decode(
                facts, ENTRY_FACTS[kind], f"entry {number} of the history"
            )
            found.append(HistoryEntry(number, at, kind, decoded, digest))
        return found

    def part_results(self) -> list[StoredPart]:
        """The stored results of analyses."""
        rows = self._snapshot.rows(f"SELECT {PART_RESULTS.row} FROM part_results ORDER BY name")
        found = []
        for row in rows:
            self._snapshot.check(row, PART_RESULTS.types(), "the result of a part")
            found.append(StoredPart(*row))
        return found


def read_info(snapshot: Snapshot) -> RunInfo:
    """Read what others need to check what they read."""
    row = snapshot.row(f"SELECT {', '.join(RUN)} FROM runs")
    if row is None:
        raise StoreError(f"{snapshot.ref.location} contains no run: it may be incomplete")
    snapshot.check(row, RUN_TYPES, "the run")
    id, created, config, identity, state, status, reason, planned, owner, heartbeat, digest = row
    try:
        known = Config.decoded(config)
    except (ValueError, TypeError, UsageError) as wrong:
        raise StoreError(
            f"{snapshot.ref.location}: the configuration of the run cannot be read: {wrong}"
        ) from None
    if state == "running" and not snapshot.is_played(Owner.of(owner or ""), float(heartbeat or 0)):
        state, status, reason = "stopped", "interrupted", snapshot.why_interrupted()
    if not 0 <= created <= LATEST:
        snapshot.refuse(f"its creation time {created:g} is not a valid time")
    rests: Identity = snapshot.decode(identity, Identity, "identity")
    if is_deeper_than(rests, DEEPEST):
        snapshot.refuse(f"its identity has more than {DEEPEST} nested levels")
    for role in rests["seats"]:
        if role not in rests["roles"]:
            snapshot.refuse(f"its identity has seats for {role!r}, which is not a role")
    if not rests["metrics"]:
        snapshot.refuse("its identity has no metrics")
    for alias, price in rests.get("prices", {}).items():
        check_price(snapshot, price, f"the price of {alias}")
    return RunInfo(
        snapshot.ref,
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


def check_price(snapshot: Snapshot, price: Mapping[str, Any], what: str) -> None:
    """Refuse the price of a model that has another form."""
    rates = price["rates"]
    if not rates or any(len(rate) not in (4, 5) or None in rate[:4] for rate in rates):
        snapshot.refuse(
            f"{what} is {shorten(rates)}: each rate must have a size and three or four prices"
        )
