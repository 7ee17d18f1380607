"""A task: its parameters, roles, metrics, and one script that is the rule."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from inspect import get_annotations, iscoroutinefunction, isroutine, signature
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

from parley.errors import TaskError
from parley.rules.items import Items
from parley.rules.parameters import build_dataclass, literal_options
from parley.rules.pool import Seat
from parley.rules.prompts import COMMON, MEANING, Prompt

Scores: TypeAlias = Mapping[Seat, float | Mapping[str, float | None] | None]


@dataclass(frozen=True)
class Role:
    """The number of seats of a role: `Role()` one, `Role(2)` two, `Role(2, 10)` two to ten.
    Instruments are never ranked.

    `Role(2, 10, step=2)` has 2, 4, 6, 8 or 10.
    """

    min_seats: int = 1
    max_seats: int | None = None
    instrument: bool = False
    step: int = 1
    # contestants see this instrument's replies, so a match cannot be rejudged without it
    heard_by_contestants: bool = False

    def __post_init__(self) -> None:
        if self.min_seats < (0 if self.instrument else 1) or self.largest < max(1, self.min_seats):
            raise TaskError(
                f"a role cannot have {self.min_seats} to {self.largest} seats: min_seats must be "
                f"at least {0 if self.instrument else 1}, and max_seats at least "
                f"{max(1, self.min_seats)}"
            )
        if self.step < 1 or (self.largest - self.min_seats) % self.step:
            raise TaskError(
                f"a role cannot have {self.min_seats} to {self.largest} seats in steps of "
                f"{self.step}: step must be at least 1 and lead from min_seats to max_seats"
            )

    @property
    def largest(self) -> int:
        return self.min_seats if self.max_seats is None else self.max_seats

    @property
    def open(self) -> bool:
        """Whether the plan chooses the number of seats."""
        return self.largest != self.min_seats

    @property
    def sizes(self) -> range:
        """The possible numbers of seats."""
        return range(self.min_seats, self.largest + 1, self.step)

    @property
    def size_text(self) -> str:
        """The possible numbers of seats in words."""
        if self.step == 1 or not self.open:
            return f"{self.min_seats} to {self.largest}" if self.open else str(self.min_seats)
        *before, last = map(str, self.sizes)
        return f"{', '.join(before)} or {last}"

    def seats(self, name: str, count: int) -> list[Seat]:
        """The seats of this role when `count` of them are taken."""
        return (
            [Seat(name)][:count]
            if self.largest == 1
            else [Seat(name, number) for number in range(1, count + 1)]
        )


@dataclass(frozen=True)
class Metric:
    """A number that a match yields for a seat. The first metric of a task is its primary one."""

    name: str
    low: float
    high: float
    epsilon: float  # the half-width of an interval that is small enough
    unit: str = ""
    better: Literal["higher", "lower"] = "higher"
    success: float | None = None  # a match with at least this value counts as a success
    roles: tuple[str, ...] = ()  # roles that get it; empty: every contestant
    # if several metrics follow one quantity from round to round: the round of this one
    round: int | None = None
    judged: bool = False  # given by judges; other metrics are measured
    digits: int = 2  # decimals to print
    # expected standard deviation of a block's score, for forecasts
    spread: float | None = None


UNPROTECTED = "_unprotected"


def name_unprotected(metric: str) -> str:
    """The name of the metric that a match has in place of this one if the model could have forged
    its verdict."""
    return metric + UNPROTECTED


def name_twin(metric: str) -> str:
    """The unprotected metric that belongs to a protected one, or the other way round."""
    protected = metric.removesuffix(UNPROTECTED)
    return protected if protected != metric else name_unprotected(metric)


class Screening(NamedTuple):
    """How instruments select the items of a run: an item is kept if the models in these roles
    answer it well enough."""

    roles: tuple[str, ...]
    metric: str  # measures their answers to an item
    theta: float  # the mean over their answers must exceed this
    samples: int  # answers to each item
    task: str  # the task that asks them
    params: Mapping[str, Any]


class Task:
    """Subclass as a frozen dataclass: fields are parameters, `play` is the rule of the game.

    fault  what was wrong with the reply
    hint   the required form of the reply
    """

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    roles: ClassVar[Mapping[str, Role]] = {}
    items: ClassVar[Items | None] = None  # None: a match needs no item
    repeats: ClassVar[int] = 1  # default number of repeats of a plan
    # seats of one role speak one after another, so plans draw their order
    sequential_speakers: ClassVar[bool] = False
    bots: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    # the task's own analyses: parley.Part objects, or "package.module:NAME" that holds them
    parts: ClassVar[Sequence[Any] | str] = ()
    # what people see when they compare matches: a SheetFormat, or "package.module:NAME" of one
    sheet: ClassVar[Any] = None
    definition: ClassVar[str] = ""  # source of a task that is not defined in a Python file
    # the bot for forecasts, if a random reply in the right form would end the match early
    stand_in: ClassVar[str] = ""
    # the task runs model-written code, which needs a sandbox
    runs_code: ClassVar[bool] = False
    # the task gives each model a shell of its own in the sandbox
    uses_shell: ClassVar[bool] = False
    # models are asked at temperature 0 unless the user sets another temperature
    temperature_zero: ClassVar[bool] = False
    play: Callable[..., Coroutine[Any, Any, Scores]]

    def metrics(self, seats: Mapping[str, int]) -> Sequence[Metric]:
        """The metrics of a match with these numbers of seats; the primary metric comes first."""
        return ()

    def works(self) -> Mapping[str, Any]:
        """The works of reference that the rule consults, by name, each with its description
        (`parley.WordList(…)`)."""
        return {}

    def cautions(self, seats: Mapping[str, int]) -> Iterable[str]:
        """Warnings for the user before a run with these numbers of seats."""
        return ()

    def unused_prompts(self, seats: Mapping[str, int]) -> Iterable[str]:
        """The names of prompts that are never used with these parameters and numbers of seats.

        If a dict has one prompt for each option of a parameter, only the chosen one is used.
        """
        chosen: dict[frozenset[Any], list[Any]] = {}
        for name, options in literal_options(type(self)).items():
            chosen.setdefault(options, []).append(getattr(self, name, None))
        for group in list(vars(sys.modules[type(self).__module__]).values()):
            if isinstance(group, dict) and (heard := chosen.get(frozenset(group))):
                yield from (
                    prompt.name
                    for key, prompt in group.items()
                    if isinstance(prompt, Prompt) and key not in heard
                )

    def reject_reason(self, item: Any) -> str:
        """Why this task, with its parameters, cannot be played on an item; empty if it can.

        Parley leaves such items out and counts them.
        """
        return ""

    def cue(self, item: Any) -> str:
        """The text by which an item is compared with others, one line for each of its parts.
        Empty: the first question that a seat is asked."""
        return ""

    def screening(self) -> Screening | None:
        """How instruments select items before the run; None: all items are played."""
        return None

    def score_basis(self) -> Mapping[str, str]:
        """Everything else that scores depend on besides rule and parameters, like the version of a
        library that computes them. It becomes part of every score's signature."""
        return {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "play" not in vars(cls):
            return
        if not vars(cls).get("name"):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        cls.refuse_bad_form()

    @classmethod
    def refuse_bad_form(cls) -> None:
        """Check the class when it is defined, so that mistakes do not surface in round 3."""
        if not isinstance(cls.name, str) or not re.fullmatch(r"\w[\w .-]*", cls.name):
            raise TaskError(
                f"{cls.__name__}.name becomes part of file names, so it must consist of letters, "
                f"digits, spaces, '_', '-' and '.', not {cls.name!r:.80}"
            )
        if not iscoroutinefunction(cls.play):
            raise TaskError(f"{cls.__name__}.play must be `async def`")
        wanted = list(signature(cls.play).parameters)[2:]
        if wanted != list(cls.roles):
            raise TaskError(
                f"{cls.__name__}.play must take one argument for each role after the referee: "
                f"expected {list(cls.roles)}, found {wanted}"
            )
        if not any(not role.instrument for role in cls.roles.values()):
            raise TaskError(
                f"{cls.__name__} has no role for contestants: add a role with `instrument=False` "
                "to `roles`"
            )
        if not callable(cls.metrics):
            raise TaskError(
                f"{cls.__name__}.metrics must be a method: write `def metrics(self, seats)`"
            )
        if cls.metrics is Task.metrics:
            raise TaskError(f"{cls.__name__} declares no metrics: write `def metrics(self, seats)`")
        cls.refuse_unknown_attributes()
        refuse_same_names(cls)
        if cls.items is None:
            return
        if not isinstance(cls.items, Items):
            raise TaskError(
                f"{cls.__name__}.items must be `Items(TYPE)`, not {type(cls.items).__name__}"
            )
        declared = {name for kind in cls.__mro__ for name in get_annotations(kind)}
        for parameter in cls.items.picks:
            if parameter not in declared:
                raise TaskError(
                    f"{cls.__name__}.items: picks must map parameters to fields of items, but "
                    f"{parameter!r} is not a parameter of the task"
                )

    @classmethod
    def refuse_unknown_attributes(cls) -> None:
        """Refuse class attributes that look like those of a task but are misspelled: they would
        have no effect."""
        parameters = {
            name for name, kind in get_annotations(cls).items() if "ClassVar" not in str(kind)
        }
        for name, value in vars(cls).items():
            if name.startswith("_") or name in parameters or hasattr(Task, name) or name == "play":
                continue
            known = METHODS if isroutine(value) else get_annotations(Task)
            if near := get_close_matches(name, known, n=1, cutoff=0.85):
                raise TaskError(
                    f"{cls.__name__}.{name} has no effect; did you mean {near[0]!r}? "
                    "If this attribute is your own, give it another name"
                )

    @classmethod
    def refuse_plain_class(cls) -> None:
        """Refuse a class that is not a frozen dataclass: its fields would not be parameters."""
        made = getattr(cls, "__dataclass_params__", None)
        if (
            made is None
            or not made.frozen
            or ("__dataclass_params__" not in vars(cls) and has_own_fields(cls))
        ):
            raise TaskError(
                f"{cls.__name__} must be a frozen dataclass, so that matches cannot share state: "
                f"write @dataclass(frozen=True) above `class {cls.__name__}`"
            )

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        cls.refuse_plain_class()
        return super().__new__(cls)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters with their values, in the order of declaration."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]

    @classmethod
    def prompts(cls) -> dict[str, Prompt]:
        """The prompts of this task by name: those in its file, and the common ones."""
        found: dict[str, Prompt] = dict(COMMON)
        for value in list(vars(sys.modules[cls.__module__]).values()):
            several = (
                value.values()
                if isinstance(value, dict)
                else value
                if isinstance(value, tuple)
                else (value,)
            )
            for prompt in several:
                if (
                    isinstance(prompt, Prompt)
                    and found.setdefault(prompt.name, prompt) is not prompt
                ):
                    raise TaskError(
                        f"{cls.__name__} has two prompts called {prompt.name!r}: rename one of them"
                    )
        return found

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """The descriptions of parameters and prompt variables: docstring lines that begin with a
        name and two or more spaces."""
        docs = [kind.__doc__ or "" for kind in reversed(cls.__mro__) if issubclass(kind, Task)]
        return dict(MEANING.findall("\n".join(docs)))

    @classmethod
    def from_params(cls, given: Mapping[str, Any]) -> Self:
        """Make the task with these parameters; their values may be strings from a command
        line."""
        cls.refuse_plain_class()
        return build_dataclass(cls, given, "parameter of", cls.name)


# The methods that authors override.
METHODS = (
    "play", "metrics", "works", "cautions", "unused_prompts", "reject_reason", "screening",
    "score_basis", "cue",
)  # fmt: skip


def refuse_same_names(cls: type[Task]) -> None:
    """Refuse two parts with the same name. Parts that are given as a string are not loaded."""
    found: dict[str, Any] = {}
    for part in (
        part
        for kind in cls.__mro__
        for part in vars(kind).get("parts", ())
        if not isinstance(vars(kind).get("parts", ()), str)
    ):
        name = getattr(part, "name", None)
        if isinstance(name, str) and found.setdefault(name, part) is not part:
            raise TaskError(
                f"{cls.__name__}: two parts of the result are called {name!r}: rename one of them"
            )


def has_own_fields(cls: type) -> bool:
    return any(
        "ClassVar" not in str(kind) for kind in vars(cls).get("__annotations__", {}).values()
    )
