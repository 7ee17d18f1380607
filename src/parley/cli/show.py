"""`parley show`: a run's results, its matches, or the transcript of a match."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import click
import orjson

from parley.cli.invocation import command_name
from parley.cli.match_text import format_match, format_seat_view
from parley.cli.playing import print_masked, print_result
from parley.cli.progress_line import say
from parley.cli.shared_options import as_json, in_format, in_store, with_task
from parley.cli.shell_completion import complete_runs
from parley.config.prices import PriceList
from parley.config.task_catalogue import installed_tasks, task_class, task_of_run
from parley.errors import UsageError, unknown_name
from parley.providers._secrets import make_secret_filter
from parley.results.match_json import describe_match
from parley.results.match_list import MatchFilter, list_matches, match_rows, match_table
from parley.results.part import general_parts, usable_parts
from parley.results.result import RunResult
from parley.results.seat_views import find_seat
from parley.results.stored_parts import describe_stored
from parley.results.transcript import TranscriptReader
from parley.statistics.intervals import METHODS
from parley.store import find_run, read_run
from parley.store.types import RunRef
from parley.tables import plural, terminal_width


def part_names() -> list[str]:
    """The parts of every run and those of installed tasks."""
    tasks, _ = installed_tasks()
    own = [part.name for task in tasks.values() for part in usable_parts(task)]
    return sorted({*(part.name for part in general_parts()), *own})


class PartName(click.ParamType[str]):
    """The name of a part; the parts depend on the run."""

    name = "part"

    @property
    def choices(self) -> list[str]:
        return part_names()


@click.command()
@click.argument("run", shell_complete=complete_runs)
@click.argument("match", type=click.IntRange(1, 2**31), required=False)
@click.option(
    "--part",
    type=PartName(),
    default="results",
    help="Print one part of the results (`parley tasks NAME` lists the parts).",
)
@click.option(
    "--metrics",
    default="",
    metavar="all|NAME,…",
    help="Show these metrics (default: the metric by which each role is ranked).",
)
@click.option(
    "--interval",
    type=click.Choice(METHODS),
    default="block",
    help="Choose how confidence intervals over blocks are computed: with Student's t or a "
    "bootstrap. A block is all matches on one item or, in a task without items, of one repeat.",
)
@click.option(
    "--scores",
    metavar="FILE.csv",
    help="Read the models' scores on other benchmarks from this file, by alias (for --part "
    "external).",
)
@click.option("--matches", "listed", is_flag=True, help="List the matches with their scores.")
@click.option("--model", metavar="ALIAS", help="List only matches of this model.")
@click.option("--item", metavar="ID", help="List only matches on this item.")
@click.option(
    "--worst",
    type=click.IntRange(1),
    metavar="N",
    help="List the N matches with the lowest scores, of all models or of --model.",
)
@click.option("--violations", is_flag=True, help="List only matches with violations.")
@click.option("--aborted", is_flag=True, help="List only matches that were not played to the end.")
@click.option("--seat", metavar="NAME", help="Print MATCH exactly as this seat saw it.")
@with_task
@in_store
@in_format
@as_json
def command(
    run: str,
    match: int | None,
    part: str,
    metrics: str,
    interval: str,
    scores: str | None,
    listed: bool,
    model: str | None,
    item: str | None,
    worst: int | None,
    violations: bool,
    aborted: bool,
    seat: str | None,
    task: str | None,
    store: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Print the results of RUN, or with MATCH the transcript of a match, round by round.

    \b
    parley show last --matches --worst 3         the three matches with the lowest scores
    parley show last --matches --model a         the matches of model a
    parley show last 7                           who said what in match 7
    parley show last 7 --seat "Player 2"         match 7 as Player 2 saw it
    """
    ref = find_run(run, store)
    wanted = MatchFilter(model, item, worst, violations, aborted)
    listed = listed or wanted != MatchFilter()
    refuse_useless_options(
        {
            "--scores": scores is not None
            and (match is not None or listed or (part != "external" and not as_json)),
            "--metrics": bool(metrics) and (match is not None or listed or part != "results"),
            "--part": part != "results" and (match is not None or listed),
            "--matches": listed and match is not None,
            "--seat": seat is not None and match is None,
            "--format": form != "text" and match is not None,
        }
    )
    if match is not None:
        print_match(ref, match, seat, as_json)
    elif listed:
        print_matches(ref, run if store is None else ref.location, wanted, form, as_json)
    else:
        print_part(ref, part, metrics, interval, scores, task, form, as_json)


NEEDED = {  # by option: what it can be combined with
    "--scores": "--scores only works with --part external or --json",
    "--metrics": "--metrics only works for the main table: remove it (JSON and CSV contain all "
    "metrics)",
    "--part": (
        "--part prints results of the whole run: remove either --part, or the match number and "
        "the options that list matches"
    ),
    "--matches": "--matches and its filters list several matches: remove them, or remove the "
    "match number",
    "--seat": "--seat needs a match number: parley show RUN N --seat NAME",
    "--format": "--format only works for tables: remove it, or use --json to print the match "
    "as JSON",
}


def refuse_useless_options(found: Mapping[str, bool]) -> None:
    """Refuse options that have no effect; `found` says for each option whether it has none."""
    for option, useless in found.items():
        if useless:
            raise UsageError(NEEDED[option])


def print_part(
    ref: RunRef,
    part: str,
    metrics: str,
    interval: str,
    scores: str | None,
    task: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Print a part of the results on stdout."""
    with read_run(ref) as reader:
        played, installed = reader.info.config.task, task_of_run(reader.info)
    kind = task_class(task) if task else installed
    result = RunResult(ref, interval, scores=scores, look_up=PriceList().find, task=kind)
    if part in result.parts or part in result.stored or as_json:
        print_result(result, as_json, form, part, metrics)
        if form == "csv" and part in result.stored:  # CSV has no place for it
            say(describe_stored(result.stored[part]))
    elif part in part_names():
        click.echo(
            ""
            if form == "csv"
            else f"this run of the task `{played}` has no results for part `{part}`"
        )
    else:
        raise unknown_name("part", part, [*result.parts, *result.stored])


def print_match(ref: RunRef, number: int, seat: str | None, as_json: bool) -> None:
    """Print the transcript of a match on stdout."""
    with read_run(ref) as reader:
        match = reader.matches.find(number)
        if match is None:
            raise UsageError(
                f"{reader.info.id} has no match {number}: give a number from 1 to "
                f"{reader.info.planned}"
            )
        chosen = find_seat(match, seat) if seat is not None else None
        if as_json:
            facts = describe_match(reader, match)
            if chosen is not None:
                facts["views"] = {chosen.key: facts["views"][chosen.key]}
            print_masked(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
            return
        mask, width, id = make_secret_filter(), terminal_width(), reader.info.id
        matches = TranscriptReader(reader, mask, PriceList().find)
        found = matches.read(match)
        if chosen is None:
            print_masked(format_match(found, id, width))
        else:
            turns = matches.read_seat(match, chosen)
            print_masked(format_seat_view(found, chosen, turns, id, width))


def print_matches(ref: RunRef, run: str, wanted: MatchFilter, form: str, as_json: bool) -> None:
    """Print a list of matches on stdout, and the command that shows one of them on stderr."""
    with read_run(ref) as reader:
        found = list_matches(reader, wanted)
        counts, info = reader.matches.counts(), reader.info
        roles = [name for name, kind in info.identity["roles"].items() if kind == "contestant"]
    if as_json:
        data = [each.to_dict() for each in found]
        print_masked(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
        return
    if form == "csv":
        print_masked(match_rows(found).render("csv"))
        return
    if not found:
        count = plural(sum(counts.values()), "match", "matches")
        say(f"no match fits these filters; the whole run has {count}")
        return
    table = match_table(found, info.identity["task"], len(roles) > 1)
    print_masked(table.render(form, terminal_width()))
    say(f"read one of them with: {command_name()} show {shlex.quote(run)} {found[0].row.number}")
