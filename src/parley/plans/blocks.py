"""Makes the blocks of a run: their item, arrangement and seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from parley.errors import UsageError, unknown_name
from parley.plans import MatchSpec, seed_for
from parley.plans.arrangements import ARRANGEMENTS, SeatingProblem, seat_instruments
from parley.rules.pool import Seat
from parley.rules.task import Task

Active = Callable[[str, str], bool]  # by role and alias, whether its result is still wanted


class BlockMaker:
    """Makes the matches of any block of a run."""

    def __init__(
        self,
        name: str,
        task: Task,
        contestants: Sequence[str],
        instruments: Mapping[str, Sequence[str]],
        seed: int,
        size: int | None = None,
        adversary: str | None = None,
    ) -> None:
        if name not in ARRANGEMENTS:
            raise unknown_name("plan", name, ARRANGEMENTS)
        if not contestants:
            raise UsageError("no models are given: name at least one with -m PROVIDER/NAME")
        self._arrange, self._table, self._seed = (
            ARRANGEMENTS[name],
            SeatingProblem(task, contestants, size, seed, adversary or ""),
            seed,
        )
        self._instruments = seat_instruments(task, instruments)
        if size is not None:
            refuse_size(self._table, name, size)

    def matches(
        self,
        after: int,
        block: str,
        item: str | None,
        repeat: int,
        turn: int,
        active: Active | None = None,
    ) -> list[MatchSpec]:
        """The matches of one repeat that are still needed, numbered after `after`. Seats whose
        result is already decided stay unscored."""
        seed = seed_for(self._seed, block, repeat)
        found: list[MatchSpec] = []
        for seats in self._arrange(self._table, turn, f"{seed}|arrangement"):
            unscored = unscored_seats(seats, active, self._table.adversary)
            if len(unscored) < len(seats):
                number = after + len(found) + 1
                found.append(
                    MatchSpec(
                        number, block, item, repeat, seed, {**seats, **self._instruments}, unscored
                    )
                )
        return found


def unscored_seats(
    seats: Mapping[Seat, str], active: Active | None, adversary: str
) -> frozenset[Seat]:
    """Seats of models whose result in that role is decided, and the seats of the adversary."""
    return frozenset(
        seat
        for seat, alias in seats.items()
        if alias == adversary or (active is not None and not active(seat.role, alias))
    )


def refuse_size(table: SeatingProblem, plan: str, size: int) -> None:
    """Raise UsageError unless the task leaves the size open and the plan makes groups."""
    name = table.open_role
    if name is None or plan not in ("cycles", "round_robin"):
        raise UsageError(
            "--seats only works for a task with a single contestant role of variable size, and "
            "with `--plan cycles`, `race` or `round_robin`: remove --seats"
        )
    role = table.roles[name]
    if size not in role.sizes:
        raise UsageError(
            f"--seats {size} is not possible, because a match of the task {table.task.name} has "
            f"{role.size_text} seats for role `{name}`"
        )
