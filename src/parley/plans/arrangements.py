"""Arrangements: who meets whom within one block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from random import Random

from parley.errors import UsageError, unknown_name
from parley.rules.pool import Seat
from parley.rules.task import Role, Task
from parley.tables import plural

Seating = Mapping[Seat, str]


@dataclass(frozen=True)
class SeatingProblem:
    """What an arrangement has to solve: the contestant seats of a task, and who may fill them."""

    task: Task
    contestants: Sequence[str]
    size: int | None = None  # of the one role of open size, where it is chosen
    seed: int = 0  # of the run
    adversary: str = ""  # the opponent of all contestants, in the plan `versus`

    @property
    def roles(self) -> dict[str, Role]:
        return contestant_roles(self.task)

    @property
    def open_role(self) -> str | None:
        """The contestant role whose size the plan chooses, if it is the only contestant role."""
        return (
            next((name for name, role in self.roles.items() if role.open), None)
            if len(self.roles) == 1
            else None
        )

    def seats(self, size: int | None = None) -> list[Seat]:
        """The contestants' seats, with `size` of them in the role of open size."""
        return [
            seat
            for name, role in self.roles.items()
            for seat in role.seats(name, size or role.min_seats)
        ]


def seat_all_together(table: SeatingProblem, turn: int, rng: Random) -> Iterator[Seating]:
    """All contestants at one table; positions rotate from block to block.

    If they speak in turn, a new random order is drawn whenever everybody has been in every
    position.
    """
    task, contestants, name = table.task, table.contestants, table.open_role
    if name is None:
        raise UsageError(
            f"{task.name} has no single role of open size, so its models cannot sit "
            f"together: use round_robin"
        )
    role = task.roles[name]
    if len(contestants) not in role.sizes:
        raise UsageError(
            f"{task.name} seats {role.size_text} {name} together, got "
            f"{plural(len(contestants), 'model')}"
            + (
                " (one model may be given twice under two aliases)"
                if len(contestants) < role.min_seats
                else ""
            )
            + (
                ": `--plan cycles` seats them in groups"
                if len(contestants) > role.min_seats
                else ""
            )
        )
    if task.sequential_speakers:
        contestants = Random(f"{table.seed}|{turn // len(contestants)}").sample(
            list(contestants), len(contestants)
        )
    shift = turn % len(contestants)
    yield dict(
        zip(
            table.seats(len(contestants)), [*contestants[shift:], *contestants[:shift]], strict=True
        )
    )


def seat_round_robin(table: SeatingProblem, turn: int, rng: Random) -> Iterator[Seating]:
    """Every ordered assignment of contestants to seats: both orders, all roles."""
    seats = require_contestants(table, table.seats(table.size))
    for order in permutations(table.contestants, len(seats)):
        yield dict(zip(seats, order, strict=True))


def seat_each_alone(table: SeatingProblem, turn: int, rng: Random) -> Iterator[Seating]:
    """Every contestant alone, for tasks with one contestant seat."""
    if len(table.seats()) != 1:
        raise UsageError(
            f"{table.task.name} has more than one contestant seat: use round_robin, "
            f"cycles or together"
        )
    return seat_round_robin(table, turn, rng)


def seat_in_cycles(table: SeatingProblem, turn: int, rng: Random) -> Iterator[Seating]:
    """A random circle of all contestants. Each match seats neighbours, so everybody sits in every
    seat once.

    With two seats this is a cycle through all models: n matches a block instead of n(n − 1), each
    model in each role once, against a partner drawn from all the others alike. A role of open size
    seats everybody if it can, in one match.
    """
    count, name = len(table.contestants), table.open_role
    size = table.size or (
        max((size for size in table.roles[name].sizes if size <= count), default=None)
        if name
        else None
    )
    seats = require_contestants(table, table.seats(size))
    if name and len(seats) == count:
        yield from seat_all_together(table, turn, rng)
        return
    circle = rng.sample(list(table.contestants), count)
    for first in range(count):
        yield {seat: circle[(first + place) % count] for place, seat in enumerate(seats)}


def seat_against_adversary(table: SeatingProblem, turn: int, rng: Random) -> Iterator[Seating]:
    """Every contestant against the one adversary, in both seats."""
    seats = table.seats(table.size)
    if len(seats) != 2:
        raise UsageError(
            f"{table.task.name} has {len(seats)} contestant seats, and `versus` is for two"
        )
    if not table.adversary:
        raise UsageError(
            "the plan versus wants somebody whom all models meet: --adversary [ALIAS=]PROVIDER/NAME"
        )
    for alias in table.contestants:
        yield dict(zip(seats, (alias, table.adversary), strict=True))
        yield dict(zip(seats, (table.adversary, alias), strict=True))


ARRANGEMENTS: dict[str, Callable[[SeatingProblem, int, Random], Iterator[Seating]]] = {
    "cycles": seat_in_cycles,
    "each": seat_each_alone,
    "round_robin": seat_round_robin,
    "together": seat_all_together,
    "versus": seat_against_adversary,
}


def require_contestants(table: SeatingProblem, seats: list[Seat]) -> list[Seat]:
    """The seats; raises UsageError if there are fewer contestants than seats."""
    if len(table.contestants) < len(seats):
        raise UsageError(
            f"{table.task.name} has {plural(len(seats), 'contestant seat')}, "
            f"got {plural(len(table.contestants), 'model')} "
            "(one model may be given twice under two aliases)"
        )
    return seats


def contestant_roles(task: Task | type[Task]) -> dict[str, Role]:
    """The roles whose models rotate through the seats and are ranked."""
    return {name: role for name, role in task.roles.items() if not role.instrument}


def default_arrangement(task: Task | type[Task]) -> str:
    """The arrangement of a task if the user names none."""
    roles = contestant_roles(task).values()
    if len(roles) == 1 and all(role.open for role in roles):
        return "together"
    return "each" if sum(role.min_seats for role in roles) == 1 else "round_robin"


def seat_instruments(task: Task, given: Mapping[str, Sequence[str]]) -> dict[Seat, str]:
    """Put judges and interviewers into their seats, as configured."""
    known = {name: role for name, role in task.roles.items() if role.instrument}
    for name in given:
        if name not in known and name == "critic":
            raise UsageError(
                f"{task.name} has no role critic; to ask a critic what a model should remember, "
                f"set --evolve feedback=critic"
            )
        if name not in known:
            raise unknown_name(f"instrument role of {task.name}:", name, known)
    seats: dict[Seat, str] = {}
    for name, role in known.items():
        aliases = given.get(name, ())
        if len(aliases) not in role.sizes:
            raise UsageError(
                f"{task.name}: role {name!r} takes {role.size_text} models, got {len(aliases)}: "
                f"--role {name}=PROVIDER/NAME"
            )
        seats.update(zip(role.seats(name, len(aliases)), aliases, strict=True))
    return seats
