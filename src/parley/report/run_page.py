"""The sections of one run on a page: what was found and how sure it is, then the details, then how
it was played. Templates lay out what these functions find."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, get_args

from markupsafe import Markup

from parley.audit.summary import AuditSummary
from parley.config.task_catalogue import installed_task, summarise_task
from parley.money import Total, total_cost
from parley.options import OPTIONS, STORED, RunOptions
from parley.report.fairness import PLACE, describe_fairness, summarise_fairness
from parley.report.headline import join_words, write_headline
from parley.report.html import render
from parley.report.model_signs import ModelSigns
from parley.report.notable import LONGEST, choose_matches
from parley.report.page_options import PageOptions
from parley.report.people import describe_people
from parley.report.text_room import TextRoom
from parley.results.compared_runs import ComparisonResult
from parley.results.match_notes import Mark
from parley.results.part import Part, RunPart, SectionName
from parley.results.parts.resolved_pairs import describe_resolved
from parley.results.parts.results import score_table
from parley.results.result import RunResult
from parley.results.transcript import READ_BEFORE
from parley.results.types import Figure
from parley.store import read_run
from parley.store.config import Config
from parley.store.types import RunInfo
from parley.tables import Table, plural


class RunRoom:
    """The bytes that a run may still take on its page."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.left_out: list[str] = []  # names of what did not fit

    def fits(self, text: Markup) -> bool:
        return len(text.encode()) <= self.left

    def take(self, text: Markup) -> Markup:
        """A text that is shown in any case."""
        self.left -= len(text.encode())
        return text

    def keep(self, name: str, text: Markup) -> Markup | None:
        """A text that is shown if it fits."""
        if not self.fits(text):
            self.left_out.append(name)
            return None
        return self.take(text)


def render_run(
    result: RunResult,
    options: PageOptions,
    anchor: str = "s0",
    level: int = 1,
    compared: ComparisonResult | None = None,
) -> Markup:
    """A run as an article. `level` is that of its heading; 0: the page has one. `compared` is what
    a comparison found in this run alone."""
    result.compute()  # all parts from one reading of the file
    audit = options.audit_of(result.ref)
    with read_run(result.ref) as reader:
        info = reader.info
        draw = partial(render, signs=options.signs or ModelSigns.of(info.config.contestants))
        room = RunRoom(options.room)
        main = room.take(
            draw(
                "run_main.html",
                anchor=anchor,
                level=level,
                heading=describe_heading(info),
                main=describe_main(result),
                facts=list_facts(result, info, audit),
                parts=list_comparisons(compared, f"{anchor}-own") if compared else [],
            )
        )
        fair = describe_fairness(result, reader, audit, f"{anchor}{PLACE}")
        fairness = room.take(draw("fairness.html", fairness=fair))
        setup = room.take(draw("setup.html", setup=describe_setup(result, info)))
        people = describe_people({info.id: info.ref}, f"{anchor}-people")
        voted = room.take(draw("people.html", people=people)) if people else ""
        before, after = list[Markup](), list[Markup]()  # of the section on fairness
        for part in list_parts(result, anchor):
            if kept := room.keep(part.name, draw("part.html", part=part)):
                (before if part.section in ("result", "task") else after).append(kept)
        choice = choose_matches(result, reader, options.matches)
        shown, aborted = list[Markup](), choice.aborted
        for match in choice.read(reader):
            drawn = draw(
                "notable_match.html",
                reason=match.reason,
                found=match.transcript,
                anchor=f"{anchor}-matches",
                room=TextRoom(0, LONGEST),  # what is too long is left out, not folded
                read_before=READ_BEFORE,
            )
            if not room.fits(drawn):
                break
            shown.append(room.take(drawn))
            aborted -= match.is_aborted
    matches = draw(
        "notable_matches.html",
        shown=shown,
        all=choice.all,
        aborted=aborted,
        too_large=len(choice.reasons) - len(shown),
        run=info.id,
        anchor=f"{anchor}-matches",
    )
    return draw(
        "run_article.html",
        anchor=anchor,
        run=info.id,
        main=main,
        before=before,
        fairness=fairness,
        after=after,
        left_out=room.left_out,
        people=voted,
        matches=matches,
        setup=setup,
    )


# The first screen.


class RunHeading(NamedTuple):
    """The heading of a run."""

    id: str
    title: str
    words: str  # what the task is, if it is installed


def describe_heading(info: RunInfo) -> RunHeading:
    """The id, the task and the name of a run."""
    task = info.config.task
    return RunHeading(info.id, title_run(task, info.config.name), describe_task(task))


def describe_task(task: str) -> str:
    """What a task is, if it is installed."""
    kind = installed_task(task)
    return summarise_task(kind) if kind else ""


@cache
def name_task(task: str) -> str:
    """The name of a task in a heading, spelled as in its class (`OSTasks`: OS tasks)."""
    first, *others = task.split("_")
    kind = installed_task(task)
    spelled = kind.__name__ if kind else ""
    is_same = spelled.lower() == task.replace("_", "")
    return " ".join([spelled[: len(first)] if is_same else first.capitalize(), *others])


def title_run(task: str, name: str | None) -> str:
    """The title of a run: its task, and its name if it has one."""
    return f"{name_task(task)}: {name}" if name else name_task(task)


class KeyFacts(NamedTuple):
    """Facts about a run, in one line."""

    chips: Sequence[Mark]
    models: int
    matches: int  # that have ended
    calls: int
    cost: Total
    day: str
    lists_matches: bool  # the page has a section of matches


def list_facts(result: RunResult, info: RunInfo, audit: AuditSummary) -> KeyFacts:
    """Chips and counts."""
    run, cost = result.head.run, result.part("cost").cost
    return KeyFacts(
        list_chips(result, audit),
        len(info.config.contestants),
        run.matches.done,
        sum(row.calls for row in cost),
        total_cost(vars(row) for row in cost),
        run.created[:10],
        bool(run.matches.done),
    )


def list_chips(result: RunResult, audit: AuditSummary) -> list[Mark]:
    """Fairness, completeness and violations."""
    broken = sum(each.count for each in result.head.violations)
    is_done = result.state == "done"
    return [
        summarise_fairness(audit),
        Mark("✓ complete", "good") if is_done else Mark(f"! {result.state}", "warn"),
        Mark(plural(broken, "violation"), "warn" if broken else "good", PLACE),
    ]


# The result.


@dataclass(frozen=True)
class MainResult:
    """What every page of a run begins with."""

    lead: str
    cautions: Sequence[str]  # what to know before any number
    figures: Sequence[Figure]
    pair_costs: Sequence[str]
    all_metrics: Table | None
    pair_figures: Sequence[Figure]
    pairs: Sequence[Table]


def describe_main(result: RunResult) -> MainResult:
    """What was found and how sure it is."""
    rows = result.part("results") or ()
    metrics = list(dict.fromkeys(row.metric for row in rows))
    return MainResult(
        write_lead(result),
        result.cautions(),
        result.figures("results"),
        [as_sentence(each) for each in describe_resolved(result.part("resolved_pairs"))],
        score_table(rows, result.style, metrics) if rows else None,
        result.figures("pairs"),
        result.tables("pairs"),
    )


def write_lead(result: RunResult) -> str:
    """What was found, in a sentence or two."""
    return " ".join(write_headline(result))


def as_sentence(text: str) -> str:
    """A line of notes as a sentence of its own."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


# Parts.


@dataclass(frozen=True)
class ShownPart:
    """A part as a page shows it."""

    name: str
    section: str
    anchor: str
    title: str
    words: str
    figures: Sequence[Figure]
    tables: Sequence[Table]
    folded: Sequence[Table]
    summary: str  # of what is folded


def ordered_parts(result: RunResult) -> list[RunPart]:
    """The parts of a run other than the main ones, in the order of sections."""
    order = get_args(SectionName)
    parts = [part for part in result.parts.values() if part.name not in ("results", "pairs")]
    return sorted(parts, key=lambda part: order.index(part.section))


def list_parts(result: RunResult, anchor: str) -> list[ShownPart]:
    """The parts of a run that a page shows, then those of a task that is not installed, as the file
    has them."""
    found = [show_part(result, part, anchor) for part in ordered_parts(result)]
    for name in result.stored:
        title = f"{name} (as stored in the file)"
        figures, tables = result.figures(name), list_tables(result, name)
        if figures or tables:
            place = f"{anchor}-{name}"
            found.append(ShownPart(name, "task", place, title, "", figures, tables, (), ""))
    return [part for part in found if part is not None]


def list_comparisons(found: ComparisonResult, anchor: str) -> list[ShownPart]:
    """The parts of a comparison that a page shows."""
    shown = [show_part(found, part, anchor) for part in found.page_parts]
    return [part for part in shown if part is not None]


def show_part(
    result: RunResult | ComparisonResult, part: Part[Any, Any], anchor: str
) -> ShownPart | None:
    """A part with its words, its figures and its tables, which are folded where there is a figure.
    None if it says nothing, or nothing that other parts do not say."""
    words, figures = result.words(part.name), result.figures(part.name)
    tables = list_tables(result, part.name)
    if not (figures or words or (tables and not part.needs_figure)):
        return None
    opened = 0 if figures else len(tables) if part.open_tables is None else part.open_tables
    folded = tables[opened:]
    summary = plural(len(folded), "more table") if opened else "As a table"
    return ShownPart(
        part.name,
        part.section,
        f"{anchor}-{part.name}",
        part.title,
        words,
        figures,
        tables[:opened],
        folded,
        "The same as a table" if figures else summary,
    )


def list_tables(result: RunResult | ComparisonResult, name: str) -> list[Table]:
    """The tables of a part that have rows."""
    return [table for table in result.tables(name) if table.rows]


# How it was played.


@dataclass(frozen=True)
class Setup:
    """How a run was played, and how to check and repeat it."""

    task: str
    plan: str
    dataset: str
    repeat: str  # a command
    check: str  # a command
    signature: str
    models: Sequence[str]
    prompts: dict[str, str]


def describe_setup(result: RunResult, info: RunInfo) -> Setup:
    """Parameters, models, prompts, the signature once, and the commands to check and repeat it."""
    config, models = info.config, result.head.run.models
    parameters = ", ".join(f"{name}={value}" for name, value in config.params.items())
    scores = result.part("results")
    return Setup(
        f"{config.task}: {parameters}" if parameters else config.task,
        describe_plan(config),
        str(config.dataset or ""),
        repeat_command(config),
        f"parley audit {info.id}",
        scores[0].signature if scores else "",
        [describe_played_model(alias, models) for alias in models],
        info.identity["texts"],
    )


def describe_played_model(alias: str, models: Any) -> str:
    """A model with its options."""
    options = dict(models[alias])
    name = options.pop("model", "")
    said = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{alias}: {name}{f' ({said})' if said else ''}"


def describe_plan(config: Config) -> str:
    """Who met whom, how often, with which random seed."""
    words = [str(config.plan or "default plan")]
    if config.repeats:
        words.append(plural(config.repeats, "repeat"))
    if config.items:
        words.append(plural(config.items, "item"))
    return join_words([", ".join(words), f"random seed {config.seed}"])


def repeat_command(config: Config) -> str:
    """The command that plays the same again; empty if no flags say how the run was played."""
    if config.evolve or config.prompts or config.rejudged or config.screening:
        return ""
    words = ["parley", "run", config.task]
    for alias in config.contestants:
        words += ["-m", name_played(alias, config)]
    for role, aliases in config.instruments.items():
        for alias in aliases:
            words += ["--role", f"{role}={name_played(alias, config)}"]
    for alias, options in config.models.items():
        for key, value in options.items():
            if key != "model":
                words += ["-M", f"{alias}.{key}={value}"]
    for key, value in config.params.items():
        words += ["--set", f"{key}={format_setting(value)}"]
    if config.dataset:
        words += ["--dataset", str(config.dataset)]
    for name, column in config.columns.items():
        words += ["--column", f"{name}={format_setting(column)}"]
    for alias in config.excluded:
        words += ["--exclude", alias]
    given = list_given_options(config)
    for name, option in OPTIONS.items():
        value = given.get(name)
        if value not in (None, getattr(RunOptions, name), *option.facts.reserved):
            words += [option.flag] if value is True else [option.flag, str(value)]
    return shlex.join(words)


def format_setting(value: Any) -> str:
    """A value as `--set` and `--column` take it: the elements of a list with commas between."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def list_given_options(config: Config) -> dict[str, Any]:
    """The options that decide what is played; limits and the name of a run do not."""
    given = {name: getattr(config, name) for name in STORED if not OPTIONS[name].facts.resume}
    given["name"] = None
    if config.adversary:
        given["adversary"] = name_played(config.adversary, config)
    if config.stop:
        given |= vars(config.stop)
        given |= {"repeats": None, "max_blocks": config.max_blocks}
        given["until_stable"] = config.plan != "race"
    return given


def name_played(alias: str, config: Config) -> str:
    """A model as commands take it."""
    return f"{alias}={config.models[alias]['model']}"
