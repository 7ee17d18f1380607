"""`parley annotate`: people compare conversations and vote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click
import orjson

from parley.annotation.ballots import invite_annotator, register_annotator
from parley.annotation.pair_sampling import models_in_dataset
from parley.annotation.sheets import format_of_runs
from parley.annotation.study import (
    DEFAULT_PAIRS,
    find_study,
    open_runs,
    prepare_study,
    summarise_votes,
)
from parley.cli.annotate_terminal import take_votes
from parley.cli.invocation import command_name
from parley.cli.progress_line import say
from parley.cli.shared_options import as_json, in_format, in_store
from parley.cli.shell_completion import complete_runs
from parley.errors import UsageError
from parley.store import Study, VoteStore, open_store, open_votes
from parley.tables import Table, format_interval, format_number, plural, terminal_width

ORDER = (
    "with order: share of settled pairs in which most people prefer the "
    "conversation with the higher score"
)
ALONE = (
    "one annotator: every vote counts as it is, and no pair is settled; how far people agree is "
    "known once a second one votes"
)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", shell_complete=complete_runs)
@click.option(
    "--pairs",
    type=click.IntRange(1, 100_000),
    help=f"Pairs in all (default: {DEFAULT_PAIRS}); more can be drawn later.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**62), help="For the draw of pairs and sides (default: 0)."
)
@click.option("--ties", is_flag=True, help="Let people say that both are equally good.")
@click.option(
    "--invite", metavar="NAME", help="Print a new secret for an annotator; an earlier one ends."
)
@click.option("--terminal", is_flag=True, help="Vote here.")
@click.option("--annotator", metavar="NAME", help="Who votes here.")
@click.option(
    "--change",
    type=click.IntRange(1),
    multiple=True,
    metavar="PAIR",
    help="Vote again on a pair, here.",
)
@click.option("--results", "wants_results", is_flag=True, help="Print what the votes say.")
@in_store
@in_format
@as_json
def command(
    runs: tuple[str, ...],
    pairs: int | None,
    seed: int | None,
    ties: bool,
    invite: str | None,
    terminal: bool,
    annotator: str | None,
    change: tuple[int, ...],
    wants_results: bool,
    store: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Let people compare the conversations of RUN… (ids, their beginnings, or paths; one folder).

    Pairs of conversations on one question, by models whose scores differ, are drawn when they are
    first asked for. Every pair gets two votes, and a third by somebody else where they differ.
    Votes are kept beside the runs.

    \b
    parley annotate last --pairs 50                           draw pairs, say how they stand
    parley annotate last --terminal --annotator NAME          vote here, stop with q, go on later
    parley annotate last --terminal --annotator NAME --change 7
    parley annotate last --results
    """
    if (invite is not None) + terminal + wants_results > 1:
        raise UsageError(
            "--invite, --terminal and --results are different things: give one of them"
        )
    if not terminal and (annotator is not None or change):
        raise UsageError("--annotator and --change go with --terminal")
    if terminal and annotator is None:
        raise UsageError("--terminal wants --annotator NAME: who votes?")
    if wants_results and (pairs is not None or seed is not None or ties):
        raise UsageError(
            "--results shows what there is: --pairs, --seed and --ties are for the draw"
        )
    place = open_store(store)
    refs = list(dict.fromkeys(place.find(run) for run in runs))
    if wants_results:
        with open_votes(refs, read_only=True) as votes:
            data = summarise_votes(votes, find_study(votes, refs))
        print_data(data, result_tables(data), form, as_json)
        return
    with open_runs(refs) as found:
        sheet = format_of_runs(found)
        by_id = {reader.info.id: reader.info.ref for reader in found}
    with open_votes(refs) as votes:
        study = prepare_study(votes, refs, pairs, seed, ties)
        count = len(votes.pairs(study))
        if count < (pairs or 0):
            say(
                f"these runs have {plural(count, 'pair')} with different scores, not "
                f"{pairs}: all were drawn"
            )
        if invite is not None:
            token = invite_annotator(votes, study, invite)
            click.echo(
                orjson.dumps({"annotator": invite, "token": token}).decode() if as_json else token
            )
            say("this secret is shown once; who has it votes under this name")
        elif terminal:
            assert annotator is not None
            me = register_annotator(votes, study, annotator)
            take_votes(votes, study, me, sheet, by_id, change)
        else:
            state = summarise_votes(votes, study)
            print_data(state, [pair_table(votes, study)], form, as_json)
            say_progress(state, votes.location)


def print_data(data: dict[str, Any], tables: Sequence[Table], form: str, as_json: bool) -> None:
    """Print tables, or all of it as JSON."""
    if as_json:
        click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
    else:
        click.echo("\n\n".join(table.render(form, terminal_width()) for table in tables))


def pair_table(votes: VoteStore, study: Study) -> Table:
    """How many pairs there are, by dataset and models."""
    counts = Counter(map(models_in_dataset, votes.pairs(study).values()))
    rows = [
        [dataset, " – ".join(models), str(count)]
        for (dataset, models), count in sorted(counts.items())
    ]
    return Table(["dataset", "models", "pairs"], rows, left=2)


def say_progress(data: dict[str, Any], location: str) -> None:
    """Say on stderr how many votes there are, and how many are missing."""
    pairs, votes = data["pairs"], data["votes"]
    there = (
        f"{plural(pairs['drawn'], 'pair')}, {pairs['settled']} settled; "
        f"{plural(votes['given'], 'vote')}"
    )
    say(f"{there}, {votes['wanted']} missing; kept in {location}")
    say(f"vote with: {command_name()} annotate RUN… --terminal --annotator NAME")


def result_tables(data: dict[str, Any]) -> list[Table]:
    """What the votes say."""
    both = zip(data["agreement"], data["kappa"], strict=True)
    rows = [
        [
            each["dataset"] or "overall",
            *estimate_cells(each),
            *estimate_cells(kappa)[:3],
            str(each["missing"]),
        ]
        for each, kappa in both
    ]
    header = [
        "dataset",
        "with order",
        "95% interval",
        "pairs",
        "questions",
        "kappa",
        "95% interval",
        "pairs",
        "not settled",
    ]
    wins = [[each["model"], *estimate_cells(each), str(each["missing"])] for each in data["models"]]
    voters = [
        [each["name"], str(each["votes"]), str(each["changed"])] for each in data["annotators"]
    ]
    among = [[each["first"], each["second"], *estimate_cells(each)] for each in data["between"]]
    usual = ["95% interval", "pairs", "questions"]
    alone = f"\n{ALONE}" if data["single_annotator"] else ""
    tables = [
        Table(header, [*rows[1:], rows[0]], note=f"{ORDER}; intervals over questions{alone}"),
        count_table(data),
        Table(
            ["model", "win rate", *usual, "not settled"],
            wins,
            note="a tie is half a win" if data["ties"] else "",
        ),
        Table(["annotator", "votes", "changed"], voters),
    ]
    return [
        *tables,
        *([Table(["annotator", "and", "kappa", *usual], among, left=2)] if among else []),
    ]


def count_table(data: dict[str, Any]) -> Table:
    """Pairs, votes and conflicts."""
    pairs, votes, found = data["pairs"], data["votes"], data["conflicts"]
    rows = [
        ("pairs drawn", pairs["drawn"]),
        ("pairs settled", pairs["settled"]),
        *([("pairs without a majority", pairs["undecided"])] if data["ties"] else []),
        ("pairs open", pairs["open"]),
        ("votes given", votes["given"]),
        ("votes for side A", votes["for_a"]),
        ("votes for side B", votes["for_b"]),
        *([("votes for neither", votes["for_tie"])] if data["ties"] else []),
        ("votes changed", votes["changed"]),
        ("votes missing", votes["wanted"]),
        ("conflicts", found["found"]),
        ("settled for the order", found["for_the_order"]),
        ("settled against it", found["against_it"]),
        *(
            [("settled as a tie", found["tie"]), ("without a majority", found["undecided"])]
            if data["ties"]
            else []
        ),
        ("conflicts open", found["open"]),
    ]
    return Table(
        ["what", "n"],
        [[what, str(count)] for what, count in rows],
        note="a third vote settles a conflict",
    )


def estimate_cells(each: dict[str, Any]) -> list[str]:
    """An estimate with its interval, and the numbers of pairs and questions."""
    return [
        format_number(each["value"], 3),
        format_interval(each["low"], each["high"], 3),
        str(each["pairs"]),
        str(each["questions"]),
    ]
