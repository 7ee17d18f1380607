"""What is asked for, from the command line, from Python or from a file, and the configuration that
it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from parley.config import models_file as aliases
from parley.config.identity import refuse_secrets
from parley.config.prepare import Prepared, prepare
from parley.config.task_catalogue import task_class
from parley.config.yaml_file import Marked
from parley.datasets.catalogue import items_from
from parley.datasets.catalogue import usual as usual_dataset
from parley.datasets.item_rows import kind_of
from parley.errors import UsageError, unknown
from parley.participants._registry import named
from parley.plans.arrangements import usual
from parley.plans.choice import PLANS, REPEATS
from parley.plans.stop_targets import TARGETS, Stop
from parley.providers import _registry as providers
from parley.providers._secrets import REFERENCE, expanded
from parley.rules.task import Task
from parley.store.config import ISOLATING, Config

STANDARDISE = ("on_error", "always")


@dataclass
class Experiment:
    """All that a run may be asked for; None where nothing was said, so that a flag can override a
    file."""

    task: str
    params: dict[str, Any] = field(default_factory=dict)
    models: dict[str, aliases.Entry] = field(default_factory=dict)
    contestants: list[str] | None = None
    instruments: dict[str, list[str]] = field(default_factory=dict)
    exclude: list[str] = field(default_factory=list)
    prompts: dict[str, str] = field(default_factory=dict)  # address: words
    dataset: str | None = None
    # field of an item: the dataset's column for it
    columns: dict[str, Any] = field(default_factory=dict)
    items: int | None = None
    plan: str | None = None
    adversary: str | None = None
    repeats: int | None = None
    seats: int | None = None
    until_stable: bool | None = None
    stopping: bool = False  # a file says when to stop
    half_width: float | None = None
    alpha: float | None = None
    target: str | None = None
    top: int | None = None
    max_blocks: int | None = None
    budget_usd: float | None = None
    max_calls: int | None = None
    sandbox: str | None = None
    seed: int | None = None
    standardise: str | None = None
    name: str | None = None
    store: str | None = None
    concurrency: int | None = None
    made: Task | None = None  # a task given as an instance
    given: Sequence[Any] | None = None  # items given as such
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    file: Marked | None = None
    _entered: set[str] = field(default_factory=set)

    def override(self, **said: Any) -> None:
        """Take what was said over what the file says; None is nothing said."""
        for key, value in said.items():
            if value is not None:
                setattr(self, key, value)

    def draw_from(self, dataset: Any) -> None:
        """Take the items from a dataset: its name, its path, or {path, columns}; None is nothing
        said."""
        if dataset is None:
            return
        said = dataset if isinstance(dataset, Mapping) else {"path": dataset}
        if "path" not in said or said.keys() - {"path", "columns"}:
            raise UsageError(
                f"a dataset is a name, a path, or an object with path and columns; found "
                f"{', '.join(said)}"
            )
        self.dataset, self.columns = str(said["path"]), dict(said.get("columns", {}))

    def enter(
        self,
        model: str | Callable[..., Any],
        alias: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """Take in a model and return its alias: `[ALIAS=]PROVIDER/NAME`, `[ALIAS=]` and a known
        alias, or a function.

        What is entered replaces what the file says under that alias, unless it is the same model.
        """
        if callable(model):
            called = getattr(model, "__name__", type(model).__name__)
            alias = alias or called
            if self.functions.setdefault(alias, model) is not model:
                raise UsageError(f"two models are called {alias!r}: give each an alias")
            model = (
                f"python/{getattr(model, '__module__', '?')}:"
                f"{getattr(model, '__qualname__', called)}"
            )
        head, equals, tail = model.partition("=")
        own = bool(equals) and "/" not in head
        model = tail if own else model
        new = (
            {"model": model}
            if "/" in model
            else aliases.entry(model, self.models, self.file, self._entered)
        )
        if alias:
            named(f"x={new['model']}")  # in Python any alias will do; the model must be one
        elif own:
            alias = named(f"{head}={new['model']}").alias
        else:
            alias = named(model).alias if "/" in model else model
        new = {**new, **(options or {})}
        old = self.models.get(alias)
        if old is not None and new == {"model": old["model"]}:
            new = old  # named again, and it keeps its options
        if alias in self._entered and old != new:
            raise UsageError(
                f"two models are called {alias!r}: give each an alias, "
                f"like -m a={model} -m b={model}"
            )
        self._entered.add(alias)
        self.models[alias] = new
        return alias

    def cast(self) -> list[str]:
        """The contestants: as named, else all models that are not instruments; nobody who is
        excluded."""
        serving = {
            self.adversary,
            *(alias for panel in self.instruments.values() for alias in panel),
        }
        chosen = (
            [alias for alias in self.models if alias not in serving]
            if self.contestants is None
            else self.contestants
        )
        for alias in self.exclude:
            if alias not in self.models:
                raise unknown("model to exclude:", alias, self.models)
            if alias in serving:
                raise UsageError(
                    f"{alias!r} is to be excluded, and sits as an instrument: "
                    f"leave one of the two out"
                )
        chosen = [alias for alias in chosen if alias not in self.exclude]
        for alias in chosen:
            if chosen.count(alias) > 1:
                raise UsageError(
                    f"two models are called {alias!r}: give each an alias, like -m "
                    f"a=PROVIDER/NAME -m b=PROVIDER/NAME"
                )
        return list(chosen)

    def config(self, made: Task) -> Config:
        """The configuration of the run; models that sit nowhere are no part of it."""
        contestants = self.cast()
        against = [self.adversary] if self.adversary else []
        panels = [alias for panel in self.instruments.values() for alias in panel]
        seated = dict.fromkeys([*contestants, *against, *panels, *self.exclude])
        standardise = self.standardise or "on_error"
        if standardise not in STANDARDISE:
            raise unknown("value of standardise:", str(standardise), STANDARDISE)
        plan = self.plan or ("versus" if self.adversary else usual(made))
        if plan not in PLANS:
            raise unknown("plan", plan, PLANS)
        with self.file.at("stop") if self.file and self.stopping else nullcontext():
            stop = self.stop(plan, on_items=made.item_type is not None)
        return Config(
            task=self.task,
            params=made.params,
            models={
                alias: steadied(self.models[alias]) if made.steady else self.models[alias]
                for alias in seated
            },
            contestants=contestants,
            instruments={role: list(panel) for role, panel in self.instruments.items()},
            excluded=list(dict.fromkeys(self.exclude)),
            plan=plan,
            adversary=self.adversary,
            repeats=(1 if stop else max(made.repeats, REPEATS.get(plan, 1)))
            if self.repeats is None
            else self.repeats,
            seed=self.seed or 0,
            standardise="always" if standardise == "always" else "on_error",
            prompts=dict(self.prompts),
            dataset=self.dataset or (usual_dataset(made.item_type) if self.given is None else None),
            columns=dict(self.columns),
            items=self.items,
            seats=self.seats,
            stop=stop,
            max_blocks=self.max_blocks,
            budget_usd=self.budget_usd,
            max_calls=self.max_calls,
            sandbox=self.sandbox or "bubblewrap",
            name=self.name or "",
            concurrency=self.concurrency,
        )

    def stop(self, plan: str, on_items: bool) -> Stop | None:
        """When the run may stop, if that depends on what is played."""
        said = {
            "--half-width": self.half_width,
            "--alpha": self.alpha,
            "--target": self.target,
            "--top": self.top,
            "--max-blocks": self.max_blocks,
        }
        given = [flag for flag, value in said.items() if value is not None]
        if plan == "race":
            if self.until_stable:
                raise UsageError(
                    "a race stops by itself when its ranking is decided: "
                    "leave --until-stable out, or the race"
                )
        elif self.top is not None:
            raise UsageError("--top K is the aim of a race: add --plan race")
        elif not self.until_stable and not self.stopping:
            if given:
                flags = ", ".join(given)
                raise UsageError(
                    f"{flags}: only for runs that look at what was played: "
                    f"add --until-stable or --plan race"
                )
            return None
        if self.repeats is not None and not on_items:
            raise UsageError(
                "--repeats says how often everything is played, but this run stops by itself: "
                "use --max-blocks N"
            )
        target = self.target or ("these_items" if on_items and plan != "race" else "new_items")
        if target not in TARGETS:
            raise unknown("target", target, TARGETS)
        alpha = 0.05 if self.alpha is None else self.alpha
        return Stop(
            self.half_width,
            alpha,
            "these_items" if target == "these_items" else "new_items",
            self.top,
        )

    def prepared(self, keyless: bool = False) -> Prepared:
        """The run, found to be playable before anything is paid; `keyless`: it is only looked at,
        and needs no keys."""
        made = self.made or task_class(self.task).configured(self.params)
        items = self.given
        if items is None and self.dataset is not None and REFERENCE.search(self.dataset):
            # what is stored keeps the reference
            items = items_from(expanded(self.dataset), kind_of(type(made)), self.columns)
        config = self.config(made)
        try:
            refuse_secrets(config)
        except TypeError as wrong:
            raise UsageError(
                f"the configuration holds a value that cannot be stored: {wrong}"
            ) from None
        return prepare(config, task=made, items=items, functions=self.functions, keyless=keyless)


def steadied(model: aliases.Entry) -> aliases.Entry:
    """A model that is asked at temperature 0, if it has one and nothing else is said."""
    family = str(model["model"]).partition("/")[0]
    takes = providers.known(family) and "temperature" in getattr(
        providers.class_of(family), "__dataclass_fields__", {}
    )
    return {"temperature": 0, **model} if takes else model


def kept_apart(sandbox: str | None, unsafe: bool = False) -> str | None:
    """A sandbox that isolates; to do without one takes more words than this."""
    if unsafe:
        if sandbox is not None:
            raise UsageError(
                f"sandbox {sandbox} isolates, unsafe-run-code-without-isolation does not: "
                f"give one of the two"
            )
        return "none"
    if sandbox is not None and sandbox not in ISOLATING:
        raise unknown("sandbox", str(sandbox), ISOLATING)
    return sandbox
