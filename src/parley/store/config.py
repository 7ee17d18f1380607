"""The configuration of a run as plain data. It contains no secrets."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, get_type_hints

import orjson

from parley.errors import UsageError
from parley.options import RESUMABLE, StoredOptions, check_stored
from parley.plans.evolve_settings import EvolveSettings
from parley.plans.stop_targets import StopTarget
from parley.rules.parsing import is_deeper_than
from parley.store.decoding import find_misfit

DEEPEST = 100  # levels of a configuration on record
MAY_CHANGE = (*RESUMABLE, "name", "screening")  # while a run goes on
# options that say where a model is served and how fast; they may change as well
MAY_MOVE = ("base_url", "api_key_env", "server_args", "concurrency", "rpm", "tpm")


@dataclass(frozen=True)
class Rejudged:
    """The run whose matches are rejudged: models are called in these roles, all other replies are
    copied from that run."""

    run: str
    roles: list[str]
    before: dict[str, list[str]]  # the models in these roles there
    seed: int | None = None  # for new samples from the same judges
    root: str = ""  # the run that was played, if that run was itself rejudged


@dataclass(frozen=True)
class ScreeningTarget:
    """Screen items until `wanted` of them are found on which the mean of a metric exceeds theta for
    every model."""

    wanted: int
    metric: str
    theta: float


@dataclass(frozen=True)
class Config(StoredOptions):
    """The configuration of a run: its options, models, task and dataset."""

    task: str
    params: dict[str, Any]
    models: dict[str, dict[str, Any]]  # alias: {"model": PROVIDER/NAME, options…}
    contestants: list[str]
    instruments: dict[str, list[str]] = field(default_factory=dict)
    # the two options whose default is the task's own are decided here
    plan: str = field(default="round_robin", kw_only=True)
    repeats: int = field(default=1, kw_only=True)
    prompts: dict[str, str] = field(default_factory=dict)  # by address: the new text
    dataset: str | None = None
    # field of an item: the dataset's column for it
    columns: dict[str, Any] = field(default_factory=dict)
    stop: StopTarget | None = None  # sequential stopping
    evolve: EvolveSettings | None = None  # the plan `evolve`
    rejudged: Rejudged | None = None  # the run whose matches are rejudged
    screening: ScreeningTarget | None = None  # a run that only screens items
    screening_run: str = ""  # the run that selected the items
    # models that do not play; tables keep an empty row for them
    excluded: list[str] = field(default_factory=list)
    # The fewest matches that a sequential plan hands out at once, if workers play it; None: the
    # usual number, and it waits until they have ended.
    at_once: int | None = None

    def __post_init__(self) -> None:
        check_stored(self)
        if self.at_once is not None and self.at_once < 1:
            raise UsageError(f"at_once must be a whole number, 1 or more, not {self.at_once!r}")

    @property
    def players(self) -> list[str]:
        """The contestants, and the adversary if there is one."""
        return [*self.contestants, *([self.adversary] if self.adversary else [])]

    @property
    def aliases_in_use(self) -> list[str]:
        """The aliases of all models that have a seat, each once."""
        return list(
            dict.fromkeys(
                [*self.players, *(alias for panel in self.instruments.values() for alias in panel)]
            )
        )

    def is_live_role(self, role: str) -> bool:
        """Whether models are called in a role; if not, its replies are copied from another run."""
        return self.rejudged is None or role in self.rejudged.roles

    @property
    def live_models(self) -> dict[str, dict[str, Any]]:
        """The models that are called: all that play, or only those that rejudge."""
        if self.rejudged is None:
            return {
                alias: model for alias, model in self.models.items() if alias not in self.excluded
            }
        return {
            alias: self.models[alias]
            for role in self.rejudged.roles
            for alias in self.instruments[role]
        }

    def encoded(self) -> bytes:
        return orjson.dumps(asdict(self))

    @classmethod
    def decoded(cls, text: str | bytes) -> Config:
        """Decode a recorded configuration; ValueError if it is not valid."""
        found = orjson.loads(text)
        if not isinstance(found, dict):
            raise ValueError("it is not a JSON object")
        if is_deeper_than(found, DEEPEST):
            raise ValueError(f"it has more than {DEEPEST} nested levels")
        known = {each.name: found[each.name] for each in fields(cls) if each.name in found}
        for name, kind in {
            "stop": StopTarget,
            "rejudged": Rejudged,
            "screening": ScreeningTarget,
        }.items():
            if known.get(name) is not None:
                if wrong := find_misfit(known[name], dict[str, Any], name):
                    raise ValueError(wrong)
                known[name] = kind(**known[name])
        if (evolve := known.get("evolve")) is not None:
            if wrong := find_misfit(evolve, dict[str, dict[str, dict[str, Any]]], "evolve"):
                raise ValueError(wrong)
            try:
                known["evolve"] = EvolveSettings.decoded(evolve)
            except (UsageError, TypeError, KeyError) as misfit:
                raise ValueError(f"evolve: {misfit}") from None
        hints = TYPES.get(cls) or TYPES.setdefault(cls, get_type_hints(cls))
        for name, value in known.items():
            if name not in ("stop", "evolve", "rejudged", "screening") and (
                wrong := find_misfit(value, hints[name], name)
            ):
                raise ValueError(wrong)
        try:
            config = cls(**known)
        except UsageError as misfit:  # the error is in the file, not in what the user typed
            raise ValueError(str(misfit)) from None
        for alias in config.aliases_in_use:
            if not isinstance(config.models.get(alias, {}).get("model"), str):
                raise ValueError(f"the file names no model for the alias {alias!r}")
        for role in config.rejudged.roles if config.rejudged else ():
            if role not in config.instruments:
                raise ValueError(
                    f"the role {role!r} was rejudged, but the file names no model for it"
                )
        return config


TYPES: dict[type, dict[str, Any]] = {}  # of the fields of a configuration, by its class


class ConfigParts(NamedTuple):
    """A configuration on record in two parts."""

    fixed: dict[str, Any]  # who is who and what is measured, which is fixed when a run begins
    settings: dict[str, Any]  # limits and addresses, which may change when it is resumed


def split_config(text: str) -> ConfigParts:
    """The two parts of a recorded configuration, whatever it contains."""
    try:
        found = orjson.loads(text)
    except ValueError:
        return ConfigParts({"unreadable": text}, {})
    if not isinstance(found, dict):
        return ConfigParts({"unreadable": text}, {})
    settings = {name: found.pop(name) for name in MAY_CHANGE if name in found}
    models, moved = found.get("models"), dict[str, Any]()
    for alias, model in models.items() if isinstance(models, dict) else ():
        if isinstance(model, dict):
            moved[alias] = {name: model.pop(name) for name in MAY_MOVE if name in model}
    settings["models"] = {alias: options for alias, options in moved.items() if options}
    return ConfigParts(found, settings)


class MetricFacts(TypedDict):
    """A metric as a record keeps it."""

    name: str
    low: float
    high: float
    epsilon: float
    unit: str
    better: Literal["higher", "lower"]
    success: float | None
    roles: list[str]
    judged: NotRequired[bool]
    digits: NotRequired[int]
    round: NotRequired[int | None]


class PriceFacts(TypedDict):
    """The price of a model as a record keeps it."""

    rates: list[list[float | None]]
    source: str
    as_of: NotRequired[str]


class Identity(TypedDict):
    """What a record depends on besides its configuration: the program, the rule, the prompts."""

    parley: str
    python: str
    json_repair: str  # the version of the library that repairs broken JSON
    task: str
    version: int
    runs_code: NotRequired[bool]
    rule: str
    rule_without_bots: NotRequired[str]  # of a user's file with bots
    source: NotRequired[str]
    roles: dict[str, Literal["contestant", "instrument"]]
    seats: dict[str, int]
    metrics: list[MetricFacts]
    basis: NotRequired[dict[str, str]]
    items: str | None
    texts: dict[str, str]
    prompts: dict[str, str]
    works: NotRequired[dict[str, Any]]
    retrievers: NotRequired[dict[str, str]]
    stratum: NotRequired[str]  # the field that stratifies held-out items, if not `subject`
    prices: NotRequired[dict[str, PriceFacts]]


def text_digest(text: str) -> str:
    """A short digest of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
