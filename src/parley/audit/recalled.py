"""Audit check: seats were shown their own experiences from earlier stages, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from parley.config.prepare import Prepared
from parley.errors import ReplayError
from parley.match.record import RecordedCall
from parley.memory.experiences import Experience, MemoryOwner, Recalled, memory_version
from parley.participants._demonstrations import digest_shown
from parley.plans import MatchSpec
from parley.plans.evolve import EvolvePlan
from parley.plans.evolve_settings import PROBE
from parley.rules.pool import Seat, SeatHistory, View
from parley.runs.experience_builder import ExperienceBuilder
from parley.store.reader import RunReader
from parley.store.types import MatchRow


class RecallCheck:
    """Rebuilds the memories of a run from its record, and compares them with what was shown."""

    def __init__(self, prepared: Prepared, reader: RunReader) -> None:
        assert prepared.config.evolve is not None
        assert isinstance(prepared.plan, EvolvePlan)
        self._settings, self._stages = prepared.config.evolve, prepared.plan.stages
        self._builder = ExperienceBuilder(prepared, prepared.config.evolve.arms)
        self._builder.load(reader)
        self._roles = {role for rules in self._builder.rules.values() for role in rules}
        self._rows: dict[int, list[Recalled]] = {}
        for row in reader.experiences.recalled():
            self._rows.setdefault(row.match, []).append(row)
        self._recalling = {
            (match.stage, match.arm)
            for match in reader.matches.read()
            if match.number in self._rows
        }
        self._memories: dict[tuple[MemoryOwner, int], tuple[str, set[tuple[int, str]]]] = {}

    def find_vote_faults(self, reader: RunReader) -> Iterator[tuple[int, str]]:
        """Verdicts of people that cannot be, and matches that lacked one when the next stage began,
        each with the match."""
        matches = {match.number: match for match in reader.matches.read()}
        planned = arms_by_stage(spec for stage in self._stages for spec in stage)
        for said in reader.people.verdicts():
            match = matches.get(said.match)
            arms = self._builder.judged_by_people.get((said.match, said.seat), set())
            if match is None or not arms & planned.get(match.stage + 1, set()):
                yield (
                    said.match,
                    (
                        f"people were asked to vote on {said.seat.key}, although no memory uses "
                        "that seat"
                    ),
                )
        for stage, begun in arms_by_stage(match.spec for match in matches.values()).items():
            for number, seat in self._builder.places_to_judge(stage - 1, begun):
                yield number, f"stage {stage} began before people had voted on {seat.key}"

    def find_faults(
        self,
        match: MatchRow,
        conversations: Mapping[Seat, SeatHistory],
        calls: Sequence[RecordedCall],
    ) -> Iterator[str]:
        """Faults in the recalled experiences of a match, given the conversations of its replay."""
        seats = {seat.key: seat for seat in match.seats}
        for row in self._rows.get(match.number, ()):
            if match.stage == 0 or row.seat not in seats:
                yield (
                    f"the record shows experiences for {row.seat}, although this seat has no "
                    "memory in this stage"
                )
                continue
            seat = seats[row.seat]
            yield from self._find_foreign_experiences(row, match, seat)
            yield from self._find_other_demonstrations(row, match, seat, conversations[seat], calls)
        on_record = {row.seat for row in self._rows.get(match.number, ())}
        for key, seat in seats.items():
            if match.stage > 0 and key not in on_record and seat.role in self._roles:
                rules = self._builder.rules[match.arm.removesuffix(PROBE)]
                is_recalling = (match.stage, match.arm) in self._recalling
                if is_recalling and seat.role in rules and seat not in match.unscored:
                    yield (
                        f"the record has no memory for {key}, but it has one for other seats "
                        "of this stage"
                    )
                yield from self._find_unrecorded(seat, conversations[seat], calls)

    def _find_foreign_experiences(
        self, row: Recalled, match: MatchRow, seat: Seat
    ) -> Iterator[str]:
        """Experiences that are not in the memory of the seat."""
        if row.shuffle:
            return
        arm = match.arm.removesuffix(PROBE)
        owner = MemoryOwner(match.seats[seat], seat.role, arm, match.repeat)
        if (owner, match.stage) not in self._memories:
            memory = self._builder.memory(owner, match.stage)
            self._memories[owner, match.stage] = (
                memory_version(memory),
                {each.key for each in memory},
            )
        version, known = self._memories[owner, match.stage]
        if len(row.shown) > row.k:
            yield (
                f"{row.seat} was shown {len(row.shown):,} experiences, but the limit is {row.k:,}"
            )
        for shown in row.shown[: row.k]:
            if (shown.match, shown.seat) not in known:
                yield (
                    f"{row.seat} was shown {shown.seat} of match {shown.match}, which is not in "
                    f"its memory: {self._describe_source(arm, shown.match, shown.seat)}"
                )
            elif self._settings.arm(match.arm).mask and self._builder.is_same_item(
                match.block, self._builder.by_key[arm][shown.match, shown.seat].item
            ):
                yield (
                    f"{row.seat} was shown match {shown.match} on the same item, although "
                    "experiences of the same item are masked"
                )
        if row.version != version:
            yield (
                f"{row.seat} searched a memory that differs from the memory that follows from "
                "the record"
            )

    def _find_unrecorded(
        self, seat: Seat, conversation: SeatHistory, calls: Sequence[RecordedCall]
    ) -> Iterator[str]:
        """Calls of a seat without memory that sent other demonstrations than the task's own."""
        own = () if conversation.examples is None else conversation.examples[1]
        for call in calls:
            if call.seat == seat and call.reply.sent not in (None, digest_shown(own)):
                yield (
                    f"round {call.round}, {seat.key}: the prompt contained demonstrations that "
                    "are not in the record"
                )

    def _describe_source(self, arm: str, match: int, seat: str) -> str:
        """The origin of an experience, in words."""
        found: Experience | None = self._builder.by_key.get(arm, {}).get((match, seat))
        if found is None:
            return "this arm has no such experience"
        return (
            f"that experience is from {found.alias} as {found.role}, stage {found.stage}, series "
            f"{found.series}"
        )

    def _find_other_demonstrations(
        self,
        row: Recalled,
        match: MatchRow,
        seat: Seat,
        conversation: SeatHistory,
        calls: Sequence[RecordedCall],
    ) -> Iterator[str]:
        """Calls in which the demonstrations differ from the record."""
        arm = match.arm.removesuffix(PROBE)
        try:
            recollection = self._builder.recollection(row, arm)
        except ReplayError:
            return  # reported as a foreign experience
        if not conversation.turns:
            return
        own = conversation.examples
        nothing: Any = None
        view = View(
            seat, 0, 0, list(conversation.turns), b"", nothing, own, told=conversation.told
        ).with_examples(recollection.examples_for(own[1] if own else ()))
        examples = () if view.examples is None else view.examples[1]
        wanted = digest_shown(examples, recollection.lessons)
        first = 0 if own is None else own[0]
        for call in calls:
            if call.seat == seat and call.reply.sent != wanted and (own is None or first == 0):
                yield (
                    f"round {call.round}, {seat.key}: the demonstrations in the prompt differ "
                    "from those in the record"
                )


def arms_by_stage(specs: Iterable[MatchSpec]) -> dict[int, set[str]]:
    """The arms that play in each stage after the standard one."""
    found: dict[int, set[str]] = {}
    for spec in specs:
        if spec.stage > 0:
            found.setdefault(spec.stage, set()).add(spec.arm.removesuffix(PROBE))
    return found
