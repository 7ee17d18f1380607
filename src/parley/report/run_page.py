"""The sections of one run on a page: what was found and how sure it is, then the details, then how
it was played."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, get_args

from parley.audit.summary import AuditSummary
from parley.config.task_catalogue import installed_task, summarise_task
from parley.money import total_cost
from parley.report.fairness import draw_fairness, summarise_fairness
from parley.report.headline import join_words, write_headline
from parley.report.looks import Looks
from parley.report.matches import draw_matches
from parley.report.notable import MatchSelection, select_matches
from parley.report.page_options import PageOptions
from parley.report.people import draw_people
from parley.report.sections import NEGATIVE, draw_each_figure, draw_legends, draw_table
from parley.report.svg import Clean, draw
from parley.results.compared_runs import ComparisonPart, ComparisonResult
from parley.results.part import Part, RunPart, SectionName
from parley.results.parts.main_table import (
    score_table,
)
from parley.results.parts.resolved_pairs import describe_resolved
from parley.results.result import RunResult
from parley.store import RunInfo, read_run
from parley.store.config import Config
from parley.tables import mark_code, plural

SPELLINGS = {"kieval": "KIEval", "os": "OS", "qa": "QA"}  # names that are not plain words
MOST_COMPARED = 12  # models in the table of who beats whom


def draw_run(
    result: RunResult,
    at: int,
    clean: Clean,
    whole: bool,
    level: int,
    options: PageOptions,
    heading: bool = True,
    looks: Looks | None = None,
    compared: str = "",
) -> str:
    """A run: an article with its own heading, unless the page has one. `whole` is false if the page
    would be too large. `looks` are those of all models on the page, by default of this run's;
    `compared` has sections that compare accuracy and interviews, which follow the result."""
    result.compute()  # all parts from one reading of the file
    audit = options.audit_of(result.ref)
    with read_run(result.ref) as reader:
        info = reader.info
        looks = looks or Looks.of(info.config.contestants)
        matches = MatchSelection()
        if whole:
            matches = select_matches(result, reader, options.matches, options.room)
        fairness = draw_fairness(result, reader, audit, f"s{at}-fairness", clean)
    parts = [
        draw_heading(info, clean, level) if heading else "",
        draw_lead(result, clean),
        draw_facts(result, info, audit, at, clean, whole),
        draw_cautions(result, clean),
        draw_result(result, looks, clean),
        draw_comparison(result, looks, clean),
        compared,
    ]
    if whole:
        ordered = ordered_parts(result)
        first = [part for part in ordered if part.section in ("result", "task")]
        parts += [draw_part(result, part, f"s{at}", looks, clean) for part in first]
        parts += [draw_stored(result, name, at, looks, clean) for name in result.stored]
        parts.append(fairness)
        rest = [part for part in ordered if part not in first]
        parts += [draw_part(result, part, f"s{at}", looks, clean) for part in rest]
        parts.append(draw_people({info.id: info.ref}, f"s{at}-people", clean))
        parts.append(draw_matches(matches, info.id, f"s{at}-matches", looks, clean))
    else:
        more = f"Other parts of this run are left out here: parley show {info.id} --part NAME"
        parts += [fairness, f'<p class="note">{escape(clean(more))}</p>']
    parts.append(draw_setup(result, info, clean))
    return f'<article id="s{at}">{"".join(parts)}</article>'


# The first screen.


def draw_heading(info: RunInfo, clean: Clean, level: int) -> str:
    """The task and the name of a run."""
    title = title_run(info.config.task, info.config.name)
    return (
        f'<header><p class="eyebrow"><bdi>{escape(clean(info.id))}</bdi></p>'
        f"<h{level}><bdi>{escape(clean(title))}</bdi></h{level}>"
        f"{draw_task_words(info.config.task, clean)}</header>"
    )


def draw_lead(result: RunResult, clean: Clean) -> str:
    """What was found, in a sentence or two."""
    lead = " ".join(write_headline(result))
    return f'<p class="lead"><bdi>{escape(NEGATIVE.sub("−", clean(lead)))}</bdi></p>'


def draw_facts(
    result: RunResult, info: RunInfo, audit: AuditSummary, at: int, clean: Clean, whole: bool
) -> str:
    """Facts about the run, in one line."""
    found = list_facts(result, info, audit, at, clean, whole)
    facts = "".join(f"<li>{fact}</li>" for fact in found)
    return f'<ul class="facts">{facts}</ul>'


def draw_task_words(task: str, clean: Clean) -> str:
    """What the task is, if it is installed."""
    kind = installed_task(task)
    words = summarise_task(kind) if kind else ""
    return f'<p class="why">{escape(clean(words))}</p>' if words else ""


def name_task(task: str) -> str:
    """The name of a task or a role at the start of a heading."""
    first, *others = task.split("_")
    return " ".join([SPELLINGS.get(first, first.capitalize()), *others])


def title_run(task: str, name: str | None) -> str:
    """The title of a run: its task, and its name if it has one."""
    return f"{name_task(task)}: {name}" if name else name_task(task)


def list_facts(
    result: RunResult, info: RunInfo, audit: AuditSummary, at: int, clean: Clean, whole: bool
) -> Iterable[str]:
    """Chips and counts."""
    run = result.head.run
    yield from list_chips(result, audit, at)
    yield count_things(len(info.config.contestants), "model")
    played = count_things(run.matches.done, "match", "matches")
    yield f'<a href="#s{at}-matches">{played}</a>' if whole else played
    cost = result.part("cost").cost
    yield count_things(sum(row.calls for row in cost), "call")
    total = total_cost(vars(row) for row in cost)
    yield "cost unknown" if total.at_least is None else f"<strong>{total}</strong> USD"
    yield escape(clean(run.created[:10]))


def list_chips(result: RunResult, audit: AuditSummary, at: int) -> Iterable[str]:
    """Fairness, completeness and violations."""
    kind, verdict = summarise_fairness(audit)
    yield f'<a class="chip {kind}" href="#s{at}-fairness">{escape(verdict)}</a>'
    if result.state == "done":
        yield '<span class="chip good">✓ complete</span>'
    else:
        yield f'<span class="chip warn">! {escape(result.state)}</span>'
    broken = sum(each.count for each in result.head.violations)
    kind = "warn" if broken else "good"
    yield f'<a class="chip {kind}" href="#s{at}-fairness">{plural(broken, "violation")}</a>'


def count_things(number: int, one: str, many: str = "") -> str:
    """A count with its number set off."""
    digits, word = plural(number, one, many).split(" ", 1)
    return f"<strong>{digits}</strong> {word}"


def draw_cautions(result: RunResult, clean: Clean) -> str:
    """What to know before any number."""
    lines = result.cautions()
    if not lines:
        return ""
    items = "".join(f"<li><bdi>{mark_code(escape(clean(line)))}</bdi></li>" for line in lines)
    return f'<section class="card caution"><h2>Read this first</h2><ul>{items}</ul></section>'


# The result.


def draw_result(result: RunResult, looks: Looks, clean: Clean) -> str:
    """Models with intervals drawn, for each role and the metric it is ranked by."""
    rows, style = result.part("results") or (), result.style
    if not rows:
        return ""
    drawn = draw_main_figures(result, "results", looks, clean)
    metrics = list(dict.fromkeys(row.metric for row in rows))
    everything = draw_table(score_table(rows, style, metrics), "All metrics", clean)
    return (
        f'<section class="card"><h2>Result</h2>{drawn}{draw_pair_cost(result, clean)}'
        f"<details><summary>All metrics as a table</summary>{everything}</details></section>"
    )


def draw_main_figures(result: RunResult, part: str, looks: Looks, clean: Clean) -> str:
    """The figures of a main part, one for each role, with what to know to read them."""
    figures = result.figures(part)
    return "".join(draw(each, clean, looks) + draw_legends([each], clean) for each in figures)


def draw_pair_cost(result: RunResult, clean: Clean) -> str:
    """How many pairs are resolved, and what each of them cost."""
    said = describe_resolved(result.part("resolved_pairs"))
    return "".join(f'<p class="note">{escape(clean(as_sentence(each)))}</p>' for each in said)


def as_sentence(text: str) -> str:
    """A line of notes as a sentence of its own."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def draw_comparison(result: RunResult, looks: Looks, clean: Clean) -> str:
    """Who beats whom, as a table of all pairs; more models than fit stand in the list of pairs."""
    listed = "".join(draw_table(table, "Pairs", clean) for table in result.tables("pairs"))
    if not listed:
        return ""
    drawn = draw_main_figures(result, "pairs", looks, clean)
    return (
        f'<section class="card"><h2>Who beats whom</h2>{drawn}'
        f"<details><summary>All pairs with intervals and p-values</summary>{listed}</details>"
        "</section>"
    )


# Parts.


def ordered_parts(result: RunResult) -> list[RunPart]:
    """The parts of a run other than the main ones, in the order of sections."""
    order = get_args(SectionName)
    parts = [part for part in result.parts.values() if part.name not in ("results", "pairs")]
    return sorted(parts, key=lambda part: order.index(part.section))


def draw_part(
    result: RunResult | ComparisonResult,
    part: Part[Any, Any],
    before: str,
    looks: Looks,
    clean: Clean,
) -> str:
    """A part: its words and figures, then its tables, which are folded where there is a figure.
    `before` is the first part of its anchor."""
    name, words = part.name, result.words(part.name)
    tables = [table for table in result.tables(name) if table.rows]
    figures = draw_each_figure(result.figures(name), clean, looks)
    if not figures and not words and (not tables or name == "efficiency"):
        return ""  # without a figure, the parts on scores and on cost say the same
    drawn = [draw_table(table, part.title, clean) for table in tables]
    if figures:
        listed = draw_legends(result.figures(name), clean)
        listed += fold("The same as a table", drawn)
    elif name == "cost":
        listed = fold("Calls and tokens as a table", drawn)
    elif isinstance(part, ComparisonPart):
        listed = "".join(drawn)
    else:
        listed = "".join(drawn[:1]) + fold(plural(len(drawn) - 1, "more table"), drawn[1:])
    said = f'<p class="why">{mark_code(escape(clean(words)))}</p>' if words else ""
    return (
        f'<section class="card" id="{escape(before)}-{escape(name)}">'
        f"<h2>{escape(clean(part.title))}</h2>{said}{figures}{listed}</section>"
    )


def has_content(result: RunResult | ComparisonResult, part: Part[Any, Any]) -> bool:
    """Whether there is anything to draw of a part."""
    tables = any(table.rows for table in result.tables(part.name))
    return tables or bool(result.words(part.name) or result.figures(part.name))


def fold(summary: str, parts: Sequence[str]) -> str:
    body = f"<details><summary>{summary}</summary>{''.join(parts)}</details>"
    return body if parts else ""


def draw_stored(result: RunResult, name: str, at: int, looks: Looks, clean: Clean) -> str:
    """A part of a task that is not installed, as the file has it."""
    figures = draw_each_figure(result.figures(name), clean, looks)
    tables = "".join(draw_table(table, name, clean) for table in result.tables(name) if table.rows)
    title = escape(clean(f"{name} (as stored in the file)"))
    head = f'<section class="card" id="s{at}-{escape(name)}"><h2>{title}</h2>'
    return f"{head}{figures}{tables}</section>" if figures or tables else ""


# How it was played.


def draw_setup(result: RunResult, info: RunInfo, clean: Clean) -> str:
    """Parameters, models, prompts, the signature once, and the commands to check and repeat it."""
    config, head = info.config, result.head
    parameters = ", ".join(f"{name}={value}" for name, value in config.params.items())
    models = "".join(
        f"<li><bdi>{escape(clean(describe_played_model(alias, head.run.models)))}</bdi></li>"
        for alias in head.run.models
    )
    facts = {
        "Task": f"{config.task}{f': {parameters}' if parameters else ''}",
        "Plan": describe_plan(config),
        "Dataset": str(config.dataset or ""),
        "Repeat it": repeat_command(config),
        "Check it": f"parley audit {info.id}",
    }
    rows = "".join(
        f"<dt>{name}</dt><dd>{mono(name, clean(value))}</dd>"
        for name, value in facts.items()
        if value
    )
    signature = (result.part("results") or [None])[0]
    if signature is not None:
        rows += f'<dt>Signature</dt><dd class="mono">{escape(clean(signature.signature))}</dd>'
    texts = info.identity["texts"]
    prompts = "".join(
        f"<h3>{escape(clean(name))}</h3><pre><bdi>{escape(clean(text))}</bdi></pre>"
        for name, text in texts.items()
    )
    folded = f"<details><summary>Prompts ({len(texts)})</summary>{prompts}</details>"
    return (
        f'<section class="card"><h2>How it was played</h2><dl>{rows}'
        f"<dt>Models</dt><dd><ul>{models}</ul></dd></dl>{folded if texts else ''}</section>"
    )


def mono(name: str, text: str) -> str:
    return f"<code>{escape(text)}</code>" if name.endswith(" it") else f"<bdi>{escape(text)}</bdi>"


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
        options = config.models[alias]
        words += ["-m", f"{alias}={options['model']}"]
    for role, aliases in config.instruments.items():
        for alias in [aliases] if isinstance(aliases, str) else aliases:
            words += ["--role", f"{role}={alias}={config.models[alias]['model']}"]
    for alias, options in config.models.items():
        for key, value in options.items():
            if key != "model":
                words += ["-M", f"{alias}.{key}={value}"]
    for key, value in config.params.items():
        words += ["--set", f"{key}={value}"]
    if config.dataset:
        words += ["--dataset", str(config.dataset)]
    for name, column in config.columns.items():
        listed = column if isinstance(column, str) else ",".join(map(str, column))
        words += ["--column", f"{name}={listed}"]
    for alias in config.excluded:
        words += ["--exclude", alias]
    stop = config.stop
    if stop and config.plan != "race":
        words.append("--until-stable")
    adversary = config.adversary
    for flag, value in (
        ("--plan", config.plan),
        ("--adversary", adversary and f"{adversary}={config.models[adversary]['model']}"),
        ("--half-width", stop and stop.half_width),
        ("--alpha", stop and stop.alpha),
        ("--target", stop and stop.target),
        ("--top", stop and stop.top),
        ("--max-blocks", stop and config.max_blocks),
        ("--repeats", None if stop else config.repeats),
        ("--items", config.items),
        ("--seats", config.seats),
        ("--seed", config.seed),
    ):
        if value is not None:
            words += [flag, str(value)]
    return shlex.join(words)
