"""Fixed schedules: everything is known before the first match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations, product

from parley.errors import UsageError, unknown
from parley.plan import Block, Done, MatchSpec, seed_for
from parley.pool import Seat
from parley.task import Role, Task

Seating = Mapping[Seat, str]
Arrange = Callable[[Task, Sequence[str], int], Iterator[Seating]]


def together(task: Task, contestants: Sequence[str], turn: int) -> Iterator[Seating]:
    """All contestants at one table; positions rotate from block to block."""
    open_roles = [name for name, role in contestant_roles(task).items() if role.open]
    if len(open_roles) != 1 or len(contestant_roles(task)) != 1:
        raise UsageError(f"{task.name} has no single role of open size, so its models cannot sit together: use round_robin")
    (name,) = open_roles
    role = task.roles[name]
    if not role.least <= len(contestants) <= role.largest:
        raise UsageError(
            f"{task.name} seats {role.least} to {role.largest} {name} together, got {len(contestants)} models"
            + (" (one model may be given twice under two aliases)" if len(contestants) < role.least else "")
        )
    shift = turn % len(contestants)
    yield dict(zip(role.seats(name, len(contestants)), [*contestants[shift:], *contestants[:shift]], strict=True))


def round_robin(task: Task, contestants: Sequence[str], turn: int) -> Iterator[Seating]:
    """Every ordered assignment of contestants to seats: both orders, all roles swapped."""
    seats = [seat for name, role in contestant_roles(task).items() for seat in role.seats(name, role.least)]
    if len(contestants) < len(seats):
        raise UsageError(
            f"{task.name} has {len(seats)} contestant seats, got {len(contestants)} models "
            "(one model may be given twice under two aliases)"
        )
    for order in permutations(contestants, len(seats)):
        yield dict(zip(seats, order, strict=True))


def each(task: Task, contestants: Sequence[str], turn: int) -> Iterator[Seating]:
    """Every contestant by itself, for tasks with one contestant seat."""
    if sum(role.least for role in contestant_roles(task).values()) != 1:
        raise UsageError(f"{task.name} has more than one contestant seat: use round_robin or together")
    return round_robin(task, contestants, turn)


ARRANGEMENTS: dict[str, Arrange] = {"each": each, "round_robin": round_robin, "together": together}


class Fixed:
    """Plays every arrangement on every item, so many times."""

    def __init__(
        self,
        name: str,
        task: Task,
        contestants: Sequence[str],
        instruments: Mapping[str, Sequence[str]],
        items: Sequence[str],
        repeats: int,
        seed: int,
    ) -> None:
        if name not in ARRANGEMENTS:
            raise unknown("plan", name, ARRANGEMENTS)
        if repeats < 1:
            raise UsageError(f"repeats must be at least 1, not {repeats}")
        if not contestants:
            raise UsageError("no models: name at least one with -m PROVIDER/NAME")
        fixed_seats = seated_instruments(task, instruments)
        self.specs: list[MatchSpec] = []
        played_on: Sequence[str | None] = items or [None]
        for turn, (repeat, item) in enumerate(product(range(1, repeats + 1), played_on)):
            block = str(repeat) if item is None else item
            for seats in ARRANGEMENTS[name](task, contestants, turn):
                number, seed_here = len(self.specs) + 1, seed_for(seed, block, repeat)
                self.specs.append(MatchSpec(number, block, item, repeat, seed_here, {**seats, **fixed_seats}))

    def next(self, finished: Sequence[Block]) -> Sequence[MatchSpec] | Done:
        played = {number for block in finished for number in block.scores}
        return [spec for spec in self.specs if spec.number not in played] or Done("plan_complete")


def contestant_roles(task: Task) -> dict[str, Role]:
    """The roles that are rotated and ranked."""
    return {name: role for name, role in task.roles.items() if not role.instrument}


def usual(task: Task) -> str:
    """The plan that fits a task when none is named."""
    roles = contestant_roles(task).values()
    if len(roles) == 1 and all(role.open for role in roles):
        return "together"
    return "each" if sum(role.least for role in roles) == 1 else "round_robin"


def seated_instruments(task: Task, given: Mapping[str, Sequence[str]]) -> dict[Seat, str]:
    """Judges and interviewers in their seats, as configured."""
    known = {name: role for name, role in task.roles.items() if role.instrument}
    for name in given:
        if name not in known:
            raise unknown(f"instrument role of {task.name}:", name, known)
    seats: dict[Seat, str] = {}
    for name, role in known.items():
        aliases = given.get(name, ())
        if not role.least <= len(aliases) <= role.largest:
            raise UsageError(
                f"{task.name}: role {name!r} takes {role.least} to {role.largest} models, got {len(aliases)}: "
                f"--role {name}=PROVIDER/NAME"
            )
        seats.update(zip(role.seats(name, len(aliases)), aliases, strict=True))
    return seats
