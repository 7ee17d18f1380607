"""Recorded matches that are judged again: contestants' replies are copied from the record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from parley.config.identity import roster_of
from parley.errors import RecordEnded
from parley.masking.mask import NameFinder
from parley.match.match import collect_task_words
from parley.match.protocol import Call, Reply
from parley.match.record import MemoryRecord, RecordedCall
from parley.plans import Done, EndedMatches, Plan
from parley.plans.fixed import FixedPlan
from parley.rules.pool import View, text_of
from parley.store import read_run
from parley.store.config import Config
from parley.store.reader import RunReader
from parley.store.types import CopiedMatch, RunRef

if TYPE_CHECKING:
    from parley.config.prepare import Prepared


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
            FixedPlan([match.spec for match in reader.matches.read()]),
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


def copied_matches(ref: RunRef, prepared: Prepared) -> Iterator[CopiedMatch]:
    """The replies, verdicts and scores that a run copies from the run that it judges again. Names
    of the new judges' families are looked for now: the judges must not read them, either."""
    config = prepared.config
    assert config.rejudged is not None
    specs = next(prepared.plan.matches(EndedMatches({})))
    assert not isinstance(specs, Done)
    roster = roster_of(config)
    with read_run(ref) as reader:
        for spec in specs:
            record = recorded_match(reader, spec.number, config)
            scores = reader.scores.of(spec.number)
            people = [each for each in reader.people.verdicts(spec.number) if not each.is_open]
            item = prepared.items.get(spec.item or "")
            words = partial(collect_task_words, prepared.task, item, prepared.prompts)
            names, judge = NameFinder(roster, words), config.rejudged.run
            roles = tuple(config.rejudged.roles)
            calls = [hide_from_judges(call, names, roles) for call in record.calls.values()]
            yield CopiedMatch(spec, calls, record.effects, scores, judge, people)


def hide_from_judges(call: RecordedCall, names: NameFinder, roles: tuple[str, ...]) -> RecordedCall:
    """A copied call, with further names that its new judges do not read."""
    found = names.find(text_of(call.reply.content))
    # what an earlier judging hid from its own judges is hidden from these, too
    known = [
        span._replace(roles=tuple(dict.fromkeys((*span.roles, *roles)))) if span.roles else span
        for span in call.masked
    ]
    new = [
        span._replace(roles=roles)
        for span in found
        if not any(span.start < each.end and each.start < span.end for each in known)
    ]
    masked = tuple(sorted([*known, *new]))
    return call._replace(masked=masked) if masked != call.masked else call


def recorded_match(reader: RunReader, number: int, config: Config) -> MemoryRecord:
    """The record of a match that is judged again, without the replies of the roles that are asked
    now."""
    record = MemoryRecord()
    for call in reader.calls.of(number):
        if not config.is_live_role(call.seat.role):
            record.calls[call.round, call.seat, call.attempt] = call
    record.effects = reader.effects.of(number)
    return record
