"""The results of an `evolve` run: scores by stage, paired gains over the standard stage, controls,
experiences shown, feedback and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parley.memory.feedback import LESSON_WORDS, LESSON_WRITER, Lesson
from parley.money import stage_cost_rows
from parley.plans.evolve import is_poisoned
from parley.plans.evolve_settings import (
    CONTROLS,
    PROBE,
    EvolveArm,
    EvolveSettings,
    SuccessRule,
    describe_arm,
)
from parley.results.evolve_plays import (
    STANDARD,
    EvolvePlays,
    OwnerPlays,
    PlayOwner,
    PlayPlace,
    StageKey,
    collect_evolve_plays,
)
from parley.results.judged_matches import list_judged_matches
from parley.results.parts.evolve import (
    ArmDifference,
    EvolveArmFacts,
    EvolveGain,
    EvolveResult,
    EvolveStage,
    FeedbackRow,
    ForgottenShare,
    GainCost,
    GainKind,
    ItemSet,
    LessonRow,
    StageCost,
    StreamRegret,
    StreamRow,
    SubjectGain,
)
from parley.results.scores import RunScores
from parley.statistics.paired_gain import (
    UNKNOWN_SHARE,
    Gain,
    ItemShare,
    Values,
    average_gains,
    average_known,
    compute_gain,
    estimate_forgotten,
    estimate_mean,
    estimate_share,
    follow_stream,
    mean_over_stages,
    measure_feedback,
    solved_so_far,
)
from parley.store.feedback_notes import read_feedback


def analyse_evolution(run: RunScores) -> EvolveResult | None:
    """Everything that the part `evolve` shows; None before the first match has ended."""
    settings = run.config.evolve
    if settings is None or not run.every_match:
        return None
    found = collect_evolve_plays(run, settings)
    costs = tuple(collect_costs(run, settings))
    stages, gains, differences = list[EvolveStage](), list[EvolveGain](), list[ArmDifference]()
    forgotten, subjects, streams = list[ForgottenShare](), list[SubjectGain](), list[StreamRow]()
    regrets, paid = list[StreamRegret](), list[GainCost]()
    for owner, own in found.owners.items():
        for arm in settings.arms:
            if owner.role not in found.rules[arm]:
                continue
            scores = ArmScores(run, found, owner, own, arm)
            stages += scores.stage_rows()
            if not scores.stages:
                continue
            gains += scores.gains()
            subjects += scores.subjects()
            differences += scores.differences()
            if scores.streams:
                streams += scores.stream_rows()
                regrets += scores.stream_regrets()
            else:
                forgotten += scores.forgotten()
        paid += [
            each
            for gain in gains
            if (gain.alias, gain.role) == owner
            for each in cost_of_gain(gain, costs)
        ]
    return EvolveResult(
        settings.first,
        tuple(describe_arms(settings)),
        tuple(stages),
        tuple(gains),
        tuple(differences),
        tuple(forgotten),
        tuple(subjects),
        tuple(collect_feedback(run, found)),
        costs,
        tuple(paid),
        tuple(streams),
        tuple(regrets),
        tuple(collect_lessons(run, found)),
    )


class ArmScores:
    """The scores of one model in one role and arm."""

    def __init__(
        self, run: RunScores, found: EvolvePlays, owner: PlayOwner, own: OwnerPlays, arm: str
    ) -> None:
        self._run, self._found, self._owner, self._own, self._arm = run, found, owner, own, arm
        self._setting = found.settings.arms[arm]
        self._rule = found.rules[arm][owner.role]
        self._metric = run.ranking_metric(owner.role) or self._rule.metric
        self.streams = self._setting.window is not None
        self.stages = own.stages_of(arm)
        self._standard = self._successes(STANDARD)
        self._later = [self._successes(stage) for stage in self.stages]
        probe = StageKey(arm + PROBE, self._setting.stages)
        self._probe = probe if probe in own.marks and any(own.marks[probe]) else None

    @property
    def last(self) -> Values:
        """The successes of the last stage that was played."""
        return self._later[-1]

    def _successes(self, stage: StageKey) -> list[float | None]:
        return self._own.successes(stage, self._rule)

    def stage_rows(self) -> Iterator[EvolveStage]:
        """The standard stage, all stages, and the probe."""
        yield self._stage_row(STANDARD, [self._standard])
        for count, stage in enumerate(self.stages):
            so_far = [] if self.streams else [self._standard, *self._later[: count + 1]]
            yield self._stage_row(stage, so_far)
        if self._probe is not None:
            yield self._stage_row(self._probe, [])

    def _stage_row(self, stage: StageKey, so_far: Sequence[Values]) -> EvolveStage:
        plays, values = self._own.plays, self._own.values(stage, self._metric)
        shown = self._own.shown.get(stage)
        success = self._successes(stage)
        planned = self._own.planned(stage)
        return EvolveStage(
            *self._owner,
            self._arm,
            stage.stage,
            stage.arm.endswith(PROBE),
            describe_success(self._rule),
            estimate_mean(plays, success),
            self._metric,
            estimate_mean(plays, values, self._run.bounds[self._metric]),
            estimate_mean(plays, solved_so_far(so_far)) if so_far else UNKNOWN_SHARE,
            planned,
            planned - sum(value is not None for value in success),
            shown.experiences / shown.seats if shown else None,
            estimate_share(shown.same) if shown else UNKNOWN_SHARE,
            estimate_share(shown.near) if shown else UNKNOWN_SHARE,
            shown.dropped if shown else 0,
        )

    def gains(self) -> Iterator[EvolveGain]:
        """Gains over the standard stage: on all items, on practised and on held-out ones."""
        held_out = self._found.held_out[self._arm]
        yield from self._success_gains("all", None)
        if held_out:
            yield from self._success_gains("practised", held_out)
            yield from self._success_gains("held_out", held_out)
        values = {
            stage: self._own.values(stage, self._metric)
            for stage in [STANDARD, *self.stages, *filter(None, [self._probe])]
        }
        if all(values[stage] == self._successes(stage) for stage in values):
            return  # the metric is the success itself
        bounds = self._run.bounds[self._metric]
        by_stage = [values[stage] for stage in self.stages]
        for kind, number, later in self._kinds(by_stage, values.get(self._probe or STANDARD, [])):
            gain = compute_gain(self._own.plays, values[STANDARD], later, bounds)
            yield self._gain(self._metric, kind, "all", number, gain)

    def _success_gains(self, item_set: ItemSet, held_out: frozenset[str] | None) -> Any:
        chosen = [
            at
            for at, play in enumerate(self._own.plays)
            if held_out is None or (play.item in held_out) == (item_set == "held_out")
        ]
        plays = [self._own.plays[at] for at in chosen]

        def gain(later: Values) -> Gain:
            before, after = ([row[at] for at in chosen] for row in (self._standard, later))
            return compute_gain(plays, before, after)

        probe = self._successes(self._probe) if self._probe else []
        for kind, number, later in self._kinds(self._later, probe):
            yield self._gain("success", kind, item_set, number, gain(later))
        if item_set != "all" or self.streams:
            return
        each = [gain(later) for later in self._later]
        known = [(found.value, -at) for at, found in enumerate(each) if found.value is not None]
        if known:
            best = -max(known)[1]
            number = self.stages[best].stage
            yield self._gain("success", "best", "all", number, each[best])
        so_far = solved_so_far([self._standard, *self._later])
        number = self.stages[-1].stage
        yield self._gain("success", "solved_so_far", "all", number, gain(so_far))

    def _kinds(
        self, by_stage: Sequence[Values], probe: Values
    ) -> Iterator[tuple[GainKind, int | None, Values]]:
        yield "last", self.stages[-1].stage, by_stage[-1]
        if not self.streams:
            yield "mean", None, mean_over_stages(by_stage)
        if self._probe is not None:
            yield "probe", self._probe.stage, probe

    def _gain(
        self, measure: str, kind: GainKind, item_set: ItemSet, number: int | None, gain: Gain
    ) -> EvolveGain:
        return EvolveGain(*self._owner, self._arm, measure, kind, item_set, number, gain)

    def differences(self) -> Iterator[ArmDifference]:
        """The first arm minus each other arm, in the last stage that both have."""
        settings = self._found.settings
        if self._arm == settings.first:
            return
        first = ArmScores(self._run, self._found, self._owner, self._own, settings.first)
        if not first.stages or first._rule != self._rule or first.streams != self.streams:
            return
        mine, theirs = first.stages[-1], self.stages[-1]
        if first._setting.stages == self._setting.stages and mine.stage != theirs.stage:
            # a run that stopped: the last stage that both have
            number = min(mine.stage, theirs.stage)
            mine, theirs = mine._replace(stage=number), theirs._replace(stage=number)
        own, others = (
            [None if start is None else end for start, end in zip(self._standard, row, strict=True)]
            for row in (self._successes(mine), self._successes(theirs))
        )
        yield ArmDifference(
            *self._owner,
            settings.first,
            self._arm,
            is_control(settings, self._arm),
            mine.stage,
            compute_gain(self._own.plays, others, own),
        )

    def forgotten(self) -> Iterator[ForgottenShare]:
        """Items solved in an earlier stage that fail in the last one."""
        earlier = [self._standard, *self._later[:-1]]
        before, failed, share = estimate_forgotten(self._own.plays, earlier, self._later[-1])
        if before:
            yield ForgottenShare(*self._owner, self._arm, before, failed, share)

    def subjects(self) -> Iterator[SubjectGain]:
        """Gains by subject, and the mean over subjects; none with fewer than two subjects."""
        groups = self._found.subjects
        names = sorted({groups[play.item] for play in self._own.plays} - {""})
        if len(names) < 2:
            return
        chosen: dict[str, list[int]] = {}
        for at, play in enumerate(self._own.plays):
            chosen.setdefault(groups[play.item], []).append(at)
        found = []
        for name in names:
            rows = chosen[name]
            plays = [self._own.plays[at] for at in rows]
            old, new = [self._standard[at] for at in rows], [self.last[at] for at in rows]
            found.append(
                SubjectGain(
                    *self._owner,
                    self._arm,
                    name,
                    estimate_mean(plays, old).value,
                    estimate_mean(plays, new).value,
                    compute_gain(plays, old, new),
                )
            )
        yield from found
        first, last = [row.standard for row in found], [row.last for row in found]
        gain = average_gains([row.gain for row in found])
        yield SubjectGain(
            *self._owner, self._arm, "*", average_known(first), average_known(last), gain
        )

    def stream_rows(self) -> Iterator[StreamRow]:
        """The stream and its control after each window."""
        series = len({play.series for play in self._own.plays})
        windows: dict[int, list[tuple[float, float]]] = {}
        own = self._own.windows[self._arm]
        for window, old, new in zip(own, self._standard, self.last, strict=True):
            if old is not None and new is not None:
                windows.setdefault(window, []).append((old, new))
        for step in follow_stream(windows, series):
            yield StreamRow(*self._owner, self._arm, **step._asdict())

    def stream_regrets(self) -> Iterator[StreamRegret]:
        """The regret at the end: the number of items times the mean difference."""
        gain = compute_gain(self._own.plays, self.last, self._standard)
        count = gain.items

        def times(value: float | None) -> float | None:
            return None if value is None else count * value

        yield StreamRegret(
            *self._owner,
            self._arm,
            count,
            times(gain.value),
            times(gain.low),
            times(gain.high),
            tuple(count * value for value in gain.series),
        )


def describe_success(rule: SuccessRule) -> str:
    """The success criterion in the form in which a user writes it."""
    return f"{rule.metric}{'>=' if rule.higher else '<='}{rule.threshold:g}"


def describe_arms(settings: EvolveSettings) -> Iterator[EvolveArmFacts]:
    """The arms of a run."""
    for name, arm in settings.arms.items():
        yield EvolveArmFacts(
            name,
            describe_arm(arm),
            arm.retriever,
            arm.feedback,
            arm.mask,
            arm.window,
            arm.stages,
            is_control(settings, name),
        )


def is_control(settings: EvolveSettings, name: str) -> bool:
    """Whether an arm is a control: it differs from the first arm only in what the control "
    "changes."""
    if name == settings.first or name not in CONTROLS:
        return False
    own: EvolveArm = settings.arms[settings.first]
    return settings.arms[name] == replace(own, probe=False, **CONTROLS[name])


def collect_feedback(run: RunScores, found: EvolvePlays) -> Iterator[FeedbackRow]:
    """The quality of the feedback, in all stages that a later stage could use."""
    matches = {match.number: match for match in run.every_match}
    judged = any(arm.feedback != "truth" for arm in found.settings.arms.values())
    verdicts = {
        (each.arm, each.match, each.seat): each.verdict
        for each in (list_judged_matches(run.reader) if judged else ())
    }
    for owner, own in found.owners.items():
        for name, arm in found.settings.arms.items():
            rule, stages = found.rules[name].get(owner.role), own.stages_of(name)
            if rule is None or not stages or not arm.searches:
                continue
            cases = []
            for place, item, truth in kept_from(own, name, rule, stages):
                if item in found.held_out[name]:
                    continue
                said = truth if arm.feedback == "truth" else verdicts.get((name, *place))
                if said is not None:
                    spec = matches[place.match].spec
                    said = said != is_poisoned(name, arm.poison, run.config.seed, spec, place.seat)
                cases.append((item, said, truth))
            if cases:
                quality = measure_feedback(cases)
                turned = f", {arm.poison:.0%} reversed" if arm.poison else ""
                yield FeedbackRow(*owner, name, arm.feedback + turned, **vars(quality))


def collect_lessons(run: RunScores, found: EvolvePlays) -> Iterator[LessonRow]:
    """How many lessons were written, and how many of them were too long."""
    if all(arm.memory != "insights" for arm in found.settings.arms.values()):
        return
    lessons = read_feedback(run.reader).lessons
    wanted: dict[PlayOwner, list[Lesson | None]] = {owner: [] for owner in found.owners}
    for match in run.every_match:
        writers = sum(seat.role == LESSON_WRITER for seat in match.seats)
        for seat, alias in match.seats.items() if writers and match.state == "done" else ():
            if (owner := PlayOwner(alias, seat.role)) in wanted:
                wanted[owner].append(lessons.get((match.number, seat)))
    for owner, after in wanted.items():
        written = [each for each in after if each is not None]
        cut = sum(each.words > LESSON_WORDS for each in written)
        if after:
            yield LessonRow(*owner, len(after), len(written), cut)


def kept_from(
    own: OwnerPlays, arm: str, rule: SuccessRule, stages: Sequence[StageKey]
) -> Iterator[tuple[PlayPlace, str, bool]]:
    """The plays that a memory of an arm could use, with their items and whether they succeeded:
    those of all stages, or windows, but the last."""
    windows = own.windows.get(arm)
    last = max(windows) if windows else 0
    for stage in stages if windows else [STANDARD, *stages[:-1]]:
        truths = own.successes(stage, rule)
        for at, (place, truth) in enumerate(zip(own.places[stage], truths, strict=True)):
            if place is not None and truth is not None and not (windows and windows[at] == last):
                yield place, own.plays[at].item, bool(truth)


def collect_costs(run: RunScores, settings: EvolveSettings) -> Iterator[StageCost]:
    """The cost of every stage, by model and role."""
    streams = frozenset(name for name, arm in settings.arms.items() if arm.window is not None)
    found = stage_cost_rows(run.reader, run.prices, streams)
    for (stage, arm, alias, role), row in found.items():
        into, cached = row["tokens_in"], row["tokens_cached"]
        yield StageCost(
            alias,
            role,
            arm.removesuffix(PROBE),
            stage,
            arm.endswith(PROBE),
            row["calls"],
            into,
            cached,
            None if not into or cached is None else cached / into,
            row["tokens_out"],
            row["usd"],
            row["usd_at_least"],
        )


def cost_of_gain(gain: EvolveGain, costs: Sequence[StageCost]) -> Iterator[GainCost]:
    """The cost per item gained, if more items were gained than lost."""
    if (gain.measure, gain.item_set) != ("success", "all") or gain.kind != "last":
        return
    found = gain.gain
    own = [
        row
        for row in costs
        if (row.alias, row.role, row.arm) == (gain.alias, gain.role, gain.arm) and not row.probe
    ]
    if not own or found.value is None or found.value <= 0:
        return
    net = found.value * found.items
    series = max(1, len(found.series))
    counts = [row.tokens_in for row in own] + [row.tokens_out for row in own]
    tokens = None if None in counts else sum(count for count in counts if count is not None)
    known = [row.usd for row in own]
    usd = None if None in known else sum(each for each in known if each is not None)

    def per_item(paid: float | None, value: float | None) -> float | None:
        """The cost per item of one series, given a gain."""
        if paid is None or value is None or value <= 0:
            return None
        return paid / series / (value * found.items)

    yield GainCost(
        gain.alias,
        gain.role,
        gain.arm,
        net,
        tokens,
        per_item(tokens, found.value),
        usd,
        per_item(usd, found.value),
        per_item(usd, found.high),
        per_item(usd, found.low),
    )


def list_rows(found: EvolveResult) -> list[Mapping[str, Any]]:
    """All numbers as rows; the first column names the table."""
    tables: dict[str, Sequence[Any]] = {
        "stages": found.stages,
        "gains": found.gains,
        "differences": found.differences,
        "forgotten": found.forgotten,
        "subjects": found.subjects,
        "feedback": found.feedback,
        "lessons": found.lessons,
        "costs": found.costs,
        "gain_costs": found.gain_costs,
        "streams": found.streams,
        "regrets": found.regrets,
    }
    return [{"table": name, **flatten_row(row)} for name, rows in tables.items() for row in rows]


def flatten_row(row: Any, before: str = "") -> dict[str, Any]:
    """A dataclass as one row; each field of a nested estimate becomes a column."""
    found: dict[str, Any] = {}
    for name, value in vars(row).items():
        if isinstance(value, Gain | ItemShare):
            found |= flatten_row(value, f"{before}{name}_")
        elif isinstance(value, tuple):
            found[f"{before}{name}"] = " ".join(f"{each:g}" for each in value) or None
        else:
            found[f"{before}{name}"] = value
    return found
