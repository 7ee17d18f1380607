"""What the seats of a run that evolves are shown of earlier matches: searched for when a stage
begins, and on record before the first call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from parley.config.prepare import Prepared, block_names, limit_of, prepare_to_read
from parley.errors import UsageError
from parley.match.protocol import Participant
from parley.memory import Neighbour, Retriever, Search
from parley.memory.experiences import (
    Experience,
    MemoryOwner,
    MemoryPolicy,
    Recalled,
    ShownExperience,
    choose_held_out,
    memory_version,
    select_experiences,
)
from parley.memory.interactions import Interaction, RecordedMatch, collect_interactions
from parley.memory.retrievers._registry import make_retriever
from parley.memory.same_items import ItemNumbers
from parley.participants._recalling import Recalling, Recollection, make_recollection
from parley.plans import Marks, MatchSpec
from parley.plans.arrangements import contestant_roles
from parley.plans.evolve import is_poisoned
from parley.plans.evolve_settings import PROBE, EvolveArm, SuccessRule, find_success_rules
from parley.rules.pool import Example, Seat
from parley.runs.forecast import make_match
from parley.runs.forecast_recall import Rehearsal
from parley.runs.stand_ins import USUAL, StandIn, estimate_text_tokens
from parley.store import Journal, RunReader, Store, read_run
from parley.store.feedback_notes import FeedbackOnRecord, read_feedback

ROUGH = 1.3  # tokens are guessed from characters, so some room is left
TURN = 8  # tokens that a turn has besides its words
REPLY = 512  # tokens that are kept free for a reply that has no limit
Place = tuple[str, int, str, str]  # item, series, seat, alias


async def prepare_retrievers(prepared: Prepared) -> dict[str, Retriever]:
    """The retriever of every arm, loaded: what is missing is said before a run is written."""
    evolve, found, made = prepared.config.evolve, dict[str, Retriever](), dict[str, Retriever]()
    for name, arm in evolve.arms.items() if evolve is not None else ():
        if arm.retriever not in made:
            made[arm.retriever] = make_retriever(arm.retriever)
            await asyncio.to_thread(made[arm.retriever].prepare)
        found[name] = made[arm.retriever]
    return found


class Recaller:
    """Builds the memories of a run from its file, and searches them."""

    def __init__(
        self,
        prepared: Prepared,
        journal: Journal,
        retrievers: Mapping[str, Retriever],
        participants: Mapping[str, Any],
    ) -> None:
        assert prepared.config.evolve is not None
        self._prepared, self._journal, self._retrievers = prepared, journal, retrievers
        self._settings, self._participants = prepared.config.evolve, participants
        self._builder = ExperienceBuilder(prepared, self._settings.arms)
        self._rehearsal: Rehearsal | None = None  # knows the task's own examples
        self._numbers = ItemNumbers()
        self._recalled: dict[tuple[int, str], Recalled] = {}

    async def begin_stage(self, batch: Sequence[MatchSpec], scores: Mapping[int, Marks]) -> None:
        """Find what every seat of a stage is shown, and keep it; what is on record stays."""
        self._recalled.clear()
        if not batch or batch[0].stage == 0:
            return
        kept = await asyncio.to_thread(self._read, {spec.number for spec in batch}, scores)
        self._recalled.update(kept)
        if self._rehearsal is None:
            self._rehearsal = await count_own_examples(self._prepared, batch[0])
        if kept:  # what a stage recalls is recorded all at once
            return
        if rows := await asyncio.to_thread(self._search_stage, batch):
            await self._journal.add_recalled(rows)
            self._recalled.update({(row.match, row.seat): row for row in rows})

    def _read(
        self, wanted: set[int], scores: Mapping[int, Marks]
    ) -> dict[tuple[int, str], Recalled]:
        """Read what has ended, and what these matches have on record of their own stage."""
        with read_run(self._journal.ref) as reader:
            self._builder.load(reader, scores)
            rows = [each for each in reader.recalled() if each.match in wanted]
        return {(each.match, each.seat): each for each in rows}

    def wrap(self, spec: MatchSpec, seat: Seat, participant: Participant) -> Participant:
        """A participant for one match, with what it recalls there."""
        found = self._recalled.get((spec.number, seat.key))
        if found is None:
            return participant
        shown = self._builder.recollection(found, spec.arm.removesuffix(PROBE))
        return Recalling(participant, shown)

    def _search_stage(self, batch: Sequence[MatchSpec]) -> list[Recalled]:
        groups: dict[MemoryOwner, list[tuple[MatchSpec, Seat]]] = {}
        for spec in batch:
            rules = self._builder.rules[spec.arm.removesuffix(PROBE)]
            for seat, alias in spec.seats.items():
                if seat.role in rules and seat not in spec.unscored:
                    owner = MemoryOwner(alias, seat.role, spec.arm, spec.repeat)
                    groups.setdefault(owner, []).append((spec, seat))
        return [row for owner, seats in groups.items() for row in self._search(owner, seats)]

    def _search(
        self, owner: MemoryOwner, seats: Sequence[tuple[MatchSpec, Seat]]
    ) -> Iterator[Recalled]:
        """What the seats of one owner are shown in one stage."""
        name, stage = owner.arm.removesuffix(PROBE), seats[0][0].stage
        arm, retriever = self._settings.arm(owner.arm), self._retrievers[name]
        where = f"{self._prepared.config.seed}|{owner.arm}|{stage}|{owner.series}"
        assert self._rehearsal is not None
        k = self._rehearsal.count(owner.role, arm.k)
        if retriever.own_examples == "keep":
            return
        if retriever.own_examples == "shuffle":
            for spec, seat in seats:
                seed = f"{where}|{spec.block}|{seat.key}|{owner.alias}"
                yield Recalled(spec.number, seat.key, "", (), k, shuffle=seed)
            return
        memory = self._builder.memory(owner, stage)
        version = memory_version(memory)
        found = self._neighbours(arm, retriever, memory, seats, k, f"{where}|{owner.role}")
        for (spec, seat), near in zip(seats, found, strict=True):
            shown = [(memory[each.stored], each.distance) for each in near]
            fitting = self._fit(arm, shown, spec, seat)
            places = [ShownExperience(*each.key, distance) for each, distance in fitting]
            if arm.order == "nearest_last":
                places.reverse()
            yield Recalled(
                spec.number, seat.key, version, tuple(places), k, len(shown) - len(fitting)
            )

    def _neighbours(
        self,
        arm: EvolveArm,
        retriever: Retriever,
        memory: Sequence[Experience],
        seats: Sequence[tuple[MatchSpec, Seat]],
        k: int,
        seed: str,
    ) -> list[list[Neighbour]]:
        """The nearest experiences for every seat, nearest first; none where there are no words to
        search by."""
        cues = [self._builder.cue(spec, seat) for spec, seat in seats]
        asked = [at for at, cue in enumerate(cues) if cue]
        found: list[list[Neighbour]] = [[] for _ in seats]
        if not memory or not asked:
            return found
        items = [spec.block for spec, _ in seats]
        results = retriever.search(
            Search(
                [cues[at] for at in asked],
                [each.cue for each in memory],
                k,
                [self._number(items[at]) for at in asked],
                [
                    self._numbers.number(each.item, each.cue, foreign=True)
                    if each.match < 0
                    else self._number(each.item)
                    for each in memory
                ],
                arm.mask,
                [self._builder.subject(items[at]) for at in asked],
                [each.subject for each in memory],
                arm.scope,
                seed,
            )
        )
        for at, near in zip(asked, results, strict=True):
            found[at] = near
        return found

    def _number(self, item: str) -> int:
        return self._numbers.number(item, self._builder.own_cue(item))

    def _fit(
        self,
        arm: EvolveArm,
        shown: list[tuple[Experience, float]],
        spec: MatchSpec,
        seat: Seat,
    ) -> list[tuple[Experience, float]]:
        """The nearest experiences that fit, nearest first."""
        room = self._room(arm, spec, seat)
        if room is None:
            return shown
        insights = arm.memory == "insights"
        sizes = [
            estimate_text_tokens(each.lesson) if insights else estimate_tokens(each.turns)
            for each, _ in shown
        ]
        count = len(shown)
        while count and sum(sizes[:count]) > room:
            count -= 1
        return shown[:count]

    def _room(self, arm: EvolveArm, spec: MatchSpec, seat: Seat) -> float | None:
        """How many tokens experiences may have; None: as many as they like."""
        who = self._participants[spec.seats[seat]]
        context = getattr(getattr(who, "provider", None), "context", None)
        if not isinstance(context, int):
            return arm.fit
        own = self._builder.sizes.get(seat_place(spec, seat), 0.0)
        left = max(0.0, context - (limit_of(who) or REPLY) - own) / ROUGH
        return left if arm.fit is None else min(left, arm.fit)


class ExperienceBuilder:
    """Makes experiences of finished matches. What it makes depends on the run's file alone."""

    def __init__(self, prepared: Prepared, arms: Mapping[str, EvolveArm]) -> None:
        self._prepared, self._read, self._arms = prepared, 0, arms  # read: the last match so far
        self._feedback = FeedbackOnRecord()
        self._specs: dict[int, MatchSpec] = {}
        metrics = list(prepared.task.metrics(prepared.seats))
        roles = list(contestant_roles(prepared.task))
        self.rules: dict[str, dict[str, SuccessRule]] = {
            name: find_success_rules(metrics, roles, arm, prepared.task.name)
            for name, arm in arms.items()
        }
        # by arm, match and seat: arms may differ in what they take for a success
        self.by_key: dict[str, dict[tuple[int, str], Experience]] = {}
        self.sizes: dict[Place, float] = {}  # tokens of whole conversations
        self._by_owner: dict[tuple[str, str, str], list[Experience]] = {}
        self._questions: dict[Place, str] = {}
        self._cues: dict[str, str] = {}
        strata: dict[str, list[str]] = {}
        for item in block_names(prepared.config, prepared.items):
            strata.setdefault(self.subject(item), []).append(item)
        self._held_out = {
            name: choose_held_out(strata, arm.held_out, prepared.config.seed)
            for name, arm in arms.items()
        }

    def of(self, alias: str, role: str, arm: str) -> Iterable[Experience]:
        """The experiences of a model in a role, as an arm takes them."""
        return self._by_owner.get((alias, role, arm), ())

    def memory(self, owner: MemoryOwner, stage: int) -> list[Experience]:
        """What somebody remembers when a stage begins; the owner's arm may be that of a probe."""
        name = owner.arm.removesuffix(PROBE)
        arm = self._arms[name]
        insights = arm.memory == "insights"
        policy = MemoryPolicy(arm.keep, arm.refresh, arm.window is not None, insights)
        own = self.of(owner.alias, owner.role, name)
        return select_experiences(
            own, owner._replace(arm=name), stage, policy, self._held_out[name]
        )

    def recollection(self, recalled: Recalled, name: str) -> Recollection:
        """What a seat of an arm is shown, from the record of it."""
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
        """What an item is searched by, if the task says so."""
        if item not in self._cues:
            known = self._prepared.items.get(item)  # a game without items has none
            self._cues[item] = "" if known is None else self._prepared.task.cue(known)
        return self._cues[item]

    def cue(self, spec: MatchSpec, seat: Seat) -> str:
        """The words that a seat's match is searched by: what the item asks, else the first question
        that this seat was asked in an earlier stage."""
        return self.own_cue(spec.block) or self._questions.get(seat_place(spec, seat), "")

    def load(self, reader: RunReader, scores: Mapping[int, Marks]) -> None:
        """Read the matches that have ended since the last time."""
        if not self._read:
            for number, each in enumerate(reader.brought(), 1):
                self._add(replace(each, match=-number), each.arm)
        if not all(number in self._specs for number in scores):
            self._specs = {match.number: match.spec for match in reader.matches()}
        self._feedback = read_feedback(reader)
        for match in reader.recorded_matches(self._read):
            self._read = match.number
            if match.number in scores:
                self._load_match(match, self._specs[match.number], scores[match.number])

    def _load_match(self, match: RecordedMatch, spec: MatchSpec, marks: Marks) -> None:
        own = spec.arm.removesuffix(PROBE)
        arms = [own] if own else list(self.rules)  # the standard round belongs to all of them
        roles = {role for arm in arms for role in self.rules[arm]}
        for key, interaction in collect_interactions(match).items():
            seat = Seat.of(key)
            if interaction is None or seat.role not in roles or seat in spec.unscored:
                continue
            self._questions.setdefault(seat_place(spec, seat), interaction.question)
            self.sizes.setdefault(seat_place(spec, seat), estimate_conversation(interaction))
            if spec.arm.endswith(PROBE):
                continue  # nothing is learnt from a probe
            for arm in arms:
                rule = self.rules[arm].get(seat.role)
                if rule is not None:
                    right = rule.holds(marks.get(seat, {}).get(rule.metric))
                    said = self._feedback.verdict(
                        spec.number, seat, self._arms[arm].feedback, right
                    )
                    if said is not None:  # a verdict that cannot be read keeps nothing
                        self._add(self._experience(spec, seat, interaction, arm, right, said), arm)

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
            self._turn_round(said, spec, seat, arm),
            right,
            self.subject(item),
            self._feedback.lesson(spec.number, seat) if insights else "",
        )

    def _turn_round(self, verdict: bool, spec: MatchSpec, seat: Seat, arm: str) -> bool:
        """A verdict, or its opposite where feedback is poisoned."""
        share, seed = self._arms[arm].poison, self._prepared.config.seed
        return verdict != is_poisoned(arm, share, seed, spec, seat)

    def _add(self, experience: Experience, arm: str) -> None:
        self.by_key.setdefault(arm, {})[experience.key] = experience
        owner = experience.alias, experience.role, arm
        self._by_owner.setdefault(owner, []).append(experience)


def load_brought(prepared: Prepared, store: Store) -> list[Experience]:
    """The experiences that arms begin with: the memory of another run as it stood at its end."""
    evolve, found = prepared.config.evolve, list[Experience]()
    for name, arm in evolve.arms.items() if evolve is not None else ():
        if arm.source:
            memory = memory_at_end(arm.source, store, prepared, f"evolve.from: {arm.source}")
            found += [replace(each, arm=name) for each in memory]
    return found


def memory_at_end(source: str, store: Store, prepared: Prepared, said: str) -> list[Experience]:
    """What the models of this run remember at the end of another; `said` begins an error."""
    ref = store.find(source)
    other = prepare_to_read(ref)
    settings = other.config.evolve
    name, arm = ("", EvolveArm()) if settings is None else next(iter(settings.arms.items()))
    wanted = prepared.config.contestants
    for alias in wanted:
        if alias not in other.config.contestants:
            raise UsageError(
                f"{said} has no model called {alias}, whose memory could be taken over; it has "
                f"{', '.join(other.config.contestants)}: give your model one of these aliases"
            )
    builder = ExperienceBuilder(other, {name: arm})
    with read_run(ref) as reader:
        last = max((match.stage for match in reader.matches()), default=0)
        builder.load(reader, reader.scores_by_match())
    roles = set(contestant_roles(prepared.task)) & set(builder.rules[name])
    if not roles:
        raise UsageError(f"{said} has no role of {prepared.task.name} to take experiences from")
    series = range(1, other.config.repeats + 1)
    return [
        each
        for alias, role, number in product(wanted, sorted(roles), series)
        for each in builder.memory(MemoryOwner(alias, role, name, number), last + 1)
    ]


def seat_place(spec: MatchSpec, seat: Seat) -> Place:
    """Where a seat sits, in every stage alike."""
    return spec.block, spec.repeat, seat.key, spec.seats[seat]


def estimate_tokens(turns: Iterable[Example]) -> float:
    """The tokens of demonstrations, guessed from their characters."""
    return sum(
        estimate_text_tokens(text) + TURN for turn in turns for text in (turn.question, turn.answer)
    )


def estimate_conversation(interaction: Interaction) -> float:
    """The tokens of a whole conversation."""
    return estimate_text_tokens(interaction.told) + estimate_tokens(interaction.turns)


async def count_own_examples(prepared: Prepared, spec: MatchSpec) -> Rehearsal:
    """How many examples of its own the task shows, by role: a match is played with stand-ins."""
    assert prepared.config.evolve is not None
    rehearsal = Rehearsal(prepared.config.evolve)
    cast = {
        alias: StandIn(alias, options, type(prepared.task), USUAL)
        for alias, options in prepared.config.live_models.items()
    }
    await make_match(prepared, replace(spec, stage=0, arm=""), cast, rehearsal).play()
    return rehearsal
