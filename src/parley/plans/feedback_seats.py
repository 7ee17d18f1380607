"""Seats for feedback in the plan `evolve`: critics, and players who write lessons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parley.errors import UsageError
from parley.memory.feedback import CRITIC, CRITICS, LESSON_WRITER, SELF_CRITIC
from parley.plans.arrangements import contestant_roles
from parley.plans.evolve_settings import (
    PROBE,
    EvolveArm,
    EvolveSettings,
    find_success_rules,
)
from parley.rules.pool import Seat
from parley.rules.task import Metric, Role, Task


@dataclass(frozen=True)
class FeedbackWanted:
    """What a run asks after its matches. Arms that recall nothing need no feedback."""

    critic: bool = False
    self_critic: bool = False
    # the feedback shown to players before they write lessons; empty without lessons
    lessons: str = ""
    lesson_success: str = ""  # the `success` of arms with lessons
    # the `success` of every arm that asks something
    success: tuple[str, ...] = ()
    outcomes: bool = False  # experiences are shown with their outcome

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that are asked."""
        wanted = {
            CRITIC: self.critic,
            SELF_CRITIC: self.self_critic,
            LESSON_WRITER: bool(self.lessons),
        }
        return tuple(role for role, is_wanted in wanted.items() if is_wanted)


def find_wanted_feedback(settings: EvolveSettings) -> FeedbackWanted:
    """What the arms of a run need to ask after matches."""
    arms = [arm for arm in settings.arms.values() if arm.searches]
    asking = [arm for arm in arms if roles_for_arm(arm)]
    writing = [arm for arm in arms if arm.memory == "insights"]
    if len({(arm.feedback, arm.success) for arm in writing}) > 1:
        raise UsageError(
            "evolve.arms: all arms with `memory=insights` share the lessons from the standard "
            "stage, so they need the same `feedback` and `success`"
        )
    for arm in writing:
        if arm.poison:
            raise UsageError(
                "evolve: `poison` has no effect with `memory=insights`, because lessons from "
                "failures are kept as well: remove `poison`"
            )
    return FeedbackWanted(
        any(arm.feedback == "critic" for arm in asking),
        any(arm.feedback == "self" for arm in asking),
        writing[0].feedback if writing else "",
        writing[0].success if writing else "",
        tuple(dict.fromkeys(arm.success for arm in asking)),
        any(arm.keep == "all" for arm in arms),
    )


def roles_for_arm(arm: EvolveArm) -> set[str]:
    """Who is asked after the matches of an arm."""
    if not arm.searches:
        return set()
    judges = {CRITICS[arm.feedback]} if arm.feedback in CRITICS else set()
    return judges | ({LESSON_WRITER} if arm.memory == "insights" else set())


def feedback_role(task: Task | type[Task]) -> Role:
    """A role with at most one seat for each contestant."""
    most = sum(role.largest for role in contestant_roles(task).values())
    return Role(0, most, instrument=True)


def list_judged_seats(
    wanted: FeedbackWanted, task: Task, metrics: Sequence[Metric], seats: Sequence[Seat]
) -> list[Seat]:
    """The contestants that are judged or write lessons, by role and number: those whose role has a
    success rule."""
    roles = list(contestant_roles(task))
    judged = {
        role
        for success in wanted.success
        for role in find_success_rules(metrics, roles, EvolveArm(success=success), task.name)
    }
    found = [seat for seat in seats if seat.role in judged]
    return sorted(found, key=lambda seat: (roles.index(seat.role), seat.number))


class FeedbackSeats:
    """Adds the seats that are asked after a match. The run has one critic; players who judge
    themselves or write lessons keep their own alias."""

    def __init__(
        self,
        settings: EvolveSettings,
        task: Task,
        metrics: Sequence[Metric],
        critics: Sequence[str],
    ) -> None:
        self._settings, self._task, self._metrics = settings, task, metrics
        self._wanted = find_wanted_feedback(settings)
        if self._wanted.critic and len(critics) != 1:
            raise UsageError(
                f"evolve: `feedback=critic` needs exactly one critic, not {len(critics)}: use "
                f"--role {CRITIC}=PROVIDER/NAME"
            )
        if critics and not self._wanted.critic:
            raise UsageError(
                f"--role {CRITIC}={critics[0]} has no effect, because this run does not use a "
                f"critic: add --evolve feedback=critic, or remove --role {CRITIC}"
            )
        self._critic = critics[0] if critics else ""

    def seats_after(self, players: Mapping[Seat, str], stage: int, arm: str) -> dict[Seat, str]:
        """Who is asked after a match between these players; nobody is asked after a probe."""
        if arm.endswith(PROBE):
            return {}
        arms = self._settings.arms
        roles = {
            role
            for each in ([arms[arm]] if arm else arms.values())
            # the standard stage of a stream is a control
            if stage > 0 or each.window is None
            for role in roles_for_arm(each)
        }
        if not roles:
            return {}
        judged = list_judged_seats(self._wanted, self._task, self._metrics, list(players))
        found: dict[Seat, str] = {}
        for role in self._wanted.roles:
            if role in roles:
                places = feedback_role(self._task).seats(role, len(judged))
                aliases = [self._critic if role == CRITIC else players[seat] for seat in judged]
                found.update(zip(places, aliases, strict=True))
        return found
