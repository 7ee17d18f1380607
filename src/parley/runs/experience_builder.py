"""Builds experiences, and memories of them, from the finished matches of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from parley.config.prepare import Prepared, block_names
from parley.memory.experiences import (
    Experience,
    MemoryOwner,
    MemoryPolicy,
    Recalled,
    choose_held_out,
    select_experiences,
)
from parley.memory.feedback import PEOPLE
from parley.memory.interactions import Interaction, RecordedMatch, collect_interactions
from parley.memory.same_items import ItemNumbers
from parley.participants._recalling import Recollection, make_recollection
from parley.plans import Marks, MatchSpec
from parley.plans.arrangements import contestant_roles
from parley.plans.evolve import is_poisoned
from parley.plans.evolve_settings import PROBE, EvolveArm, SuccessRule, find_success_rules
from parley.rules.pool import Example, Seat
from parley.runs.stand_ins import estimate_text_tokens
from parley.store.feedback_notes import FeedbackOnRecord, read_feedback
from parley.store.reader import RunReader

TURN_TOKENS = 8  # of a turn besides its words
LAST_NUMBER = 2**31 - 1  # of a match
FOREIGN = "\0"  # ends the name of an item that this run does not have
Place = tuple[str, int, str, str]  # item, series, seat, alias


class AwaitingPeople(NamedTuple):
    """An interaction that is remembered once people have said what they think of it."""

    arm: str
    spec: MatchSpec
    seat: Seat
    interaction: Interaction
    right: bool


class ExperienceBuilder:
    """Builds experiences from finished matches. They depend on the run file alone."""

    def __init__(self, prepared: Prepared, arms: Mapping[str, EvolveArm]) -> None:
        self._prepared, self._arms = prepared, arms
        self._last_read = 0  # number of the last match
        self._feedback = FeedbackOnRecord()
        self._specs: dict[int, MatchSpec] = {}
        metrics = list(prepared.task.metrics(prepared.seats))
        roles = list(contestant_roles(prepared.task))
        self.rules: dict[str, dict[str, SuccessRule]] = {
            name: find_success_rules(metrics, roles, arm, prepared.task.name)
            for name, arm in arms.items()
        }
        # by arm, match and seat: arms may differ in what counts as a success
        self.by_key: dict[str, dict[tuple[int, str], Experience]] = {}
        self.sizes: dict[Place, float] = {}  # tokens of whole conversations
        self._by_owner: dict[tuple[str, str, str], list[Experience]] = {}
        self._awaiting: list[AwaitingPeople] = []  # without a verdict on record
        # what people may be asked about, by match and seat, and for which arms
        self.judged_by_people: dict[tuple[int, Seat], set[str]] = {}
        self._questions: dict[Place, str] = {}
        self._cues: dict[str, str] = {}
        self._item_numbers, self._names_by_number = ItemNumbers(), dict[int, str]()
        strata: dict[str, list[str]] = {}
        for item in block_names(prepared.config, prepared.items):
            strata.setdefault(self.subject(item), []).append(item)
        self._held_out = {
            name: self._with_twins(choose_held_out(strata, arm.held_out, prepared.config.seed))
            for name, arm in arms.items()
        }

    def _experiences_of(self, alias: str, role: str, arm: str) -> Iterable[Experience]:
        """The experiences of a model in a role, by the feedback of an arm."""
        return self._by_owner.get((alias, role, arm), ())

    def memory(self, owner: MemoryOwner, stage: int) -> list[Experience]:
        """The memory of an owner when a stage begins; its arm may be that of a probe."""
        name = owner.arm.removesuffix(PROBE)
        arm = self._arms[name]
        insights = arm.memory == "insights"
        policy = MemoryPolicy(arm.keep, arm.refresh, arm.window is not None, insights)
        own = self._experiences_of(owner.alias, owner.role, name)
        return select_experiences(
            own, owner._replace(arm=name), stage, policy, self._held_out[name]
        )

    def recollection(self, recalled: Recalled, name: str) -> Recollection:
        """What a seat is shown, from its record and the name of its arm."""
        arm, prompts = self._arms[name], self._prepared.prompts
        return make_recollection(
            recalled, self.by_key.get(name, {}), arm.keep, arm.memory == "insights", prompts
        )

    def subject(self, item: str) -> str:
        """The subject of an item; empty if it has none."""
        kind = self._prepared.task.items
        field = (kind.stratum if kind is not None else None) or "subject"
        return str(getattr(self._prepared.items.get(item), field, "") or "")

    def own_cue(self, item: str) -> str:
        """The words by which the task compares an item; empty if it does not say."""
        if item not in self._cues:
            known = self._prepared.items.get(item)  # a game without items has none
            self._cues[item] = "" if known is None else self._prepared.task.cue(known)
        return self._cues[item]

    def cue(self, spec: MatchSpec, seat: Seat) -> str:
        """The words to search with: those of the item, else the first question that the seat was
        asked in an earlier stage."""
        return self.own_cue(spec.block) or self._questions.get(seat_place(spec, seat), "")

    def load(self, reader: RunReader, last: int = LAST_NUMBER) -> None:
        """Read the matches up to number `last` that no earlier call has read. All of them must have
        ended, if matches are read again later."""
        scores = reader.scores.by_match(self._last_read + 1, last)
        if not self._last_read:
            for number, each in enumerate(reader.experiences.transferred(), 1):
                self._add(replace(each, match=-number, item=self._own_name(each)), each.arm)
        if not all(number in self._specs for number in scores):
            self._specs = {match.number: match.spec for match in reader.matches.read()}
        self._feedback = read_feedback(reader)
        waiting, self._awaiting = self._awaiting, []
        for one in waiting:  # people may have voted since
            self._remember(*one)
        for match in reader.messages.recorded_matches(self._last_read, last):
            self._last_read = match.number
            if match.number in scores:
                self._load_match(match, self._specs[match.number], scores[match.number])

    def places_to_judge(self, stage: int, arms: Collection[str]) -> list[tuple[int, Seat]]:
        """The seats of one stage that people judge before the next stage of these arms begins, as
        far as they have no verdict on record, by match and seat."""
        found = {
            (each.spec.number, each.seat)
            for each in self._awaiting
            if each.spec.stage == stage
            and each.arm in arms
            and self.is_judged_by_people(each.spec, each.seat, each.arm)
        }
        return sorted(found, key=lambda place: (place[0], place[1].key))

    def is_judged_by_people(self, spec: MatchSpec, seat: Seat, arm: str) -> bool:
        """Whether people judge a seat of a match for an arm, if the arm goes on after it: its
        memory could hold the match."""
        settings = self._arms[arm]
        return (
            settings.asks_people
            and spec.arm in ("", arm)
            and (spec.stage > 0 or settings.window is None)
            and seat.role in self.rules[arm]
            and seat not in spec.unscored
            and spec.block not in self._held_out[arm]
        )

    def _with_twins(self, held_out: frozenset[str]) -> frozenset[str]:
        """Add all items with the same question: otherwise a held-out item would be remembered under
        another id."""
        if not held_out:
            return held_out
        numbers = {
            item: self._item_numbers.number(item, self.own_cue(item))
            for item in self._prepared.items
        }
        never = {numbers[item] for item in held_out if item in numbers}
        return held_out | {item for item, number in numbers.items() if number in never}

    def is_same_item(self, one: str, other: str) -> bool:
        """Whether two items are the same by their ids or their words."""
        first, second = (
            self._item_numbers.number(item, self.own_cue(item)) for item in (one, other)
        )
        return first == second

    def _own_name(self, transferred: Experience) -> str:
        """The item of this run with the same question as an item of another run. If there is none,
        a name that no item has: ids of another run mean nothing here."""
        if not self._names_by_number:
            for item in self._prepared.items:
                number = self._item_numbers.number(item, self.own_cue(item))
                self._names_by_number.setdefault(number, item)
        number = self._item_numbers.number(transferred.item, transferred.cue, foreign=True)
        return self._names_by_number.get(number, f"{transferred.item}{FOREIGN}")

    def _load_match(self, match: RecordedMatch, spec: MatchSpec, marks: Marks) -> None:
        own = spec.arm.removesuffix(PROBE)
        arms = [own] if own else list(self.rules)  # all arms share the standard stage
        roles = {role for arm in arms for role in self.rules[arm]}
        for key, interaction in collect_interactions(match).items():
            seat = Seat.of(key)
            if interaction is None or seat.role not in roles or seat in spec.unscored:
                continue
            self._questions.setdefault(seat_place(spec, seat), interaction.question)
            self.sizes.setdefault(seat_place(spec, seat), estimate_conversation(interaction))
            if spec.arm.endswith(PROBE):
                continue  # probes are not remembered
            for arm in arms:
                rule = self.rules[arm].get(seat.role)
                scores = marks.get(seat, {})
                if rule is not None and rule.applies(scores):
                    right = rule.holds(scores.get(rule.metric))
                    self._remember(arm, spec, seat, interaction, right)

    def _remember(
        self, arm: str, spec: MatchSpec, seat: Seat, interaction: Interaction, right: bool
    ) -> None:
        """Add an interaction, if there is a verdict on it by the feedback of an arm."""
        by = self._arms[arm].feedback
        if by == PEOPLE and self.is_judged_by_people(spec, seat, arm):
            self.judged_by_people.setdefault((spec.number, seat), set()).add(arm)
        said = self._feedback.verdict(spec.number, seat, by, right)
        if said is not None:
            self._add(self._experience(spec, seat, interaction, arm, right, said), arm)
        elif by == PEOPLE and (spec.number, seat, by) not in self._feedback.verdicts:
            self._awaiting.append(AwaitingPeople(arm, spec, seat, interaction, right))

    def _experience(
        self,
        spec: MatchSpec,
        seat: Seat,
        interaction: Interaction,
        arm: str,
        right: bool,
        said: bool,
    ) -> Experience:
        item, insights = spec.block, self._arms[arm].memory == "insights"
        return Experience(
            spec.number,
            seat.key,
            spec.seats[seat],
            seat.role,
            item,
            spec.stage,
            spec.arm,
            spec.repeat,
            self.own_cue(item) or interaction.question,
            interaction.turns,
            self._poison_verdict(said, spec, seat, arm),
            right,
            self.subject(item),
            self._feedback.lesson(spec.number, seat) if insights else "",
        )

    def _poison_verdict(self, verdict: bool, spec: MatchSpec, seat: Seat, arm: str) -> bool:
        """Reverse a verdict if it is poisoned."""
        share, seed = self._arms[arm].poison, self._prepared.config.seed
        return verdict != is_poisoned(arm, share, seed, spec, seat)

    def _add(self, experience: Experience, arm: str) -> None:
        self.by_key.setdefault(arm, {})[experience.key] = experience
        owner = experience.alias, experience.role, arm
        self._by_owner.setdefault(owner, []).append(experience)


def seat_place(spec: MatchSpec, seat: Seat) -> Place:
    """Identifies a seat across stages."""
    return spec.block, spec.repeat, seat.key, spec.seats[seat]


def estimate_tokens(turns: Iterable[Example]) -> float:
    """Estimate the tokens of demonstrations from their characters."""
    return sum(
        estimate_text_tokens(text) + TURN_TOKENS
        for turn in turns
        for text in (turn.question, turn.answer)
    )


def estimate_conversation(interaction: Interaction) -> float:
    """Estimate the tokens of a whole conversation."""
    return estimate_text_tokens(interaction.opening) + estimate_tokens(interaction.turns)
