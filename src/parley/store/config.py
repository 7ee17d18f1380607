"""What identifies a run: all that was asked for, in plain data. It holds no secret."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from typing import Any, Literal, NotRequired, TypedDict, get_type_hints

import orjson

from parley.errors import UsageError, unknown
from parley.plans.stop_targets import Stop
from parley.store.decoding import find_misfit

ISOLATING = ("bubblewrap", "docker", "podman")
SANDBOXES = (*ISOLATING, "none")
# what may change from one sitting to the next
FREE = ("name", "max_blocks", "budget_usd", "max_calls", "concurrency", "verify")


@dataclass(frozen=True)
class Rejudged:
    """The run whose matches are judged again: in these roles somebody is asked, all other replies
    are that run's."""

    run: str
    roles: list[str]
    before: dict[str, list[str]]  # who was in these roles there
    names: list[str]  # which names were masked there
    seed: int | None = None  # for other draws of the same judges
    root: str = ""  # the run that was played, where that one was itself judged again


@dataclass(frozen=True)
class Verify:
    """Items are put to all models until so many are found of which each is sure: whose mean of a
    metric exceeds theta."""

    wanted: int
    metric: str
    theta: float


@dataclass(frozen=True)
class Config:
    """The configuration of a run; how fast it is played is kept, and may change."""

    task: str
    params: dict[str, Any]
    models: dict[str, dict[str, Any]]  # alias: {"model": PROVIDER/NAME, options…}
    contestants: list[str]
    instruments: dict[str, list[str]] = field(default_factory=dict)
    plan: str = "round_robin"
    repeats: int = 1
    seed: int = 0
    standardise: Literal["on_error", "always"] = "on_error"
    prompts: dict[str, str] = field(default_factory=dict)  # address: the words that replace it
    dataset: str | None = None
    # field of an item: the dataset's column for it
    columns: dict[str, Any] = field(default_factory=dict)
    items: int | None = None
    seats: int | None = None  # of a role of open size, where the plan makes groups
    adversary: str | None = None  # the alias of whom all models meet, who is not ranked
    stop: Stop | None = None  # a plan that looks at what was played
    max_blocks: int | None = None
    # bounds on all that the run spends, however often it is resumed
    budget_usd: float | None = None
    max_calls: int | None = None
    sandbox: str = "bubblewrap"  # how code that models write is kept apart; "none": not at all
    name: str = ""
    concurrency: int | None = None  # matches in flight; None: as many as is usual
    rejudged: Rejudged | None = None  # matches of another run, judged again
    verify: Verify | None = None  # a run that only looks for items
    verified: str = ""  # the run that has found the items
    # models that do not play, and keep an empty place in tables
    excluded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.budget_usd is not None and not 0 <= self.budget_usd < float("inf"):
            raise UsageError(
                f"budget_usd must be a number of USD, 0 or more, not {self.budget_usd}"
            )
        if self.sandbox not in SANDBOXES:
            raise unknown("sandbox", self.sandbox, SANDBOXES)
        if self.max_calls is not None and self.max_calls < 0:
            raise UsageError(f"max_calls must be a whole number, 0 or more, not {self.max_calls}")

    @property
    def players(self) -> list[str]:
        """The contestants, and the adversary where there is one."""
        return [*self.contestants, *([self.adversary] if self.adversary else [])]

    @property
    def seated(self) -> list[str]:
        """Everybody who sits somewhere, by alias, each once."""
        return list(
            dict.fromkeys(
                [*self.players, *(alias for panel in self.instruments.values() for alias in panel)]
            )
        )

    def asks(self, role: str) -> bool:
        """Whether anybody is asked in a role, or its replies are those of another run."""
        return self.rejudged is None or role in self.rejudged.roles

    @property
    def asked(self) -> dict[str, dict[str, Any]]:
        """The models that are asked: all that play, or only those who judge again."""
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
        """The configuration that a record holds; what it cannot be raises ValueError."""
        found = orjson.loads(text)
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
        known = {each.name: found[each.name] for each in fields(cls) if each.name in found}
        for name, kind in {"stop": Stop, "rejudged": Rejudged, "verify": Verify}.items():
            if known.get(name) is not None:
                if wrong := find_misfit(known[name], dict[str, Any], name):
                    raise ValueError(wrong)
                known[name] = kind(**known[name])
        hints = get_type_hints(cls)
        for name, value in known.items():
            if name not in ("stop", "rejudged", "verify") and (
                wrong := find_misfit(value, hints[name], name)
            ):
                raise ValueError(wrong)
        if (most := known.get("max_blocks")) is not None and most < 1:
            raise ValueError(f"max_blocks must be a whole number from 1 on, not {most!r}")
        config = cls(**known)
        for alias in config.seated:
            if not isinstance(config.models.get(alias, {}).get("model"), str):
                raise ValueError(f"no model is named for {alias!r}")
        return config


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
    python: NotRequired[str]
    mends: NotRequired[str]
    task: str
    version: int
    runs_code: NotRequired[bool]
    rule: str
    roles: dict[str, Literal["contestant", "instrument"]]
    seats: dict[str, int]
    metrics: list[MetricFacts]
    basis: NotRequired[dict[str, str]]
    items: NotRequired[str | None]
    texts: dict[str, str]
    prompts: dict[str, str]
    works: NotRequired[dict[str, Any]]
    prices: NotRequired[dict[str, PriceFacts]]


def digest(text: str) -> str:
    """A few letters that stand for a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
