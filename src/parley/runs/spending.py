"""Saves a run's spending in the store: requests sent, requests without a reply, prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parley.config.prepare import Prepared
from parley.money import is_free
from parley.runs.budget import Budget
from parley.runs.earlier_sessions import EarlierSessions
from parley.runs.progress import Progress
from parley.runs.run_outcome import describe_uncounted
from parley.runs.seats import LimitedParticipant
from parley.store import read_run
from parley.store.journal import Journal
from parley.store.reader import RunReader
from parley.store.types import EndpointRecord


class SpendingRecorder:
    """Saves the spending of a run while it is played, added to that of earlier sessions."""

    def __init__(
        self,
        earlier: EarlierSessions,
        journal: Journal,
        budget: Budget | None,
        progress: Progress,
        is_worker: bool,
    ) -> None:
        self._journal, self._budget, self._progress = journal, budget, progress
        self._before, self._recorded = earlier.calls, earlier.replies
        self._noted = is_worker  # else only if more was sent than is recorded
        self._unanswered = self._kept = {
            alias: dict(by) for alias, by in earlier.unanswered.items()
        }
        self._health = self._saved_health = dict(earlier.health)

    async def save(self, participants: Mapping[str, LimitedParticipant]) -> None:
        """Save the counts so far, so that little is lost if the process is killed. With a budget,
        the budget itself saves calls before they are sent, and a worker gives back what others
        wait for."""
        await self._save_unanswered(participants)
        await self._save_health(participants)
        if self._budget is None:
            await self._save_sent_calls(participants)
        else:
            await self._budget.give_back()

    def add_discarded(self, alias: str, role: str, replies: int) -> None:
        """Count replies that were paid but are no longer on record, because their match starts
        again."""
        self._unanswered = {each: dict(by) for each, by in self._unanswered.items()}
        by = self._unanswered.setdefault(alias, {})
        by[role] = by.get(role, 0) + replies
        self._noted = True

    async def save_final(self, participants: Mapping[str, LimitedParticipant]) -> None:
        """Save the counts at the end of a session."""
        await self._save_unanswered(participants)
        await self._save_health(participants)
        await (
            self._save_sent_calls(participants)
            if self._budget is None
            else self._budget.save_totals()
        )

    async def _save_sent_calls(self, participants: Mapping[str, LimitedParticipant]) -> None:
        """Save how many requests were sent if there are more of them than recorded replies."""
        sent = self._before + sum(each.requests_sent for each in participants.values())
        if sent > self._recorded + self._progress.calls or self._noted:
            self._noted = True
            await self._journal.set_spending(sent, None)

    async def _save_unanswered(self, participants: Mapping[str, LimitedParticipant]) -> None:
        found = {alias: dict(by) for alias, by in self._unanswered.items()}
        for alias, each in participants.items():
            for role, count in each.unanswered.items():
                if count:
                    by = found.setdefault(alias, {})
                    by[role] = by.get(role, 0) + count
        if found != self._kept:
            await self._journal.set_unanswered(found)
            self._kept = found

    async def _save_health(self, participants: Mapping[str, LimitedParticipant]) -> None:
        """Save how endpoints answer, for pages that follow the run."""
        found = dict(self._health)
        for alias, each in participants.items():
            before = self._health.get(alias, EndpointRecord())
            now = EndpointRecord(before.refused + each.refused, each.waiting_for_endpoint)
            if any(now) or any(before):
                found[alias] = now
        if found != self._saved_health:
            await self._journal.set_endpoint_health(found)
            self._saved_health = found

    async def save_prices(self, prepared: Prepared) -> None:
        """Save the prices that were used, so that later price changes do not change the cost."""
        if (used := self.find_prices(prepared)) is not None:
            await self._journal.set_prices(used)

    def find_prices(self, prepared: Prepared) -> Sequence[Mapping[str, Any]] | None:
        """The prices that were used; None if all models are free."""
        if is_all_free(prepared):
            return None
        with read_run(self._journal.ref) as reader:
            found = find_used_prices(prepared, reader)
            if found and self._budget is not None and self._budget.most_usd is not None:
                spent = reader.run.spent_at_most()[1] or 0.0
                self._progress.notify(describe_uncounted(reader, prepared.prices, spent))
            return found


def find_used_prices(prepared: Prepared, reader: RunReader) -> Sequence[Mapping[str, Any]] | None:
    """The prices of the models that a run has called; None if all models are free."""
    return None if is_all_free(prepared) else prepared.prices.used(reader.usage.models_served())


def is_all_free(prepared: Prepared) -> bool:
    return all(map(is_free, prepared.config.live_models.values()))
