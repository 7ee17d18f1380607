"""Matches on record that are judged again: what their seats said is taken over as it is, and asked
of nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from parley.errors import RecordEnded
from parley.match.protocol import Call, Reply
from parley.match.record import MemoryRecord
from parley.plans import Done, Plan
from parley.plans.fixed import FixedPlan
from parley.rules.pool import View
from parley.store import CopiedMatch, RunReader, RunRef, read_run
from parley.store.config import Config


@dataclass(frozen=True)
class Recorded:
    """The matches, the run that has their replies, and what that record rests on."""

    ref: RunRef
    plan: Plan
    facts: dict[str, Any]

    @classmethod
    def of(cls, reader: RunReader) -> Recorded:
        """All matches of a run that judges again."""
        return cls(
            reader.info.ref,
            FixedPlan([match.spec for match in reader.matches()]),
            facts_on_record(reader),
        )


class RecordedReplies:
    """Sits where the record answers; where it does not, the record has ended."""

    sees_item = False

    async def reply(self, view: View, call: Call) -> Reply:
        raise RecordEnded(
            f"round {view.round}, {view.seat}: the match that is judged again had ended here"
        )

    async def close(self) -> None:
        pass


def facts_on_record(reader: RunReader) -> dict[str, Any]:
    """What the identity of a run keeps of the one whose matches it takes over: how numbers were
    told, and the works that were consulted (their answers are on record, and nobody opens them
    again)."""
    identity = reader.info.identity
    works = {"works": identity["works"]} if "works" in identity else {}
    return {"rounds_numbers": identity.get("rounds_numbers", False), **works}


def copied_matches(ref: RunRef, config: Config, plan: Plan) -> Iterator[CopiedMatch]:
    """What a run that judges again keeps of the one that played: its replies, verdicts and
    scores."""
    specs = plan.next([])
    assert config.rejudged is not None
    assert not isinstance(specs, Done)
    with read_run(ref) as reader:
        for spec in specs:
            record = recorded_match(reader, spec.number, config)
            scores = reader.scores_of(spec.number)
            yield CopiedMatch(
                spec, list(record.calls.values()), record.effects, scores, config.rejudged.run
            )


def recorded_match(reader: RunReader, number: int, config: Config) -> MemoryRecord:
    """What a match that is judged again has on record: all but the words of those who are asked
    now."""
    record = MemoryRecord()
    for call in reader.calls(number):
        if not config.is_live_role(call.seat.role):
            record.calls[call.round, call.seat, call.attempt] = call
    record.effects = reader.effects(number)
    return record
