"""Run options, declared once.

The command line, experiment files, `parley.run` and stored runs all read these fields. To add an
option, add a field here and a keyword to `parley.api.run_async`, and use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from operator import index
from types import NoneType
from typing import Any, Literal, get_args, get_type_hints

from parley.errors import UsageError

Group = Literal["items", "plan", "stopping", "limits", "run"]  # sections of `parley run --help`
PLANS = ("round_robin", "cycles", "race", "each", "together", "versus", "evolve")
CONCURRENCY = 32  # matches in flight, where nothing else is given
BATCH_CONCURRENCY = 5000  # the same for runs through batch APIs


@dataclass(frozen=True)
class Option:
    """Everything about an option besides its name, type and default."""

    help: str  # one sentence for --help, the JSON schema and the docs
    group: Group
    yaml: tuple[str, ...] = ()  # place in an experiment file; (): under its own name
    not_in_file: str = ""  # why experiment files do not have this key
    minimum: int | None = None  # for a string: of its length
    above: int | None = None
    below: int | None = None
    unit: str = ""
    names: tuple[str, ...] = ()  # known values of a string; errors suggest the nearest one
    reserved: tuple[str, ...] = ()  # values that only Parley itself sets
    metavar: str | None = None
    wanted: str = ""  # for errors and the schema, if the type does not say it
    default_text: str = ""
    resume: bool = False  # may be given again when a run is resumed


def option(default: Any, help: str, **facts: Any) -> Any:
    """A field of `RunOptions`."""
    return field(default=default, metadata={"option": Option(help, **facts)})


@dataclass(frozen=True, kw_only=True)
class StoredOptions:
    """Options that a run keeps under their own names."""

    items: int | None = option(
        None,
        "Play N items of the dataset.",
        group="items",
        minimum=1,
        default_text="set by the task",
    )
    plan: str | None = option(
        None,
        "Choose the plan that arranges matches: round_robin, cycles, race, together, each, versus "
        "or evolve.",
        group="plan",
        names=PLANS,
        wanted=f"{', '.join(PLANS[:-1])} or {PLANS[-1]}",
        default_text="chosen to fit the task",
    )
    adversary: str | None = option(
        None,
        "Set the unranked opponent that every model plays against (only with `--plan versus`).",
        group="plan",
        metavar="[ALIAS=]PROVIDER/NAME",
        wanted="an alias",
    )
    seats: int | None = option(
        None,
        "Set the number of seats per match, for tasks with a variable number (only with "
        "`--plan cycles`, `race` or `round_robin`).",
        group="plan",
        minimum=1,
    )
    repeats: int | None = option(
        None,
        "Play every match N times.",
        group="plan",
        minimum=1,
        default_text="set by the task",
    )
    max_blocks: int | None = option(
        None,
        "Stop after N blocks at the latest (only with `--until-stable` or `--plan race`). A "
        "block is all matches on one item or, in a task without items, of one repeat.",
        group="limits",
        yaml=("stop", "max_blocks"),
        minimum=1,
        default_text="all items, or 1000 without items",
        resume=True,
    )
    budget_usd: float | None = option(
        None,
        "Spend at most this much on the whole run. Every model needs a known price.",
        group="limits",
        yaml=("budget", "usd"),
        minimum=0,
        unit="USD",
        resume=True,
    )
    max_calls: int | None = option(
        None,
        "Send at most N requests in the whole run, including retries.",
        group="limits",
        yaml=("budget", "calls"),
        minimum=0,
        resume=True,
    )
    concurrency: int | None = option(
        None,
        "Play up to N matches at the same time.",
        group="limits",
        minimum=1,
        default_text=f"{CONCURRENCY}, or {BATCH_CONCURRENCY} with batch APIs",
        resume=True,
    )
    seed: int = option(0, "Set the random seed.", group="run", default_text="0")
    standardise: Literal["on_error", "always"] = option(
        "on_error",
        "Choose when to ask for the required format: with the question, and again if a reply "
        "cannot be read (`on_error`), or only after a free answer (`always`).",
        group="run",
        default_text="on_error",
    )
    sandbox: Literal["bubblewrap", "docker", "podman", "none"] = option(
        "bubblewrap",
        "Choose the sandbox that runs model-written code.",
        group="run",
        reserved=("none",),
        default_text="bubblewrap",
    )
    name: str = option("", "Give the run a name.", group="run")


@dataclass(frozen=True, kw_only=True)
class RunOptions(StoredOptions):
    """All options of a run; those declared here are not stored, or stored as `Config.stop`."""

    until_stable: bool = option(
        False,
        "Play until every confidence interval is narrow enough.",
        group="stopping",
        not_in_file="use the key `stop` instead",
    )
    half_width: float | None = option(
        None,
        "Set the half-width that confidence intervals must reach, in the metric's units. With "
        "`--plan race`, set the smallest difference between models that matters.",
        group="stopping",
        yaml=("stop", "half_width"),
        above=0,
        default_text="set by the task",
    )
    alpha: float = option(
        0.05,
        "Set the significance level.",
        group="stopping",
        yaml=("stop", "alpha"),
        above=0,
        below=1,
        default_text="0.05",
    )
    target: Literal["new_items", "these_items"] | None = option(
        None,
        "Choose whether the results should hold for these items only, or also for new items "
        "like them.",
        group="stopping",
        yaml=("stop", "target"),
        default_text="these_items for tasks with items, except in a race",
    )
    top: int | None = option(
        None,
        "Stop when the top K models are known (only with `--plan race`).",
        group="stopping",
        yaml=("stop", "top"),
        minimum=1,
        metavar="K",
    )
    batch: bool = option(
        False,
        "Send all requests through the batch APIs of providers: at half price, and within "
        "hours instead of seconds.",
        group="run",
    )
    store: str | None = option(
        None,
        "Use this folder or PostgreSQL database as the store of runs.",
        group="run",
        minimum=1,
        metavar="DIR|URL",
        wanted="a folder or postgresql://…",
        default_text="PARLEY_STORE, or runs/",
    )


@dataclass(frozen=True)
class Given:
    """A value, and where it comes from: `--half-width`, `exp.yaml, line 12: stop.half_width`."""

    value: Any
    said: str


@dataclass(frozen=True)
class Declared:
    """An option with its name and its type."""

    name: str
    type: type  # int, float, bool or str
    choices: tuple[str, ...]  # the values that a user may give; (): any value of the type
    allowed: tuple[str, ...]  # the same, with those that only Parley sets
    facts: Option

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def place(self) -> tuple[str, ...]:
        """The key in an experiment file; () if there is none."""
        return () if self.facts.not_in_file else self.facts.yaml or (self.name,)

    @property
    def wanted(self) -> str:
        """What a value must be, in words."""
        facts = self.facts
        if facts.wanted:
            return facts.wanted
        if self.choices:
            return f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
        if self.type not in (int, float):
            return "true or false" if self.type is bool else "a string"
        number = "a whole number" if self.type is int else "a number"
        number += f" of {facts.unit}" if facts.unit else ""
        if facts.minimum is not None:
            return f"{number}, {facts.minimum} or more"
        if facts.below is not None:
            return f"{number} between {facts.above} and {facts.below}"
        return number if facts.above is None else f"{number} above {facts.above}"

    def check(self, value: Any, said: str) -> Any:
        """The value, converted to its type, or an error that says where it comes from."""
        found = convert(value, self.type)
        facts, size = self.facts, len(found) if isinstance(found, str) else found
        fits = found is not None and not (
            (self.allowed and found not in self.allowed)
            or (facts.names and found not in facts.names)
            or (facts.minimum is not None and size < facts.minimum)
            or (facts.above is not None and found <= facts.above)
            or (facts.below is not None and found >= facts.below)
        )
        if not fits:
            near = get_close_matches(str(value), [*facts.names, *self.choices], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{said} must be {self.wanted}, not {value!r}{hint}")
        return found


def convert(value: Any, to: type) -> Any:
    """A value as an int, a finite float, a str or a bool; None if it cannot be converted."""
    if to is bool or isinstance(value, bool):
        return value if to is bool and isinstance(value, bool) else None
    try:
        if to is int:
            return index(int(value) if isinstance(value, float) and value.is_integer() else value)
        if to is float:
            number = None if isinstance(value, str) else float(value)
            return number if number is not None and math.isfinite(number) else None
    except (TypeError, ValueError, OverflowError):
        return None
    return value if isinstance(value, str) else None


def declared_options(kind: type[StoredOptions]) -> dict[str, Declared]:
    """The options of a class by name, in the order of their groups."""
    hints, found = get_type_hints(kind), list[Declared]()
    for each in fields(kind):
        if (facts := each.metadata.get("option")) is None:
            continue  # a subclass may have other fields as well
        parts = [part for part in get_args(hints[each.name]) if part is not NoneType]
        literal = next((part for part in [hints[each.name], *parts] if is_literal(part)), None)
        allowed = get_args(literal)
        own = str if literal else parts[0] if parts else hints[each.name]
        choices = tuple(choice for choice in allowed if choice not in facts.reserved)
        found.append(Declared(each.name, own, choices, allowed, facts))
    order = get_args(Group)
    return {
        each.name: each for each in sorted(found, key=lambda each: order.index(each.facts.group))
    }


def is_literal(hint: Any) -> bool:
    return getattr(hint, "__origin__", None) is Literal


OPTIONS = declared_options(RunOptions)
STORED = tuple(each.name for each in fields(StoredOptions))
RESUMABLE = tuple(name for name, each in OPTIONS.items() if each.facts.resume)


def from_flags(**values: Any) -> dict[str, Given]:
    """The options given on the command line; None means not given."""
    return {
        name: Given(value, OPTIONS[name].flag)
        for name, value in values.items()
        if value is not None
    }


def from_keywords(**values: Any) -> dict[str, Given]:
    """The options given in Python; None means not given."""
    return {
        name: Given(value, OPTIONS[name].name)
        for name, value in values.items()
        if value is not None
    }


def check_options(given: Mapping[str, Given]) -> RunOptions:
    """The options of a run, each checked on its own; errors say where a value comes from."""
    return RunOptions(
        **{name: OPTIONS[name].check(each.value, each.said) for name, each in given.items()}
    )


def check_stored(values: StoredOptions) -> None:
    """Check options that do not come from the user, such as those in a run's file."""
    for name in STORED:
        if (value := getattr(values, name)) is not None:
            OPTIONS[name].check(value, name)


def schema_of(each: Declared) -> dict[str, Any]:
    """The JSON schema of an option's value."""
    kinds = {int: "integer", float: "number", bool: "boolean", str: "string"}
    facts = each.facts
    default = f" Default: {facts.default_text}." if facts.default_text else ""
    found: dict[str, Any] = {"title": each.wanted, "description": f"{facts.help}{default}"}
    if each.choices:
        return {**found, "enum": list(each.choices)}
    found["type"] = kinds[each.type]
    limits = {
        "minLength" if each.type is str else "minimum": facts.minimum,
        "exclusiveMinimum": facts.above,
        "exclusiveMaximum": facts.below,
    }
    return found | {name: limit for name, limit in limits.items() if limit is not None}


def with_options(frame: Mapping[str, Any], options: Iterable[Declared]) -> dict[str, Any]:
    """The JSON schema of experiment files: a hand-written frame with the options added."""
    found = {**frame, "properties": dict(frame["properties"])}
    for each in options:
        *sections, key = each.place or ("",)
        if not key:
            continue
        if not sections:
            found["properties"][key] = schema_of(each)
            continue
        (section,) = sections
        inside = found["properties"][section]
        found["properties"][section] = {
            **inside,
            "properties": {**inside["properties"], key: schema_of(each)},
        }
    return found
