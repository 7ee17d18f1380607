"""What a run keeps about its calls besides their replies: how many have left, which may be paid for
nothing, at what prices."""

from __future__ import annotations

from collections.abc import Mapping

from parley.config.prepare import Prepared
from parley.money import is_free
from parley.runs.budget import Budget
from parley.runs.endings import uncounted
from parley.runs.progress import Tally
from parley.runs.seats import LimitedParticipant
from parley.store import Journal, RunReader, read_run


class Ledger:
    """The books of a run while it is played; what earlier sittings have written is carried on."""

    def __init__(
        self, reader: RunReader, journal: Journal, budget: Budget | None, tally: Tally
    ) -> None:
        self._journal, self._budget, self._tally = journal, budget, tally
        self._before, self._recorded = reader.spent_at_most()[0], reader.count_replies()
        self._noted = False
        self._lost = self._kept = reader.unanswered()

    async def beat(self, places: Mapping[str, LimitedParticipant]) -> None:
        """Now and then, so that a process that is killed leaves little unsaid. A budget keeps calls
        before they leave."""
        await self._keep_lost(places)
        if self._budget is None:
            await self._keep_left(places)

    async def settle(self, places: Mapping[str, LimitedParticipant]) -> None:
        """At the end of a sitting."""
        await self._keep_lost(places)
        await (self._keep_left(places) if self._budget is None else self._budget.settle())

    async def _keep_left(self, places: Mapping[str, LimitedParticipant]) -> None:
        """Keep how many calls have left, where the replies on record do not say it: some bring
        none."""
        left = self._before + sum(placed.left for placed in places.values())
        if left > self._recorded + self._tally.calls or self._noted:
            self._noted = True
            await self._journal.set_spending(left, None)

    async def _keep_lost(self, places: Mapping[str, LimitedParticipant]) -> None:
        found = {alias: dict(by) for alias, by in self._lost.items()}
        for alias, placed in places.items():
            for role, count in placed.lost.items():
                if count:
                    by = found.setdefault(alias, {})
                    by[role] = by.get(role, 0) + count
        if found != self._kept:
            await self._journal.set_unanswered(found)
            self._kept = found

    async def keep_prices(self, prepared: Prepared) -> None:
        """Keep what models cost today, so that the run has cost tomorrow what it costs now."""
        if not all(is_free(options) for options in prepared.config.live_models.values()):
            with read_run(self._journal.ref) as reader:
                used = prepared.prices.used(reader.served_models())
                if self._budget is not None and self._budget.most_usd is not None:
                    self._tally.hear(uncounted(reader, prepared.prices, self._budget.usd))
            await self._journal.set_prices(used)
