"""A task with questions after its matches: critics say whether players succeeded, and players write
a lesson. The task's own rule and scores do not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from parley.errors import Unreadable, UsageError
from parley.memory.feedback import (
    CRITICS,
    FEEDBACK_ROLES,
    LESSON_WORDS,
    LESSON_WRITER,
    CriticVerdict,
    Lesson,
    cut_words,
)
from parley.memory.wording import CRITIC_QUESTION, FAILED, LESSON_QUESTION, LESSONS, SUCCEEDED
from parley.plans.arrangements import contestant_roles
from parley.plans.evolve_settings import EvolveArm, EvolveSettings, find_success_rules
from parley.plans.feedback_seats import (
    FeedbackWanted,
    feedback_role,
    find_wanted_feedback,
    list_judged_seats,
)
from parley.rules.parsing import find_object
from parley.rules.pool import Seat
from parley.rules.prompts import Prompt
from parley.rules.readers import Choice, Text
from parley.rules.referee import Referee
from parley.rules.task import Metric, Scores, Task

if TYPE_CHECKING:
    Base = Task
else:
    Base = object

VERDICT = Choice("success", ("yes", "no"))


class AskedAfterwards(Base):
    """A mixin for a task's class: plays the task, then asks critics and players. Its names cannot
    collide with those of a task."""

    _asked_afterwards: ClassVar[FeedbackWanted]

    async def play(self, referee: Referee, **seats: Any) -> Scores:
        """Play the task, then ask the questions; players do not see them."""
        asked = {role: seats_of_role(seats.pop(role, None)) for role in FEEDBACK_ROLES}
        scores = await super().play(referee, **seats)
        wanted, players = self._asked_afterwards, [*chain(*map(seats_of_role, seats.values()))]
        metrics = self.metrics({role: len(seats_of_role(each)) for role, each in seats.items()})
        judged = list_judged_seats(wanted, self, metrics, players)
        verdicts = await ask_critics(referee, judged, asked)
        if asked[LESSON_WRITER]:
            outcomes = (
                find_successes(self, scores, metrics, judged)
                if wanted.lessons == "truth"
                else {each.seat: each.success for each in verdicts if each.by == wanted.lessons}
            )
            await ask_for_lessons(referee, judged, asked[LESSON_WRITER], outcomes)
        return scores

    def metrics(self, seats: Mapping[str, int]) -> Sequence[Metric]:
        return super().metrics(without_feedback(seats))

    def cautions(self, seats: Mapping[str, int]) -> Iterable[str]:
        return super().cautions(without_feedback(seats))

    def unused_prompts(self, seats: Mapping[str, int]) -> Iterable[str]:
        return super().unused_prompts(without_feedback(seats))

    @classmethod
    def prompts(cls) -> dict[str, Prompt]:
        words = list_prompts(cls._asked_afterwards)
        return {**super().prompts(), **{each.name: each for each in words}}


async def ask_critics(
    referee: Referee, judged: Sequence[Seat], asked: Mapping[str, Sequence[Seat]]
) -> list[CriticVerdict]:
    """Ask critics about every seat; their verdicts are recorded as notes."""
    places = [
        (by, critic, seat)
        for by, role in CRITICS.items()
        for critic, seat in zip(asked[role], judged, strict=False)  # a role may have no critics
    ]
    if not places:
        return []
    said = await referee.together(
        *(
            referee.ask(
                critic,
                referee.render(CRITIC_QUESTION, interaction=referee.quote_conversation(seat)),
                expect=VERDICT,
                default=None,
            )
            for _, critic, seat in places
        )
    )
    found = []
    for (by, _, seat), word in zip(places, said, strict=True):
        success = None if word is None else word == "yes"
        found.append(CriticVerdict(seat, by, success, read_reason(word)))
        referee.note(found[-1])
    return found


async def ask_for_lessons(
    referee: Referee,
    judged: Sequence[Seat],
    writers: Sequence[Seat],
    outcomes: Mapping[Seat, bool | None],
) -> None:
    """Ask players for lessons, except those whose outcome is not known."""
    places = [
        (writer, seat, outcomes[seat])
        for writer, seat in zip(writers, judged, strict=True)
        if outcomes.get(seat) is not None
    ]
    if not places:
        return
    said = await referee.together(
        *(
            referee.ask(
                writer,
                referee.render(
                    LESSON_QUESTION,
                    interaction=referee.quote_conversation(seat),
                    outcome="a success" if success else "a failure",
                    words=LESSON_WORDS,
                ),
                expect=Text(),
                default=None,
                attempts=2,
            )
            for writer, seat, success in places
        )
    )
    for (_, seat, _), text in zip(places, said, strict=True):
        if text is not None:
            referee.note(Lesson(seat, *cut_words(text)))


def find_successes(
    task: AskedAfterwards, scores: Scores, metrics: Sequence[Metric], judged: Sequence[Seat]
) -> dict[Seat, bool | None]:
    """Whether every seat succeeded, by the task's own score."""
    arm = EvolveArm(success=task._asked_afterwards.lesson_success)
    rules = find_success_rules(metrics, list(contestant_roles(task)), arm, task.name)
    found: dict[Seat, bool | None] = {}
    for seat in judged:
        given = scores.get(seat)
        by_name = given if isinstance(given, Mapping) else {metrics[0].name: given}
        rule = rules.get(seat.role)
        if rule is not None and rule.applies(by_name):
            found[seat] = rule.holds(by_name.get(rule.metric))
    return found


def evolve_task(task: Task, settings: EvolveSettings | None) -> Task:
    """The task as a run with these settings plays it."""
    kind = evolve_task_class(type(task), settings)
    return task if kind is type(task) else kind(**task.params)


def evolve_task_class(kind: type[Task], settings: EvolveSettings | None) -> type[Task]:
    """The class that a run with these settings plays; the same one if the settings add no questions
    and no prompts."""
    if settings is None or issubclass(kind, AskedAfterwards):
        return kind
    wanted = find_wanted_feedback(settings)
    return kind if wanted == FeedbackWanted() else add_questions(kind, wanted)  # type: ignore[arg-type]


@cache
def add_questions(kind: type[Task], wanted: FeedbackWanted) -> type[Task]:
    """A task's class with questions after its matches. It keeps the module and the name of the
    task's class, so that prompts and source are found there."""
    for role in wanted.roles:
        if role in kind.roles:
            raise UsageError(
                f"the task {kind.name} has a role named `{role}`, but `--plan evolve` needs "
                "this name for its own role: rename the task's role, or choose another "
                "`feedback`"
            )
    added = {role: feedback_role(kind) for role in wanted.roles}
    facts = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "roles": {**kind.roles, **added},
        "_asked_afterwards": wanted,
    }
    return type(kind.__name__, (AskedAfterwards, kind), facts)


def list_prompts(wanted: FeedbackWanted) -> Iterator[Prompt]:
    """The prompts that a run needs besides those of its task."""
    if wanted.critic or wanted.self_critic:
        yield CRITIC_QUESTION
    if wanted.lessons:
        yield LESSON_QUESTION
        yield LESSONS
    if wanted.outcomes:
        yield SUCCEEDED
        yield FAILED


def seats_of_role(given: Seat | Sequence[Seat] | None) -> list[Seat]:
    """The seats of a role, however many it may have."""
    return [] if given is None else [given] if isinstance(given, Seat) else list(given)


def without_feedback(seats: Mapping[str, int]) -> dict[str, int]:
    """The seats of the task itself."""
    return {role: count for role, count in seats.items() if role not in FEEDBACK_ROLES}


def read_reason(word: str | None) -> str:
    """The reason that a critic gave with its verdict; empty if it gave none."""
    with suppress(Unreadable):
        found = find_object(getattr(word, "said", "") or "", {VERDICT.name}).get("reason")
        return found if isinstance(found, str) else ""
    return ""
