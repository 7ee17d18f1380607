"""What the user asks for, on the command line, in Python or in a file, and the configuration that
it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from parley.config import models_file
from parley.config.batch_api import (
    concurrency_of,
    refuse_missing_batch_api,
    uses_batch_api,
    with_batch_api,
)
from parley.config.identity import refuse_secrets
from parley.config.prepare import Prepared, prepare_new
from parley.config.task_catalogue import task_class
from parley.config.trust import NOTHING_MORE, Allowed, check_models
from parley.config.yaml_file import YamlFile
from parley.datasets.catalogue import default_dataset as usual_dataset
from parley.datasets.catalogue import load_items
from parley.datasets.files import PathCheck, allow_every_path
from parley.datasets.item_rows import item_type_of_task
from parley.errors import UsageError, unknown_name
from parley.options import OPTIONS, STORED, Given, RunOptions, check_options
from parley.participants._registry import parse_model_name
from parley.plans.arrangements import default_arrangement
from parley.plans.choice import REPEATS
from parley.plans.evolve_settings import parse_evolve
from parley.plans.stop_targets import StopTarget
from parley.providers import _registry as providers
from parley.providers._secrets import REFERENCE, expand_references
from parley.rules.task import Task
from parley.store.config import Config
from parley.tables import show_hidden

# a model, several, or several by their aliases; each is a name, a function or {"model": name, …}
Models: TypeAlias = str | Callable[..., Any] | Mapping[str, Any] | Iterable[Any]
# options of runs with a stopping rule
STOPPING = ("half_width", "alpha", "target", "top", "max_blocks")


@dataclass
class Experiment:
    """What the user asks for: models, task and options. Flags and keywords override a file."""

    task: str
    params: dict[str, Any] = field(default_factory=dict)
    models: dict[str, models_file.Entry] = field(default_factory=dict)
    contestants: list[str] | None = None
    instruments: dict[str, list[str]] = field(default_factory=dict)
    exclude: list[str] = field(default_factory=list)
    prompts: dict[str, str] = field(default_factory=dict)  # address: text
    dataset: str | None = None
    # field of an item: the dataset's column for it
    columns: dict[str, Any] = field(default_factory=dict)
    given: dict[str, Given] = field(default_factory=dict)  # options by name
    evolve: dict[str, Any] = field(default_factory=dict)  # settings of the plan `evolve`
    instance: Task | None = None  # a task that has its parameters already
    item_list: Sequence[Any] | None = None  # items given in Python, instead of a dataset
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    file: YamlFile | None = None
    allowed: Allowed = NOTHING_MORE  # what the user allows files to do
    # of the file that names the dataset; a dataset that the user names may lead to any path
    check_dataset_path: PathCheck = allow_every_path
    workers: int | None = None  # how many workers play the run; None: this process does
    _typed: set[str] = field(default_factory=set)

    def value(self, name: str) -> Any:
        """The value of an option, before it is checked; None if it was not given."""
        return self.given[name].value if name in self.given else None

    @property
    def adversary(self) -> str | None:
        alias: str | None = self.value("adversary")
        return alias

    @property
    def store(self) -> str | None:
        place: str | None = self.value("store")
        return place

    def override(
        self,
        *,
        models: Models | None = None,
        roles: Mapping[str, Models] | None = None,
        exclude: Iterable[str] = (),
        evolve: Mapping[str, Any] | None = None,
        prompts: Mapping[str, str] | None = None,
        dataset: Any = None,
        columns: Mapping[str, str | list[str]] | None = None,
        item_list: Sequence[Any] | None = None,
        given: Mapping[str, Given] | None = None,
    ) -> None:
        """Add what the user says besides the file, and override the file with it."""
        if models is not None:
            self.contestants = self.add_models(models)
        for role, panel in (roles or {}).items():
            self.instruments[role] = self.add_models(panel)
        self.exclude += exclude
        self.evolve |= evolve or {}
        self.prompts |= prompts or {}
        if dataset is not None:
            self.set_dataset(dataset)
        self.add_columns(columns or {})
        if item_list is not None:
            self.given.pop("items", None)
            self.item_list, self.dataset, self.columns = item_list, None, {}
        self.given |= given or {}
        if (opponent := (given or {}).get("adversary")) is not None:
            (alias,) = self.add_models(opponent.value)
            self.given["adversary"] = replace(opponent, value=alias)

    def add_models(self, models: Models) -> list[str]:
        """Add models, given in any form, and return their aliases."""
        if isinstance(models, str) or callable(models):
            models = [models]
        found = []
        for alias, model in (
            models.items() if isinstance(models, Mapping) else (("", model) for model in models)
        ):
            options = dict(model) if isinstance(model, Mapping) else {}
            what = options.pop("model", None) if isinstance(model, Mapping) else model
            if not isinstance(what, str) and not callable(what):
                raise UsageError(
                    f"a model must be a name, a function or {{'model': name, …}}, not {what!r}"
                )
            found.append(self.add_model(what, str(alias), options))
        return found

    def set_dataset(self, dataset: Any) -> None:
        """Take the items from a dataset: its name, its path, or {path, columns}."""
        said = dataset if isinstance(dataset, Mapping) else {"path": dataset}
        if "path" not in said or said.keys() - {"path", "columns"}:
            raise UsageError(
                "a dataset must be a name, a path, or an object with the keys `path` and "
                f"`columns`; found an object with {', '.join(said)}"
            )
        self.dataset, self.columns = str(said["path"]), dict(said.get("columns", {}))
        self.check_dataset_path = allow_every_path

    def add_columns(self, columns: Mapping[str, str | list[str]]) -> None:
        """Add columns of the dataset for fields of the items."""
        if columns and self.dataset is None:
            raise UsageError("--column only works with your own dataset: add --dataset PATH")
        self.columns |= columns

    def add_model(
        self,
        model: str | Callable[..., Any],
        alias: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """Add a model and return its alias. A model is `[ALIAS=]PROVIDER/NAME`, `[ALIAS=]` with a
        known alias, or a function.

        It replaces the file's entry for that alias, unless it is the same model.
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
            else models_file.model_of_alias(model, self.models, self.file, self._typed)
        )
        if alias:
            check_alias(alias)
            parse_model_name(
                f"x={new['model']}"
            )  # Python allows any alias, but the model must be valid
        elif own:
            alias = parse_model_name(f"{head}={new['model']}").alias
        else:
            alias = parse_model_name(model).alias if "/" in model else model
        new = {**new, **(options or {})}
        old = self.models.get(alias)
        if old is not None and new == {"model": old["model"]}:
            new = old  # the same model again: it keeps its options
        if alias in self._typed and old != new:
            raise UsageError(
                f"two models are called {alias!r}: give each an alias, "
                f"like -m a={model} -m b={model}"
            )
        self._typed.add(alias)
        self.models[alias] = new
        return alias

    def cast(self) -> list[str]:
        """The contestants: as given, or else all models that are not instruments; without excluded
        models."""
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
                raise unknown_name("model to exclude:", alias, self.models)
            if alias in serving:
                roles = [role for role, panel in self.instruments.items() if alias in panel]
                used = f"plays the role {roles[0]}" if roles else "is the --adversary"
                raise UsageError(
                    f"{alias!r} is in --exclude, but also {used}: remove it from one of the two"
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
        """The configuration of the run, without models that have no seat."""
        contestants = self.cast()
        against = [self.adversary] if self.adversary else []
        panels = [alias for panel in self.instruments.values() for alias in panel]
        seated = dict.fromkeys([*contestants, *against, *panels, *self.exclude])
        options = check_options(self.given)
        plan = options.plan or self.usual_plan(made)
        if self.evolve and plan != "evolve":
            raise UsageError(
                f"settings of `--plan evolve` are given, but the plan is `{plan}`: add --plan "
                "evolve, or remove these settings"
            )
        stop = self.stop(options, plan, on_items=made.items is not None)
        if stop is not None and plan == "evolve":
            raise UsageError(
                "`--plan evolve` plays a fixed number of stages: remove --until-stable or `stop`"
            )
        repeats = options.repeats
        if repeats is None:
            once = stop is not None or plan == "evolve"
            repeats = 1 if once else max(made.repeats, REPEATS.get(plan, 1))
        models = {alias: models_file.with_defaults(self.models[alias]) for alias in seated}
        if options.batch:
            models = with_batch_api(models)
        refuse_missing_batch_api(models)
        config = Config(
            task=self.task,
            params=made.params,
            models={
                alias: with_temperature_zero(model) if made.temperature_zero else model
                for alias, model in models.items()
            },
            contestants=contestants,
            instruments={role: list(panel) for role, panel in self.instruments.items()},
            excluded=list(dict.fromkeys(self.exclude)),
            prompts=dict(self.prompts),
            dataset=self.dataset
            or (usual_dataset(made.items.type) if made.items and self.item_list is None else None),
            columns=dict(self.columns),
            stop=stop,
            evolve=parse_evolve(self.evolve) if plan == "evolve" else None,
            **{
                **{name: getattr(options, name) for name in STORED},
                "plan": plan,
                "repeats": repeats,
            },
        )
        if self.workers is None or stop is None:
            return config
        from parley.plans.sequential import BUSY  # late: it needs numpy

        # a sequential plan draws enough matches for all workers at a time
        return replace(config, at_once=max(BUSY, self.workers * concurrency_of(config)))

    def usual_plan(self, made: Task) -> str:
        """The plan if the user names none."""
        if self.evolve:
            return "evolve"
        return "versus" if self.adversary else default_arrangement(made)

    def stop(self, options: RunOptions, plan: str, on_items: bool) -> StopTarget | None:
        """The stopping rule of the run, if it has one."""
        in_file = self.file is not None and "stop" in self.file.data
        if plan == "race":
            if "until_stable" in self.given:
                raise UsageError(
                    f"{self.given['until_stable'].said} cannot be combined with `--plan race`, "
                    f"which stops when its ranking is decided: remove one of the two"
                )
        elif "top" in self.given:
            raise UsageError(
                f"{self.given['top'].said} only works with `--plan race`: add --plan race"
            )
        elif not options.until_stable and not in_file:
            if given := [self.given[name].said for name in STOPPING if name in self.given]:
                raise UsageError(
                    f"{', '.join(given)} only works with a stopping rule: add --until-stable or "
                    "--plan race"
                )
            return None
        if "repeats" in self.given and not on_items:
            raise UsageError(
                f"{self.given['repeats'].said} sets a fixed number of matches, but this run has a "
                "stopping rule: use --max-blocks N"
            )
        target = options.target
        if target is None:
            target = "these_items" if on_items and plan != "race" else "new_items"
        return StopTarget(options.half_width, options.alpha, target, options.top)

    def configured_task(self) -> Task:
        """The task with its parameters; an error in a file's parameters names the line."""
        if self.instance is not None:
            return self.instance
        task = task_class(self.task)
        if self.file is not None and self.params and self.params == self.file.data.get("set"):
            with self.file.errors_at("set"):
                return task.from_params(self.params)
        return task.from_params(self.params)

    def prepare(self, need_keys: bool = True) -> Prepared:
        """Check everything before the first paid call; a forecast needs no keys."""
        made = self.configured_task()
        items = self.item_list
        if items is None and self.dataset is not None and REFERENCE.search(self.dataset):
            # the stored configuration keeps the reference
            items = load_items(
                expand_references(self.dataset),
                item_type_of_task(type(made)),
                self.columns,
                self.check_dataset_path,
            )
        config = self.config(made)
        check_models(config.models, self.allowed.with_keys_at(models_file.keys_at_trusted_hosts()))
        try:
            refuse_secrets(config)
        except TypeError as wrong:
            raise UsageError(
                f"the configuration contains a value that cannot be stored in a run: {wrong}"
            ) from None
        prepared = prepare_new(
            config,
            task=made,
            items=items,
            functions=self.functions,
            need_keys=need_keys,
            check_path=self.check_dataset_path,
        )
        if check_options(self.given).batch and not any(
            map(uses_batch_api, config.live_models.values())
        ):
            prepared.cautions.append(
                "--batch has no effect, because no model of this run is called through a batch API"
            )
        return prepared


def with_temperature_zero(model: models_file.Entry) -> models_file.Entry:
    """Set temperature 0 for a model that has a temperature, unless it is set already."""
    family = str(model["model"]).partition("/")[0]
    takes = providers.is_provider(family) and "temperature" in getattr(
        providers.provider_class(family), "__dataclass_fields__", {}
    )
    return {"temperature": 0, **model} if takes else model


def sandbox_choice(sandbox: str | None, unsafe: bool = False) -> str | None:
    """The sandbox to use; `none` only with the explicit unsafe option."""
    if unsafe:
        if sandbox is not None:
            raise UsageError(
                f"--sandbox {sandbox} and --unsafe-run-code-without-isolation contradict each "
                "other: remove one of them"
            )
        return "none"
    if sandbox is not None and sandbox not in OPTIONS["sandbox"].choices:
        raise unknown_name("sandbox", str(sandbox), OPTIONS["sandbox"].choices)
    return sandbox


def check_alias(alias: str) -> None:
    """Refuse an alias that tables and pages cannot show as it is."""
    if not alias.strip() or show_hidden(alias) != alias or {"\t", "\n"} & set(alias):
        raise UsageError(
            f"an alias must have visible characters on one line, not {alias!r}: give the model "
            "another alias"
        )
