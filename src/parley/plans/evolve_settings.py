"""Settings of the plan `evolve`: what models remember, and which memories they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import PurePath
from typing import Annotated, Any, Literal, NamedTuple

from parley.errors import UsageError, unknown_name
from parley.memory import OWN_EXAMPLES
from parley.rules.parameters import build_dataclass
from parley.rules.task import Metric, name_twin
from parley.tables import shorten

FIRST_ARM = "evolve"  # the name of the only arm, if the user names none
PROBE = "/probe"  # ends the name of an arm whose last stage is played once more, masked
# the three controls, and the settings in which they differ from the first arm
CONTROLS: dict[str, dict[str, Any]] = {
    "unchanged": {"retriever": "fixed"},
    "masked": {"mask": True},
    "random": {"retriever": "random"},
}
SUCCESS = re.compile(r"\s*([\w.-]+)\s*(>=|<=)\s*([-+.\deE]+)\s*")
Share = Annotated[float, (0, 1)]


@dataclass(frozen=True)
class EvolveArm:
    """One set of settings. Every arm has its own memories; all arms share the standard stage.

    stages     passes over all items after the standard stage
    k          how many experiences to show; as many as the task has examples, else 3
    retriever  what finds similar experiences: minilm, bm25, hf/NAME, random, fixed or none
    mask       leave out a question's own earlier answer
    probe      play the last stage once more with the question's own answer left out
    keep       which experiences to remember: only successes (positive), or all with their outcome
    feedback   who decides what is a success: the task's score (truth), the player (self), a critic,
               or people
    refresh    whether new successes are added (merge), or replace those of earlier stages
    scope      where to search: in all, in the same subject, or in other subjects
    order      how to order what is shown: nearest_last or nearest_first
    window     play items once, as a stream, N at a time
    held_out   the share of items that is never remembered
    memory     what to remember: demonstrations, or insights that the model writes down
    poison     the share of verdicts that is reversed
    success    what counts as a success: METRIC>=X or METRIC<=X
    fit        the most tokens that the shown experiences may have
    transfer   another run, whose memory this run begins with
    """

    stages: Annotated[int, (1, 1000)] = 3
    k: Annotated[int, (1, 1000)] | None = None
    retriever: str = "minilm"
    mask: bool = False
    probe: bool = True
    keep: Literal["positive", "all"] = "positive"
    feedback: Literal["truth", "self", "critic", "people"] = "truth"
    refresh: Literal["merge", "replace"] = "merge"
    scope: Literal["all", "subject", "other"] = "all"
    order: Literal["nearest_last", "nearest_first"] = "nearest_last"
    window: Annotated[int, (1, 10**9)] | None = None
    held_out: Share = 0.0
    memory: Literal["demonstrations", "insights"] = "demonstrations"
    poison: Share = 0.0
    success: str = ""
    fit: Annotated[int, (1, 10**9)] | None = None
    transfer: str = ""

    def __post_init__(self) -> None:
        if self.success and not SUCCESS.fullmatch(self.success):
            raise ValueError(f"`success` must be METRIC>=X or METRIC<=X, not {self.success!r}")
        if self.held_out == 1:
            raise ValueError(
                "`held_out` must be less than 1, so that some items are left to learn from"
            )
        if self.feedback == "people" and self.memory == "insights":
            raise ValueError(
                "`memory=insights` and `feedback=people` cannot be combined: lessons are "
                "written right after a match, but people vote later. Choose another "
                "`feedback`, or `memory=demonstrations`"
            )

    @property
    def searches(self) -> bool:
        """Whether experiences are retrieved at all."""
        return self.retriever not in OWN_EXAMPLES

    @property
    def asks_people(self) -> bool:
        """Whether people decide what is remembered."""
        return self.feedback == "people" and self.searches

    @property
    def has_probe(self) -> bool:
        """Whether the last stage is played once more, masked."""
        return self.probe and self.searches and not self.mask and self.window is None


@dataclass(frozen=True)
class EvolveSettings:
    """The arms of a run, by name. Main tables show the first one."""

    arms: dict[str, EvolveArm]

    def __post_init__(self) -> None:
        if not self.arms:
            raise UsageError("evolve.arms is empty: add at least one arm")
        for name in self.arms:
            if not re.fullmatch(r"[\w.-]+", name):
                raise UsageError(
                    "evolve.arms: the name of an arm may contain only letters, digits, '_', '-' "
                    f"and '.', not {name!r}"
                )

    @property
    def first(self) -> str:
        """The arm whose last stage the main results show."""
        return next(iter(self.arms))

    def arm(self, name: str) -> EvolveArm:
        """An arm by its name; the arm of a probe is the arm that it belongs to, masked."""
        own = self.arms[name.removesuffix(PROBE)]
        return replace(own, mask=True) if name.endswith(PROBE) else own

    @classmethod
    def decoded(cls, found: Mapping[str, Any]) -> EvolveSettings:
        """Read the settings from a run file; raises a UsageError if they are not valid."""
        return cls(
            {
                name: build_dataclass(EvolveArm, facts, "key of", f"evolve.arms.{name}")
                for name, facts in found["arms"].items()
            }
        )


def parse_evolve(given: Mapping[str, Any]) -> EvolveSettings:
    """Read the settings that a user gave: keys for all arms, `controls`, and `arms` with the
    settings in which each arm differs."""
    rest = dict(given)
    arms, controls = rest.pop("arms", None), rest.pop("controls", False)
    if not isinstance(controls, bool) and str(controls).lower() not in ("true", "false"):
        raise UsageError(f"evolve.controls must be true or false, not {controls!r}")
    base = parse_arm(rest, "evolve")
    if arms is None:
        found = {FIRST_ARM: base}
    elif not isinstance(arms, Mapping) or not all(isinstance(v, Mapping) for v in arms.values()):
        raise UsageError(
            "evolve.arms must give the settings of each arm under its name, like "
            f"{{NAME: {{k: 3}}}}, not {shorten(arms)}"
        )
    else:
        found = {
            str(name): parse_arm({**rest, **own}, f"evolve.arms.{name}")
            for name, own in arms.items()
        }
    settings = EvolveSettings(found)
    return with_controls(settings) if str(controls).lower() == "true" else settings


def parse_arm(given: Mapping[str, Any], owner: str) -> EvolveArm:
    """Read the settings of one arm."""
    known = [each.name for each in fields(EvolveArm)]
    for key in given:
        if key not in known:
            raise unknown_name(f"key of {owner}:", str(key), [*known, "arms", "controls"])
    arm = build_dataclass(EvolveArm, given, "key of", owner)
    if arm.window is not None and "stages" in given:
        raise UsageError(
            f"{owner}: `window` plays every item once, but `stages` plays all items several "
            "times: remove one of them"
        )
    return arm


def with_controls(settings: EvolveSettings) -> EvolveSettings:
    """The same settings with those of the three controls that differ from the first arm."""
    own = settings.arms[settings.first]
    added: dict[str, EvolveArm] = {}
    for name, changes in CONTROLS.items():
        arm = replace(own, probe=False, **changes)
        if name in settings.arms:
            raise UsageError(
                f"evolve.arms: `controls=true` already adds an arm named {name!r}: rename your arm"
            )
        if arm != replace(own, probe=False):
            added[name] = arm
    return EvolveSettings({**settings.arms, **added})


class SuccessRule(NamedTuple):
    """The score from which a match counts as a success for a role."""

    metric: str
    threshold: float
    higher: bool

    def applies(self, scores: Mapping[str, float | None]) -> bool:
        """Whether a seat with these scores is judged by this rule: it has either a protected score
        or an unprotected one, and the rule names one of them."""
        other = name_twin(self.metric)
        return self.metric in scores or other not in scores

    def holds(self, value: float | None) -> bool:
        """Whether a score is a success; a missing score is not."""
        if value is None:
            return False
        return value >= self.threshold if self.higher else value <= self.threshold


def find_success_rules(
    metrics: Sequence[Metric], roles: Sequence[str], arm: EvolveArm, task: str
) -> dict[str, SuccessRule]:
    """What counts as a success, by role; roles without a metric for it are left out."""

    def metrics_of(role: str) -> list[Metric]:
        return [each for each in metrics if not each.roles or role in each.roles]

    if said := SUCCESS.fullmatch(arm.success):
        name, sign, text = said.groups()
        if name not in {each.name for each in metrics}:
            raise unknown_name(
                f"metric of {task} in evolve.success:", name, [each.name for each in metrics]
            )
        try:
            threshold = float(text)
        except ValueError:
            raise UsageError(f"evolve.success: {text!r} is not a number") from None
        return {
            role: SuccessRule(name, threshold, sign == ">=")
            for role in roles
            if name in {each.name for each in metrics_of(role)}
        }
    found = {}
    for role in roles:
        for each in metrics_of(role):
            if each.success is not None:
                found[role] = SuccessRule(each.name, each.success, each.better == "higher")
                break
    if not found:
        example = metrics[0]
        raise UsageError(
            f"the task {task} does not define what counts as a success: set a threshold, like "
            "--evolve "
            f"'success={example.name}>={example.low + (example.high - example.low) / 2:g}'"
        )
    return found


def describe_arm(arm: EvolveArm) -> str:
    """An arm's settings in one line, for signatures: what differs from the defaults. A path to
    another run is shortened to the name of its file."""
    usual = asdict(EvolveArm())
    found = {**asdict(arm), "transfer": PurePath(arm.transfer).name}
    said = [f"{key}={value}" for key, value in found.items() if value != usual[key]]
    return ",".join(said) or "default"
