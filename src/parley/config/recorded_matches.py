"""Recorded matches that are judged again: contestants' replies are copied from the record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from parley.errors import RecordEnded
from parley.match.protocol import Call, Reply
from parley.match.record import MemoryRecord
from parley.plans import Done, Plan, ScoreTable
from parley.plans.fixed import FixedPlan
from parley.rules.pool import View
from parley.store import CopiedMatch, RunReader, RunRef, read_run
from parley.store.config import Config


@dataclass(frozen=True)
class Recorded:
    """The matches, the run that has their replies, and facts for the new run's identity."""

    ref: RunRef
    plan: Plan
    facts: dict[str, Any]

    @classmethod
    def of(cls, reader: RunReader) -> Recorded:
        """All matches of a run with recorded matches."""
        return cls(
            reader.info.ref,
            FixedPlan([match.spec for match in reader.matches()]),
            facts_on_record(reader),
        )


class RecordedReplies:
    """A participant whose replies all come from the record; it is called only where the record
    ends."""

    sees_item = False

    async def reply(self, view: View, call: Call) -> Reply:
        raise RecordEnded(f"round {view.round}, {view.seat}: the recorded match ends here")

    async def close(self) -> None:
        pass


def facts_on_record(reader: RunReader) -> dict[str, Any]:
    """What a run keeps of the identity of the run whose matches it copies: the works of reference.
    Their answers are recorded, so they are not opened again."""
    identity = reader.info.identity
    return {"works": identity["works"]} if "works" in identity else {}


def copied_matches(ref: RunRef, config: Config, plan: Plan) -> Iterator[CopiedMatch]:
    """The replies, verdicts and scores that a run copies from the run that it judges again."""
    assert config.rejudged is not None
    specs = next(plan.matches(ScoreTable({})))
    assert not isinstance(specs, Done)
    with read_run(ref) as reader:
        for spec in specs:
            record = recorded_match(reader, spec.number, config)
            scores = reader.scores_of(spec.number)
            people = [each for each in reader.people_verdicts(spec.number) if not each.is_open]
            calls, judge = list(record.calls.values()), config.rejudged.run
            yield CopiedMatch(spec, calls, record.effects, scores, judge, people)


def recorded_match(reader: RunReader, number: int, config: Config) -> MemoryRecord:
    """The record of a match that is judged again, without the replies of the roles that are asked
    now."""
    record = MemoryRecord()
    for call in reader.calls(number):
        if not config.is_live_role(call.seat.role):
            record.calls[call.round, call.seat, call.attempt] = call
    record.effects = reader.effects(number)
    return record
