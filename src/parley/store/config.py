"""What identifies a run: all that was asked for, in plain data. It holds no secret."""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from typing import Any, Literal

import orjson

from parley import __version__
from parley.config.task_catalogue import digest, rule_digest
from parley.errors import ReplayError, UsageError, unknown
from parley.plans.stop_targets import Stop
from parley.providers._secrets import secrets
from parley.rules.task import FORM, Metric, Prompt, Task

ISOLATING = ("bubblewrap", "docker", "podman")
SANDBOXES = (*ISOLATING, "none")
FREE = ("name", "max_blocks", "budget_usd", "max_calls", "concurrency", "verify")  # what may change from one sitting to the next


@dataclass(frozen=True)
class Rejudged:
    """The run whose matches are judged again: in these roles somebody is asked, all other replies are that run's."""

    run: str
    roles: list[str]
    before: dict[str, list[str]]  # who was in these roles there
    names: list[str]  # which names were masked there
    seed: int | None = None  # for other draws of the same judges
    root: str = ""  # the run that was played, where that one was itself judged again


@dataclass(frozen=True)
class Verify:
    """Items are put to all models until so many are found of which each is sure: whose mean of a metric exceeds theta."""

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
    columns: dict[str, Any] = field(default_factory=dict)  # field of an item: the dataset's column for it
    items: int | None = None
    seats: int | None = None  # of a role of open size, where the plan makes groups
    adversary: str | None = None  # the alias of whom all models meet, who is not ranked
    stop: Stop | None = None  # a plan that looks at what was played
    max_blocks: int | None = None
    budget_usd: float | None = None  # bounds on all that the run spends, however often it is resumed
    max_calls: int | None = None
    sandbox: str = "bubblewrap"  # how code that models write is kept apart; "none": not at all
    name: str = ""
    concurrency: int | None = None  # matches in flight; None: as many as is usual
    rejudged: Rejudged | None = None  # matches of another run, judged again
    verify: Verify | None = None  # a run that only looks for items
    verified: str = ""  # the run that has found the items
    excluded: list[str] = field(default_factory=list)  # models that do not play, and keep an empty place in tables

    def __post_init__(self) -> None:
        if self.budget_usd is not None and not 0 <= self.budget_usd < float("inf"):
            raise UsageError(f"budget_usd must be a number of USD, 0 or more, not {self.budget_usd}")
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
        return list(dict.fromkeys([*self.players, *(alias for panel in self.instruments.values() for alias in panel)]))

    def asks(self, role: str) -> bool:
        """Whether anybody is asked in a role, or its replies are those of another run."""
        return self.rejudged is None or role in self.rejudged.roles

    @property
    def asked(self) -> dict[str, dict[str, Any]]:
        """The models that are asked: all that play, or only those who judge again."""
        if self.rejudged is None:
            return {alias: model for alias, model in self.models.items() if alias not in self.excluded}
        return {alias: self.models[alias] for role in self.rejudged.roles for alias in self.instruments[role]}

    def encoded(self) -> bytes:
        text = orjson.dumps(asdict(self))
        for secret in secrets():
            if secret.encode() in text:
                raise UsageError("the configuration holds the value of a secret: write ${NAME} where NAME is its variable")
        return text

    @classmethod
    def decoded(cls, text: str | bytes) -> Config:
        found = orjson.loads(text)
        known = {each.name: found[each.name] for each in fields(cls) if each.name in found}
        if known.get("stop") is not None:
            known["stop"] = Stop(**known["stop"])
        if known.get("rejudged") is not None:
            known["rejudged"] = Rejudged(**known["rejudged"])
        if known.get("verify") is not None:
            known["verify"] = Verify(**known["verify"])
        if (most := known.get("max_blocks")) is not None and (type(most) is not int or most < 1):
            raise ValueError(f"max_blocks must be a whole number from 1 on, not {most!r}")
        return cls(**known)


def identity(
    task: Task, seats: Mapping[str, int], prompts: Mapping[str, Prompt], items: Sequence[tuple[str, bytes]] = ()
) -> dict[str, Any]:
    """What a record depends on besides the configuration: the rule, the prompts, the program.

    Roles and metrics stand here too, so that results can be computed from the file alone.
    """
    return {
        "parley": __version__,
        "python": platform.python_version(),
        "mends": version("json-repair"),  # what broken JSON is mended with: a record without it was read without mending
        "task": task.name,
        "version": task.version,
        **({"runs_code": True} if task.runs_code else {}),
        "rule": rule_digest(type(task)),
        "roles": {name: "instrument" if role.instrument else "contestant" for name, role in task.roles.items()},
        "seats": dict(seats),
        "metrics": [described(metric) for metric in task.metrics(seats)],
        **({"basis": dict(basis)} if (basis := task.basis()) else {}),
        "items": f"{len(items)}@{digest(repr(items))[:8]}" if items else None,
        "texts": {f"{task.name}.{name}": prompt.text for name, prompt in sorted(prompts.items())},
        "prompts": {f"{task.name}.{name}": digest(prompt.text) for name, prompt in sorted(prompts.items())},
    }


def described(metric: Metric) -> dict[str, Any]:
    """A metric as a record keeps it: without the guess at its spread, and without what it does not use."""
    facts = {name: value for name, value in asdict(metric).items() if name != "spread"}
    usual = {"round": None, "judged": False, "digits": 2}
    return {name: value for name, value in facts.items() if name not in usual or value != usual[name]}


def refuse_changes(old: Mapping[str, Any], new: Mapping[str, Any], run: str) -> None:
    """A record is only continued under the rule and prompts that it was begun with."""
    changed = [f"task {old['task']} (version {old['version']}, now {new['version']})"] if old["version"] != new["version"] else []
    then, now = old["prompts"], new["prompts"]
    then_on, now_on = old.get("basis", {}), new.get("basis", {})
    changed += [f"{name} ({then_on.get(name)}, now {now_on.get(name)})" for name in now_on if then_on.get(name) != now_on[name]]
    changed += [f"prompt {address}" for address in sorted({*then, *now}) if then.get(address) != now.get(address)]
    if not changed and old["rule"] and old["rule"] != new["rule"]:
        changed = [f"the rule of {old['task']}"]
    then, now = old.get("works", {}), new.get("works", {})
    changed += [f"{name} ({then[name]}, now {now.get(name)})" for name in then if then[name] != now.get(name)]
    if changed:
        raise ReplayError(f"{run} was begun under another {', '.join(changed)}: undo the change, or start a new run")


def refuse_other(old: Config, new: Config, run: str) -> None:
    """A run is only continued under the configuration that it was begun with."""
    before, after = asdict(old), asdict(new)
    changed = [key for key in before if before[key] != after[key] and key not in FREE]
    if changed:
        said = "; ".join(f"{key} was {before[key]!r}, is now {after[key]!r}" for key in changed)
        raise ReplayError(f"{run} was begun under another configuration: {said}")


def unused_prompts(task: Task, seats: Mapping[str, int], standardise: str) -> frozenset[str]:
    """The prompts that nobody hears under this configuration."""
    return frozenset((*task.unsaid(seats), *(() if standardise == "always" else (FORM.name,))))


def chosen_prompts(task: type[Task], replaced: Mapping[str, str], unused: Collection[str] = ()) -> dict[str, Prompt]:
    """The prompts in use: the task's own, or what the configuration puts in their place; what is not used stays as it is."""
    own = task.prompts()
    known = {f"{task.name}.{name}": prompt for name, prompt in own.items()}
    params = [each.name for each in fields(task)]  # type: ignore[arg-type]
    for address, text in replaced.items():
        if address not in known:
            raise unknown("prompt", address, known)
        other = known[address].replaced(text, params)
        if other.name not in unused:
            own[other.name] = other
    return own


def about_prompts(task: type[Task], replaced: Mapping[str, str], unused: Collection[str]) -> Iterator[str]:
    """What the user should know about the words put in place of a task's own."""
    for name, own in task.prompts().items():
        address = f"{task.name}.{name}"
        if address in replaced and name in unused:
            yield f"prompt {address} is replaced, but nobody hears it in this configuration: it changes nothing"
        elif address in replaced and (missing := own.without(Prompt(name, replaced[address]))):
            yield f"prompt {address} is used without {missing}"


def kept_apart(sandbox: str | None, unsafe: bool = False) -> str | None:
    """A sandbox that isolates; to do without one takes more words than this."""
    if unsafe:
        if sandbox is not None:
            raise UsageError(f"sandbox {sandbox} isolates, unsafe-run-code-without-isolation does not: give one of the two")
        return "none"
    if sandbox is not None and sandbox not in ISOLATING:
        raise unknown("sandbox", str(sandbox), ISOLATING)
    return sandbox
