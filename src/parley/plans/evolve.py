"""The plan `evolve`: plays the same items in several stages; models see their earlier successes.

Stage 0 is the standard stage, which all arms share. A stage reads the memory as it stood when the
stage began, so the matches of a stage do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from itertools import product
from typing import NamedTuple

from parley.errors import UsageError
from parley.memory.experiences import draw_share
from parley.plans import Done, FinishedMatches, MatchSpec
from parley.plans.blocks import BlockMaker
from parley.plans.evolve_settings import PROBE, EvolveArm, EvolveSettings
from parley.plans.feedback_seats import FeedbackSeats
from parley.plans.planned_matches import PlannedMatches
from parley.rules.pool import Seat
from parley.tables import plural


class StageSection(NamedTuple):
    """The part of a stage that one arm plays: the series and items, in order."""

    arm: str
    places: Sequence[tuple[int, str]]


class EvolvePlan:
    """Plays stage after stage, all arms of a stage together."""

    ahead = 0

    def __init__(
        self,
        series: BlockMaker,
        settings: EvolveSettings,
        items: Sequence[str],
        repeats: int,
        seed: int,
        has_items: bool = True,
        feedback: FeedbackSeats | None = None,
    ) -> None:
        if len(items) < 2:
            raise UsageError(
                "`--plan evolve` needs at least two "
                f"{'items' if has_items else 'games per stage'}, so that a model can use what "
                "it learned from one of them in another: "
                f"{'add --items N' if has_items else 'add --repeats N'}"
            )
        for name, arm in settings.arms.items():
            count = round(arm.held_out * len(items))
            if arm.held_out and count in (0, len(items)):
                raise UsageError(
                    f"evolve.arms.{name}: with held_out={arm.held_out:g}, "
                    f"{'none' if count == 0 else 'all'} of the {len(items):,} items would be "
                    "held out: choose another share, or more items"
                )
        self._feedback = feedback
        self._series, self._items, self._repeats, self._seed = series, list(items), repeats, seed
        self.settings, self._has_items = settings, has_items
        self._turns = {
            (repeat, item): turn
            for turn, (repeat, item) in enumerate(product(range(1, repeats + 1), self._items))
        }
        self._size = len(series.matches(0, "", None, 1, 0))  # matches of one series on one item
        self.stages: list[PlannedMatches] = []
        played = 0
        for number in range(1 + max(self._stage_count(arm) for arm in settings.arms.values())):
            stage = self._stage(number, played)
            self.stages.append(stage)
            played += len(stage)
        self._at = 0

    @property
    def first_match(self) -> MatchSpec:
        return self.stages[0][0]

    @property
    def status_line(self) -> str:
        if self._at == 0:
            return "standard stage"
        streams = all(arm.window is not None for arm in self.settings.arms.values())
        return f"{'window' if streams else 'stage'} {self._at} of {len(self.stages) - 1}"

    @property
    def match_count(self) -> int:
        """How many matches there are in all stages."""
        return sum(map(len, self.stages))

    def cautions(self) -> Sequence[str]:
        arms = plural(len(self.settings.arms), "arm")
        return [
            f"`--plan evolve` plays {plural(len(self.stages[0]), 'match', 'matches')} in the "
            f"standard stage (without memory) and {self.match_count:,} in total ({arms})",
            *(
                f"evolve: window={arm.window} covers all {len(self._items)} "
                f"{'items' if self._has_items else 'games'}, so the memory would be empty until "
                "the end: choose a smaller window"
                for arm in self.settings.arms.values()
                if arm.window is not None and arm.window >= len(self._items)
            ),
        ]

    def matches(self, finished: FinishedMatches) -> Iterator[Sequence[MatchSpec] | Done]:
        for number, stage in enumerate(self.stages):
            self._at = number
            yield stage
        yield Done("plan_complete")

    def _stage_count(self, arm: EvolveArm) -> int:
        """How many stages an arm has after the standard one."""
        return arm.stages if arm.window is None else -(-len(self._items) // arm.window)

    def _stage(self, number: int, played: int) -> PlannedMatches:
        """The matches of one stage, numbered after those that were played before."""
        everything = list(self._turns)
        sections: list[StageSection] = [] if number else [StageSection("", everything)]
        for name, arm in self.settings.arms.items() if number else ():
            if number > self._stage_count(arm):
                continue
            places = everything if arm.window is None else self._window(arm.window, number)
            sections.append(StageSection(name, places))
            if arm.has_probe and number == arm.stages:
                sections.append(StageSection(name + PROBE, places))
        groups = sum(len(section.places) for section in sections)
        return PlannedMatches(groups, self._size, partial(self._matches, sections, number, played))

    def _window(self, size: int, number: int) -> list[tuple[int, str]]:
        """The items of one window; every series has its own order of items."""
        found = []
        for repeat in range(1, self._repeats + 1):
            order = sorted(self._items, key=partial(self._place_in_stream, repeat))
            found += [(repeat, item) for item in order[(number - 1) * size : number * size]]
        return found

    def _item_of(self, block: str) -> str | None:
        """The item of a block; None in a game without items, whose blocks are numbered."""
        return block if self._has_items else None

    def _place_in_stream(self, repeat: int, item: str) -> bytes:
        """A sort key: the seed decides the order of items, not the order they were given in."""
        text = f"{self._seed}|stream|{repeat}|{item}"
        return blake2b(text.encode(), digest_size=8).digest()

    def _matches(
        self, sections: Sequence[StageSection], stage: int, played: int, group: int
    ) -> list[MatchSpec]:
        """The matches of one series on one item: the place of number `group` in a stage."""
        section, *rest = sections
        place = group
        while place >= len(section.places):
            place -= len(section.places)
            section, *rest = rest
        arm, (repeat, item) = section.arm, section.places[place]
        turn = self._turns[repeat, item]
        before = played + group * self._size
        found = []
        for spec in self._series.matches(before, item, self._item_of(item), repeat, turn):
            seats = dict(spec.seats)
            if self._feedback is not None:
                seats |= self._feedback.seats_after(spec.seats, stage, arm)
            found.append(replace(spec, stage=stage, arm=arm, seats=seats))
        return found


def is_poisoned(arm: str, share: float, seed: int, spec: MatchSpec, seat: Seat) -> bool:
    """Whether the verdict on one seat is reversed (`poison`). It does not depend on the order of
    matches."""
    if not share:
        return False
    where = f"{arm}|{spec.stage}|{spec.repeat}|{spec.block}|{seat.key}|{spec.seating}"
    return draw_share(f"{seed}|poison|{where}") < share
