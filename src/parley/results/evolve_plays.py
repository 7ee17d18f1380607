"""The plays of an `evolve` run: the same seats in every stage, with their scores and the
experiences that they were shown. Each table of the run is read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from parley.memory.experiences import choose_held_out
from parley.memory.same_items import ItemNumbers
from parley.plans.evolve_settings import (
    PROBE,
    EvolveArm,
    EvolveSettings,
    SuccessRule,
    find_success_rules,
)
from parley.results.scores import RunScores
from parley.rules.pool import Seat
from parley.statistics.paired_gain import Play
from parley.store.types import MatchRow

NEAR = 0.45  # L2 distance up to which an experience is a near duplicate: a cosine of 0.9


class PlayOwner(NamedTuple):
    """A model in a role."""

    alias: str
    role: str


class StageKey(NamedTuple):
    """A stage of an arm. The standard stage has number 0 and belongs to no arm; a stream, whose
    windows have each item once, is one stage."""

    arm: str
    stage: int


STANDARD = StageKey("", 0)


class PlayPlace(NamedTuple):
    """One seat of one match."""

    match: int
    seat: Seat


@dataclass
class ShownCounts:
    """What the seats of one stage were shown."""

    seats: int = 0
    experiences: int = 0
    dropped: int = 0
    # (item, shown experiences that were of the same item or a near duplicate, all that were shown)
    same: list[tuple[str, int, int]] = field(default_factory=list)
    near: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass
class OwnerPlays:
    """All plays of a model in a role. Every list has an entry for each play."""

    plays: list[Play] = field(default_factory=list)
    places: dict[StageKey, list[PlayPlace | None]] = field(default_factory=dict)
    marks: dict[StageKey, list[Mapping[str, float | None]]] = field(default_factory=dict)
    shown: dict[StageKey, ShownCounts] = field(default_factory=dict)
    windows: dict[str, list[int]] = field(default_factory=dict)  # of streams, by arm

    def values(self, stage: StageKey, metric: str) -> list[float | None]:
        """The scores in one metric; None if there is none."""
        return [marks.get(metric) for marks in self.marks.get(stage, [{}] * len(self.plays))]

    def successes(self, stage: StageKey, rule: SuccessRule) -> list[float | None]:
        """1 for a success, 0 for a failure, None if there is no score."""
        return [
            None if value is None else float(rule.holds(value))
            for value in self.values(stage, rule.metric)
        ]

    def planned(self, stage: StageKey) -> int:
        """The number of plays in a stage."""
        return sum(place is not None for place in self.places.get(stage, ()))

    def stages_of(self, arm: str) -> list[StageKey]:
        """The stages of an arm that have scores, without the standard stage."""
        return sorted(key for key in self.marks if key.arm == arm and any(self.marks[key]))


@dataclass(frozen=True)
class EvolvePlays:
    """What the part `evolve` is computed from."""

    settings: EvolveSettings
    owners: dict[PlayOwner, OwnerPlays]
    rules: dict[str, dict[str, SuccessRule]]  # by arm and role
    subjects: dict[str, str]  # by item
    held_out: dict[str, frozenset[str]]  # by arm


def collect_evolve_plays(run: RunScores, settings: EvolveSettings) -> EvolvePlays:
    """Read the plays of a run."""
    metrics, task = list(run.metrics.values()), str(run.identity["task"])
    rules = {
        name: find_success_rules(metrics, run.roles, arm, task)
        for name, arm in settings.arms.items()
    }
    played = len(run.every_match) == sum(run.reader.matches.counts().values())
    listed = (
        run.every_match if played else run.reader.matches.read()
    )  # failed matches count as well
    matches = {match.number: match for match in listed}
    items = {str(item["id"]): item for item in run.reader.run.items()}
    # without items, the block identifies the game
    known = {match.block: items.get(match.block, {}) for match in matches.values()}
    field = run.identity.get("stratum", "subject")
    subjects = {name: str(item.get(field) or "") for name, item in known.items()}
    strata: dict[str, list[str]] = {}
    for item, subject in subjects.items():
        strata.setdefault(subject, []).append(item)
    held_out = {
        name: choose_held_out(strata, arm.held_out, run.config.seed)
        for name, arm in settings.arms.items()
    }
    scored = {role for by_role in rules.values() for role in by_role}
    streams = frozenset(name for name, arm in settings.arms.items() if arm.window is not None)
    owners = place_plays(matches.values(), scored, run.roles, streams)
    fill_in_scores(run, owners)
    count_shown(run, settings, matches, owners, known, streams)
    return EvolvePlays(settings, owners, rules, subjects, held_out)


def find_stage(match: MatchRow, streams: frozenset[str]) -> StageKey:
    """The stage that a match belongs to."""
    return StageKey(match.arm, 1 if match.arm in streams else match.stage)


class Seating(NamedTuple):
    """All contestants of a match, and its seats whose plays are analysed."""

    cast: tuple[tuple[str, str], ...]
    scored: list[tuple[Seat, PlayOwner]]


def find_seating(seats: Mapping[Seat, str], roles: set[str], contestants: Sequence[str]) -> Seating:
    """The contestants of a match, without its critics."""
    return Seating(
        tuple(
            sorted((seat.key, alias) for seat, alias in seats.items() if seat.role in contestants)
        ),
        [
            (seat, PlayOwner(alias, seat.role))
            for seat, alias in seats.items()
            if seat.role in roles
        ],
    )


def place_plays(
    matches: Iterable[MatchRow],
    roles: set[str],
    contestants: Sequence[str],
    streams: frozenset[str],
) -> dict[PlayOwner, OwnerPlays]:
    """Number the plays of each owner: a play is a seat at a table of the same contestants, on an
    item, in a series. Tables that a series has several times go by their order. Critics do not
    count: a stage may have others, or none."""
    numbers: dict[PlayOwner, dict[tuple[Any, ...], int]] = {}
    found: dict[PlayOwner, OwnerPlays] = {}
    seen: dict[tuple[Any, ...], int] = {}
    places: dict[tuple[PlayOwner, StageKey], dict[int, PlayPlace]] = {}
    windows: dict[tuple[PlayOwner, str], dict[int, int]] = {}
    seatings: dict[int, Seating] = {}  # matches share a few
    for match in matches:
        stage, item = find_stage(match, streams), match.block
        seating = seatings.get(id(match.seats))
        if seating is None:
            seating = find_seating(match.seats, roles, contestants)
            seatings[id(match.seats)] = seating
        table = (stage, item, match.repeat, seating.cast)
        count = seen[table] = seen.get(table, 0) + 1
        for seat, owner in seating.scored:
            if seat in match.unscored:
                continue
            own = found.setdefault(owner, OwnerPlays())
            known = numbers.setdefault(owner, {})
            key = (item, match.repeat, seating.cast, seat.key, count)
            number = known.setdefault(key, len(known))
            if number == len(own.plays):
                own.plays.append(Play(item, match.repeat))
            places.setdefault((owner, stage), {})[number] = PlayPlace(match.number, seat)
            if match.arm in streams:
                windows.setdefault((owner, match.arm), {})[number] = match.stage
    for (owner, stage), by_number in places.items():
        own = found[owner]
        own.places[stage] = [by_number.get(number) for number in range(len(own.plays))]
    for (owner, arm), by_play in windows.items():
        found[owner].windows[arm] = [
            by_play.get(number, 0) for number in range(len(found[owner].plays))
        ]
    return found


def fill_in_scores(run: RunScores, owners: Mapping[PlayOwner, OwnerPlays]) -> None:
    """Add the scores of all plays."""
    scores: dict[tuple[int, Seat], dict[str, float | None]] = {}
    for score in run.every_score:
        seat = Seat(score.role, score.position)
        scores.setdefault((score.match, seat), {})[score.metric] = score.value
    nothing: dict[str, float | None] = {}
    for own in owners.values():
        for stage, places in own.places.items():
            own.marks[stage] = [
                nothing if place is None else scores.get((place.match, place.seat), nothing)
                for place in places
            ]


def count_shown(
    run: RunScores,
    settings: EvolveSettings,
    matches: Mapping[int, MatchRow],
    owners: Mapping[PlayOwner, OwnerPlays],
    items: Mapping[str, Mapping[str, Any]],
    streams: frozenset[str],
) -> None:
    """Count the experiences that seats were shown, and those of the same item or near "
    "duplicates."""
    numbers = ItemNumbers()
    own_number = {name: numbers.number(name, describe_item(item)) for name, item in items.items()}
    number_of = {match.number: own_number[match.block] for match in matches.values()}
    for at, each in enumerate(run.reader.experiences.transferred(), 1):
        number_of[-at] = numbers.number(each.item, each.cue, foreign=True)
    seats: dict[str, Seat] = {}
    for row in run.reader.experiences.recalled():
        match = matches.get(row.match)
        if match is None or not match.has_ended or match.stage == 0:
            continue  # the standard stage recalls nothing; the audit checks this
        seat = seats.get(row.seat) or seats.setdefault(row.seat, Seat.of(row.seat))
        own = owners.get(PlayOwner(match.seats.get(seat, ""), seat.role))
        if own is None:
            continue
        found = own.shown.setdefault(find_stage(match, streams), ShownCounts())
        found.seats += 1
        found.experiences += len(row.shown)
        found.dropped += row.dropped
        number = number_of.get(row.match)
        dense = is_distance_comparable(settings.arms[match.arm.removesuffix(PROBE)])
        same = [number_of.get(shown.match) == number for shown in row.shown]
        found.same.append((match.block, sum(same), len(same)))
        if dense:
            near = sum(
                shown.distance <= NEAR and not own_item
                for shown, own_item in zip(row.shown, same, strict=True)
            )
            found.near.append((match.block, near, len(same)))


def describe_item(item: Mapping[str, Any]) -> str:
    """The text that decides whether two items are the same: the question with its choices, or the
    description."""
    words = item.get("question") or item.get("description") or ""
    choices = item.get("choices") or ()
    return "\n".join([str(words), *map(str, choices)]) if words else ""


def is_distance_comparable(arm: EvolveArm) -> bool:
    """Whether the distances of an arm's retriever can identify near duplicates."""
    return arm.retriever == "minilm"  # its embeddings have unit length
