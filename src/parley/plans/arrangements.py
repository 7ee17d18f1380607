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
    """The input of an arrangement: the contestant seats of a task, and the models for them."""

    task: Task
    contestants: Sequence[str]
    size: int | None = None  # seats of the one role of variable size, if the user sets it
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
        """The contestants' seats, with `size` of them in the role of variable size."""
        return [
            seat
            for name, role in self.roles.items()
            for seat in role.seats(name, size or role.min_seats)
        ]


def seat_all_together(table: SeatingProblem, turn: int, seed: int | str) -> Iterator[Seating]:
    """All contestants in one match; positions rotate from block to block.

    If they speak in turn, a new random order is drawn whenever every model has been in every
    position.
    """
    task, contestants, name = table.task, table.contestants, table.open_role
    if name is None:
        raise UsageError(
            "`--plan together` needs a task with a single contestant role of variable size, but "
            f"{task.name} has none: use --plan round_robin"
        )
    role = task.roles[name]
    if len(contestants) not in role.sizes:
        raise UsageError(
            f"a match of the task {task.name} has {role.size_text} seats for role `{name}`, but "
            f"you named {plural(len(contestants), 'model')}"
            + (
                " (you can name a model twice, under two aliases)"
                if len(contestants) < role.min_seats
                else ""
            )
            + (
                ": use `--plan cycles`, which lets them play in groups"
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


def seat_round_robin(table: SeatingProblem, turn: int, seed: int | str) -> Iterator[Seating]:
    """Every ordered assignment of contestants to seats: both orders, all roles."""
    seats = require_contestants(table, table.seats(table.size))
    for order in permutations(table.contestants, len(seats)):
        yield dict(zip(seats, order, strict=True))


def seat_each_alone(table: SeatingProblem, turn: int, seed: int | str) -> Iterator[Seating]:
    """Every contestant alone, for tasks with one contestant seat."""
    if len(table.seats()) != 1:
        raise UsageError(
            f"`--plan each` needs a task with one contestant seat, but {table.task.name} has "
            f"{len(table.seats())}: use --plan round_robin, cycles or together"
        )
    return seat_round_robin(table, turn, seed)


def seat_in_cycles(table: SeatingProblem, turn: int, seed: int | str) -> Iterator[Seating]:
    """A random circle of all contestants. Each match seats neighbours, so every model sits in every
    seat once.

    With two seats this is a cycle through all models: n matches per block instead of n(n − 1), each
    model in each role once, against a partner drawn uniformly from all others. A role of variable
    size seats all models in one match if it can.
    """
    count, name = len(table.contestants), table.open_role
    size = table.size or (
        max((size for size in table.roles[name].sizes if size <= count), default=None)
        if name
        else None
    )
    seats = require_contestants(table, table.seats(size))
    if name and len(seats) == count:
        yield from seat_all_together(table, turn, seed)
        return
    circle = Random(seed).sample(list(table.contestants), count)
    for first in range(count):
        yield {seat: circle[(first + place) % count] for place, seat in enumerate(seats)}


def seat_against_adversary(table: SeatingProblem, turn: int, seed: int | str) -> Iterator[Seating]:
    """Every contestant against the one adversary, in both seats."""
    seats = table.seats(table.size)
    if len(seats) != 2:
        raise UsageError(
            f"`--plan versus` needs a task with 2 contestant seats, but `{table.task.name}` has "
            f"{len(seats)}: choose another plan or task"
        )
    if not table.adversary:
        raise UsageError(
            "`--plan versus` needs an opponent for the models: add --adversary "
            "[ALIAS=]PROVIDER/NAME"
        )
    for alias in table.contestants:
        yield dict(zip(seats, (alias, table.adversary), strict=True))
        yield dict(zip(seats, (table.adversary, alias), strict=True))


ARRANGEMENTS: dict[str, Callable[[SeatingProblem, int, int | str], Iterator[Seating]]] = {
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
            f"the task {table.task.name} has {plural(len(seats), 'contestant seat')}, but you "
            f"named only {plural(len(table.contestants), 'model')}: add models with -m (you can "
            "name a model twice, under two aliases)"
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
                f"the task {task.name} has no role `critic`: if a critic should decide what "
                "models remember, add --evolve feedback=critic"
            )
        if name not in known:
            raise unknown_name(f"instrument role of {task.name}:", name, known)
    seats: dict[Seat, str] = {}
    for name, role in known.items():
        aliases = given.get(name, ())
        if len(aliases) not in role.sizes:
            raise UsageError(
                f"role {name!r} of the task {task.name} needs {role.size_text} "
                f"{'model' if role.size_text == '1' else 'models'}, not {len(aliases)}: use "
                f"--role {name}=PROVIDER/NAME"
            )
        seats.update(zip(role.seats(name, len(aliases)), aliases, strict=True))
    return seats
