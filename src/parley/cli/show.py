"""`parley show`: a run's results, or a match as each seat saw it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import orjson

from parley.cli.playing import print_result
from parley.cli.shared_options import as_json, in_format, in_store, with_task
from parley.config.prices import PriceList
from parley.config.task_catalogue import installed_task, task_class, task_names
from parley.errors import UsageError, unknown_name
from parley.results.part import general_parts, parts_of_task
from parley.results.result import Result
from parley.results.transcript import rebuild_views
from parley.rules.pool import Seat, as_message
from parley.statistics.intervals import METHODS
from parley.store import RunReader, find_run, read_run
from parley.tables import make_visible, shorten

LONG = 200  # letters of a note's value


def part_names() -> list[str]:
    """The parts that installed tasks and all runs may have."""
    tasks = [installed_task(name) for name in task_names()]
    own = [part.name for task in tasks for part in parts_of_task(task)]
    return sorted({*(part.name for part in general_parts()), *own})


class PartName(click.ParamType[str]):
    """The name of a part; which there are depends on the run."""

    name = "part"

    @property
    def choices(self) -> list[str]:
        return part_names()


@click.command()
@click.argument("run")
@click.argument("match", type=click.IntRange(1, 2**31), required=False)
@click.option(
    "--part",
    type=PartName(),
    default="results",
    help="Print one part of the results; `parley tasks NAME` lists those of a task.",
)
@click.option(
    "--metrics",
    default="",
    metavar="all|NAME,…",
    help="Show these metrics (default: the one that each role is ranked by).",
)
@click.option(
    "--interval",
    type=click.Choice(METHODS),
    default="block",
    help="Student's t over blocks, or a bootstrap.",
)
@click.option(
    "--scores", metavar="FILE.csv", help="Scores from elsewhere, by alias, for --part external."
)
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
    task: str | None,
    store: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Print the results of RUN; with MATCH, its transcript as each seat saw it."""
    ref = find_run(run, store)
    if scores is not None and (match is not None or (part != "external" and not as_json)):
        raise UsageError("--scores is for --part external, or for --json")
    if metrics and (match is not None or part != "results"):
        raise UsageError(
            "--metrics chooses what the main table shows; JSON and CSV have all of them"
        )
    if match is None:
        with read_run(ref) as reader:
            played = reader.info.config.task
        kind = task_class(task) if task else installed_task(played)
        result = Result(ref, interval, scores=scores, look_up=PriceList().find, task=kind)
        if part in result.parts or part in result.stored or as_json:
            print_result(result, as_json, form, part, metrics)
        elif part in part_names():
            click.echo("" if form == "csv" else f"{played} has no part {part!r}")
        else:
            raise unknown_name("part", part, [*result.parts, *result.stored])
        return
    with read_run(ref) as reader:
        facts = describe_match(reader, match)
    if as_json:
        click.echo(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
        return
    item = f", item {facts['item']}" if facts["item"] is not None else ""
    click.echo(
        f"match {match}{item}: {facts['state']}"
        + (f" ({facts['reason']})" if facts["reason"] else "")
    )
    for seat, view in facts["views"].items():
        click.echo(f"\n══ {Seat.of(seat)}: {facts['seats'][seat]} " + "═" * 40)
        for turn in view:
            click.echo(
                f"\n{'→' if turn['role'] == 'user' else '←'} "
                + make_visible(turn["content"]).replace("\n", "\n  ")
            )
        click.echo(f"\nscores: {facts['scores'].get(seat, {})}")
    for note in facts["notes"]:
        click.echo(make_visible(f"note: round {note['round']}, {format_note(note)}"))
    for violation in facts["violations"]:
        line = "violation: round {round}, {seat}: {kind} ({detail}), {outcome}".format(**violation)
        click.echo(make_visible(line))


def format_note(note: Mapping[str, Any]) -> str:
    """A note in one line: verdicts on programs and votes of judges in words, the rest as it is."""
    rest = {name: value for name, value in note.items() if name != "round"}
    parts = []
    if isinstance(faults := rest.get("faults"), list) and "passed" in rest:
        passed, end, guarantee = rest.pop("passed"), rest.pop("end", ""), rest.pop("guarantee", "")
        first = next(
            (
                f" test {n} of {len(faults)}: {shorten(fault, LONG)}"
                for n, fault in enumerate(faults, 1)
                if fault
            ),
            "",
        )
        parts.append("passed" if passed else f"failed{first}")
        parts += [
            f"{name} {value}" for name, value in (("end", end), ("guarantee", guarantee)) if value
        ]
        del rest["faults"]
    if isinstance(votes := rest.get("votes"), dict) and all(
        isinstance(given, dict) for given in votes.values()
    ):
        parts += [
            f"{judge} votes "
            + ", ".join(f"{seat} {format_vote(vote)}" for seat, vote in votes[judge].items())
            for judge in votes
        ]
        del rest["votes"]
    return "; ".join(
        [*(f"{name} {format_note_value(value)}" for name, value in rest.items()), *parts]
    )


def format_vote(vote: Any) -> str:
    """A vote without the judge's reasons."""
    return format_note_value(vote["score"] if isinstance(vote, dict) and "score" in vote else vote)


def format_note_value(value: Any) -> str:
    """A value of a note, shortened."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {format_note_value(each)}" for name, each in value.items())
    return shorten(value if isinstance(value, str) else orjson.dumps(value).decode(), LONG)


def describe_match(reader: RunReader, number: int) -> dict[str, Any]:
    """A match as data: seats, replies by round, what each seat saw, scores, violations, notes."""
    match = reader.match(number)
    if match is None:
        raise UsageError(
            f"{reader.info.id} has no match {number}; it has 1 to {reader.info.planned}"
        )
    calls, messages = reader.calls(number), reader.messages(number)
    views, _ = rebuild_views(messages, calls, match.seats)
    scores = reader.scores_of(number)
    rounds: dict[int, list[dict[str, Any]]] = {}
    for call in calls:
        said = {
            "seat": call.seat.key,
            "attempt": call.attempt,
            "reply": call.reply.content,
            "reasoning": call.reply.reasoning,
        }
        rounds.setdefault(call.round, []).append({**said, "finish": call.reply.finish})
    return {
        "number": number,
        "state": match.state,
        "reason": match.reason,
        "item": match.item,
        "seats": {seat.key: alias for seat, alias in match.seats.items()},
        "rounds": [
            {"round": round, "replies": replies} for round, replies in sorted(rounds.items())
        ],
        "views": {seat: [as_message(turn) for turn in view.turns] for seat, view in views.items()},
        "scores": {seat.key: by for seat, by in scores.items()},
        "violations": [each.to_dict() for each in reader.violations(number)],
        "notes": [note.to_dict() for note in reader.notes_of(number)],
    }
