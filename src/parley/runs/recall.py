"""Finds the experiences to show to each seat. The search runs when a stage begins, and its results
are recorded before the first call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from parley.config.prepare import Prepared, limit_of
from parley.match.protocol import Participant
from parley.memory import OWN_EXAMPLES, Neighbour, Retriever, Search
from parley.memory.experiences import (
    Experience,
    MemoryOwner,
    Recalled,
    ShownExperience,
    memory_version,
)
from parley.memory.found import check_found
from parley.memory.retrievers._registry import make_retriever
from parley.memory.same_items import ItemNumbers
from parley.participants._recalling import Recalling
from parley.plans import MatchSpec
from parley.plans.evolve_settings import PROBE, EvolveArm
from parley.rules.pool import Seat
from parley.runs.experience_builder import ExperienceBuilder, estimate_tokens, seat_place
from parley.runs.forecast import make_match
from parley.runs.forecast_recall import Rehearsal
from parley.runs.people_votes import arms_that_ask, count_verdict, describe_missing_votes
from parley.runs.stand_ins import USUAL, StandIn, estimate_text_tokens
from parley.store import read_run, read_verdict_votes
from parley.store.journal import Journal
from parley.store.types import VerdictVotes
from parley.tables import plural

RecalledByPlace: TypeAlias = dict[tuple[int, str], Recalled]  # by match and seat
TOKEN_MARGIN = 1.3  # tokens are estimated from characters, so some room is left
REPLY_TOKENS = 512  # kept free for a reply without a limit


async def prepare_retrievers(prepared: Prepared) -> dict[str, Retriever]:
    """Load the retriever of every arm, so that an error comes before the run file is created."""
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
    ) -> None:
        assert prepared.config.evolve is not None
        self._prepared, self._journal, self._retrievers = prepared, journal, retrievers
        self._settings = prepared.config.evolve
        self._builder = ExperienceBuilder(prepared, self._settings.arms)
        self._rehearsal: Rehearsal | None = None  # counts the task's own examples
        self._numbers = ItemNumbers()
        self._stage = 0
        self._recalled: RecalledByPlace = {}  # for matches of this stage
        self._loading = asyncio.Lock()

    async def begin_stage(self, matches: Sequence[MatchSpec]) -> None:
        """Find and record what to show every seat of a stage; a resumed stage keeps its record."""
        self._recalled = await self.record_stage(matches)

    async def record_stage(self, matches: Sequence[MatchSpec]) -> RecalledByPlace:
        """Find and record what to show every seat of a stage, unless it is on record."""
        if not matches:
            return {}
        if self._rehearsal is None:
            self._rehearsal = await rehearse_match(self._prepared, matches[0])
        if matches[0].stage == 0:
            return {}
        async with self._loading:
            kept = await asyncio.to_thread(
                self._read_record, {spec.number for spec in matches}, matches[0].number
            )
            if kept:  # what a stage recalls is recorded all at once
                return kept
            rows = await asyncio.to_thread(self._search_stage, matches)
        if rows:
            await self._journal.add_recalled(rows)
        return {(row.match, row.seat): row for row in rows}

    async def recall_matches(self, specs: Sequence[MatchSpec], first: int) -> None:
        """Read what to show the seats of leased matches. All are of one stage, which begins with
        the match of number `first`."""
        stage = specs[0].stage
        if stage != self._stage:  # all matches of the stage before have ended
            self._stage, self._recalled = stage, {}
        if stage:
            async with self._loading:
                self._recalled |= await asyncio.to_thread(
                    self._read_record, {spec.number for spec in specs}, first
                )

    async def collect_votes(self, matches: Sequence[MatchSpec]) -> str:
        """Ask people about the stage before this one, and record what they said once every match
        has a vote. Returns what is missing; empty if the stage can begin."""
        arms = arms_that_ask(self._prepared, matches)
        if not arms:
            return ""
        stage = matches[0].stage - 1
        places, votes = await asyncio.to_thread(self._read_votes, stage, arms, matches[0].number)
        if not places:
            return ""
        await self._journal.ask_people(places)
        if missing := describe_missing_votes(places, votes, stage):
            return missing
        verdicts = [count_verdict(*place, votes[place]) for place in places]
        await self._journal.set_people_verdicts(verdicts)
        return ""

    def _read_votes(
        self, stage: int, arms: set[str], first: int
    ) -> tuple[list[tuple[int, Seat]], VerdictVotes]:
        """The seats of a stage without a verdict on record, and the votes of people so far. The
        next stage begins with the match of number `first`."""
        with read_run(self._journal.ref) as reader:
            self._builder.load(reader, first - 1)
            places = self._builder.places_to_judge(stage, arms)
            return places, read_verdict_votes(reader) if places else {}

    def cautions(self) -> Iterator[str]:
        """Warnings about settings that make gains hard to interpret, and notices of retrievers,
        once a stage has begun."""
        assert self._rehearsal is not None
        for retriever in self._retrievers.values():
            yield retriever.notice
        for name, arm in self._settings.arms.items():
            if not arm.searches:
                continue
            for role in self._builder.rules[name]:
                own, k = self._rehearsal.own.get(role, 0), self._rehearsal.choose_k(role, arm.k)
                if own and k != own and arm.memory == "demonstrations":
                    yield (
                        f"the standard stage shows {plural(own, 'example')}, but later stages "
                        f"show {k}, so a gain or loss may come from the number of examples "
                        f"alone. To show the same number, add --evolve k={own}"
                    )

    def _read_record(self, wanted: set[int], first: int) -> RecalledByPlace:
        """Read the matches before a stage, which begins with the match of number `first`, and what
        is on record for some of its matches."""
        with read_run(self._journal.ref) as reader:
            self._builder.load(reader, first - 1)
            found = reader.experiences.recalled(min(wanted), max(wanted))
            rows = [each for each in found if each.match in wanted]
        return {(each.match, each.seat): each for each in rows}

    def wrap(self, spec: MatchSpec, seat: Seat, participant: Participant) -> Participant:
        """A participant that is shown its experiences in one match."""
        found = self._recalled.get((spec.number, seat.key))
        if found is None:
            return participant
        shown = self._builder.recollection(found, spec.arm.removesuffix(PROBE))
        return Recalling(participant, shown)

    def _search_stage(self, matches: Sequence[MatchSpec]) -> list[Recalled]:
        groups: dict[MemoryOwner, list[tuple[MatchSpec, Seat]]] = {}
        for spec in matches:
            rules = self._builder.rules[spec.arm.removesuffix(PROBE)]
            for seat, alias in spec.seats.items():
                if seat.role in rules and seat not in spec.unscored:
                    owner = MemoryOwner(alias, seat.role, spec.arm, spec.repeat)
                    groups.setdefault(owner, []).append((spec, seat))
        return [row for owner, seats in groups.items() for row in self._search(owner, seats)]

    def _search(
        self, owner: MemoryOwner, seats: Sequence[tuple[MatchSpec, Seat]]
    ) -> Iterator[Recalled]:
        """Find what to show the seats of one owner in one stage."""
        name, stage = owner.arm.removesuffix(PROBE), seats[0][0].stage
        arm, retriever = self._settings.arm(owner.arm), self._retrievers[name]
        where = f"{self._prepared.config.seed}|{owner.arm}|{stage}|{owner.series}"
        assert self._rehearsal is not None
        k = self._rehearsal.choose_k(owner.role, arm.k)
        own_examples = OWN_EXAMPLES.get(arm.retriever, "fill")
        if own_examples == "keep":
            return
        if own_examples == "shuffle":
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
        """The nearest experiences for every seat, nearest first; none for a seat without a cue."""
        cues = [self._builder.cue(spec, seat) for spec, seat in seats]
        asked = [at for at, cue in enumerate(cues) if cue]
        found: list[list[Neighbour]] = [[] for _ in seats]
        if not memory or not asked:
            return found
        items = [spec.block for spec, _ in seats]
        wanted = Search(
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
        results = retriever.search(wanted)
        check_found(retriever.name, wanted, results)
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
        left = self._tokens_left(arm, spec, seat)
        if left is None:
            return shown
        insights = arm.memory == "insights"
        sizes = [
            estimate_text_tokens(each.lesson) if insights else estimate_tokens(each.turns)
            for each, _ in shown
        ]
        count = len(shown)
        while count and sum(sizes[:count]) > left:
            count -= 1
        return shown[:count]

    def _tokens_left(self, arm: EvolveArm, spec: MatchSpec, seat: Seat) -> float | None:
        """How many tokens experiences may have; None means no limit."""
        who, _ = self._prepared.participants[spec.seats[seat]]
        context = getattr(getattr(who, "provider", None), "context", None)
        if not isinstance(context, int):
            return arm.fit
        own = self._builder.sizes.get(seat_place(spec, seat), 0.0)
        left = max(0.0, context - (limit_of(who) or REPLY_TOKENS) - own) / TOKEN_MARGIN
        return left if arm.fit is None else min(left, arm.fit)


async def rehearse_match(prepared: Prepared, spec: MatchSpec) -> Rehearsal:
    """Play a match with stand-ins, to count the task's own examples by role."""
    assert prepared.config.evolve is not None
    rehearsal = Rehearsal(prepared.config.evolve)
    cast = {
        alias: StandIn(alias, options, type(prepared.task), USUAL)
        for alias, options in prepared.config.live_models.items()
    }
    await make_match(prepared, replace(spec, stage=0, arm=""), cast, rehearsal).play()
    return rehearsal
