"""`parley annotate`: people compare conversations and vote."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click
import orjson

from parley.annotation.pair_ballots import end_invitation as end_invitation_of
from parley.annotation.pair_ballots import invite_annotator, register_annotator
from parley.annotation.pair_sampling import models_in_dataset
from parley.annotation.sheets import format_of_runs
from parley.annotation.study import (
    DEFAULT_PAIRS,
    find_study,
    open_runs,
    prepare_study,
    summarise_votes,
)
from parley.annotation.verdict_ballots import asks_people
from parley.cli.annotate_serving import EARLIER_LINK, LOOPBACK, PersonalLink, serve_voters
from parley.cli.annotate_terminal import take_votes
from parley.cli.annotate_verdicts import (
    end_link_of_judge,
    invite_judge,
    print_verdicts,
    take_verdicts,
)
from parley.cli.invocation import command_name
from parley.cli.progress_line import say
from parley.cli.shared_options import as_json, in_format, in_store
from parley.cli.shell_completion import complete_runs
from parley.cli.view import PORT
from parley.errors import UsageError
from parley.statistics.preferences import ConversationPair
from parley.store import RunRef, Study, VoteStore, open_store, open_votes, read_run
from parley.tables import Table, format_interval, format_number, plural, terminal_width

ORDER = (
    "`with order` is the share of pairs in which most annotators prefer the conversation with "
    "the higher score; pairs without a majority are left out"
)
ALONE = (
    "only one annotator has voted, so this table counts every single vote; no pair is settled "
    "and agreement is unknown until a second annotator votes"
)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", shell_complete=complete_runs)
@click.option(
    "--pairs",
    type=click.IntRange(1, 100_000),
    help=f"Set the total number of pairs to compare (default: {DEFAULT_PAIRS}). You can raise "
    "it later, and lower it until a person opens a pair.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**62),
    help="Set the random seed that decides which pairs are drawn, and which conversation is A "
    "(default: 0).",
)
@click.option(
    "--ties",
    is_flag=True,
    help="Let annotators vote that both conversations are equally good.",
)
@click.option(
    "--invite",
    metavar="NAME",
    help="Print a personal link for this annotator. An earlier link stops working.",
)
@click.option(
    "--end-invitation",
    metavar="NAME",
    help="Make this annotator's link stop working. The votes are kept.",
)
@click.option(
    "--serve",
    is_flag=True,
    help="Serve the voting pages, so that people can open their links.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help=f"Set the port of the voting pages and of the printed link (default: {PORT}).",
)
@click.option(
    "--bind",
    metavar="ADDRESS",
    help="Set the address of the voting pages and of the printed link (default: 127.0.0.1).",
)
@click.option("--terminal", is_flag=True, help="Vote in this terminal.")
@click.option("--annotator", metavar="NAME", help="Set the name of the person who votes.")
@click.option(
    "--change",
    type=click.IntRange(1),
    multiple=True,
    metavar="N",
    help="Change your vote on pair or match N (repeatable).",
)
@click.option(
    "--results",
    "wants_results",
    is_flag=True,
    help="Print how people voted, and how well their votes agree.",
)
@in_store
@in_format
@as_json
def command(
    runs: tuple[str, ...],
    pairs: int | None,
    seed: int | None,
    ties: bool,
    invite: str | None,
    end_invitation: str | None,
    serve: bool,
    port: int | None,
    bind: str | None,
    terminal: bool,
    annotator: str | None,
    change: tuple[int, ...],
    wants_results: bool,
    store: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Let people compare conversations of RUN… (ids, starts of ids, names or paths in one folder).

    The first time, this command draws pairs of conversations about the same question, by models
    whose scores differ. Two people vote on each pair. If they disagree, a third one votes.
    Votes are stored beside the runs.

    If RUN waits for votes (`--plan evolve` with `feedback=people`), people vote on
    whether each conversation was a success, and --change takes the number of a match, not of
    a pair.

    \b
    parley annotate last --pairs 50                           draw pairs, print the progress
    parley annotate last --invite NAME                        print a personal link
    parley annotate last --serve                              serve the voting pages for these links
    parley annotate last --terminal --annotator NAME          vote here; stop with q, continue later
    parley annotate last --terminal --annotator NAME --change 7
    parley annotate last --results
    """
    invites = invite is not None or serve  # a link can be printed by the server that answers it
    if invites + (end_invitation is not None) + terminal + wants_results > 1:
        raise UsageError(
            "--invite, --end-invitation, --terminal and --results cannot be combined: use one of "
            "them; only --invite and --serve go together"
        )
    if not invites and (port is not None or bind is not None):
        raise UsageError("--port and --bind only work with --invite or --serve")
    if not terminal and (annotator is not None or change):
        raise UsageError("--annotator and --change only work with --terminal")
    if terminal and annotator is None:
        raise UsageError("--terminal needs --annotator NAME, the person who votes")
    drawing = pairs is not None or seed is not None or ties
    if wants_results and drawing:
        raise UsageError("--results does not draw pairs: remove --pairs, --seed and --ties")
    place = open_store(store)
    refs = list(dict.fromkeys(place.find(run) for run in runs))
    if not drawing and takes_verdicts(refs, invites or end_invitation is not None):
        if invites:
            link = None if invite is None else invite_judge(refs[0], invite)
            answer_links(refs, link, serve, bind, port, as_json)
        elif end_invitation is not None:
            end_link_of_judge(refs[0], end_invitation)
        elif terminal:
            assert annotator is not None
            take_verdicts(refs[0], annotator, change)
        else:
            print_verdicts(refs[0], form, as_json)
        return
    if wants_results:
        with open_votes(refs, read_only=True) as votes:
            data = summarise_votes(votes, find_study(votes, refs))
        print_data(data, result_tables(data), form, as_json)
        return
    if end_invitation is not None:
        with open_votes(refs) as votes:
            end_invitation_of(votes, find_study(votes, refs), end_invitation)
        say(f"the link of {end_invitation} no longer works; the votes stay")
        return
    with open_runs(refs) as found:
        sheet = format_of_runs(found)
        by_id = {reader.info.id: reader.info.ref for reader in found}
    with open_votes(refs) as votes:
        known = votes.find_study(list(by_id))
        before = {} if known is None else votes.pairs(known)
        study = prepare_study(votes, refs, pairs, seed, ties)
        count = len(votes.pairs(study))
        say_drawn(before, votes.pairs(study), study.seed)
        if count < (pairs or 0):
            say(
                f"you asked for {pairs} pairs, but these runs have only {plural(count, 'pair')} "
                "with different scores; all of them were drawn"
            )
        if invites:
            link = None if invite is None else make_link(votes, study, invite)
        elif terminal:
            assert annotator is not None
            me = register_annotator(votes, study, annotator)
            take_votes(votes, study, me, sheet, by_id, change)
        else:
            state = summarise_votes(votes, study)
            print_data(state, [pair_table(votes, study)], form, as_json)
            say_progress(state, votes.location, quote_runs(refs))
    if invites:
        answer_links(refs, link, serve, bind, port, as_json)


def make_link(votes: VoteStore, study: Study, name: str) -> PersonalLink:
    """A new link for a person. Say so if it replaces an earlier one."""
    with votes.transaction():
        replaces = votes.end_token(register_annotator(votes, study, name))
        link = PersonalLink(name, invite_annotator(votes, study, name))
    if replaces:
        say(EARLIER_LINK.format(name=name))
    return link


def say_drawn(
    before: Mapping[int, ConversationPair], now: Mapping[int, ConversationPair], seed: int
) -> None:
    """Say which pairs were drawn by this command, if any."""
    if now == before:
        return
    count = plural(len(now), "pair")
    if not before:
        say(
            f"{count} drawn with random seed {seed}; you can change --pairs and --seed until "
            "somebody opens a pair"
        )
    elif before.items() <= now.items():
        say(f"{len(now) - len(before)} more drawn with random seed {seed}, {count} in all")
    else:
        say(f"the pairs were drawn again, because nobody has seen one: {count}, random seed {seed}")


def quote_runs(refs: Sequence[RunRef]) -> str:
    """The runs as they can be typed in a shell."""
    return shlex.join(ref.location for ref in refs)


def answer_links(
    refs: Sequence[RunRef],
    link: PersonalLink | None,
    serve: bool,
    bind: str | None,
    port: int | None,
    as_json: bool,
) -> None:
    """Print a link, or serve the pages and print it then, when the port is known."""
    host, number = bind or LOOPBACK, PORT if port is None else port
    if serve:
        serve_voters(refs[0], host, number, link, as_json)
    elif link is not None:
        link.print(host, number, as_json)
        place = "" if bind is None else f" --bind {shlex.quote(bind)}"
        place += "" if port is None else f" --port {port}"
        say(
            f"the link works while you run: {command_name()} annotate {quote_runs(refs)} "
            f"--serve{place}"
        )


def takes_verdicts(refs: Sequence[RunRef], by_link: bool) -> bool:
    """Whether people vote on single conversations: of a run that waits for this, and of one that is
    done and has no pairs to compare, unless somebody is invited to vote on it now."""
    if len(refs) != 1:
        return False
    with read_run(refs[0]) as reader:
        if not asks_people(reader):
            return False
        if reader.info.state != "done" or by_link:
            return reader.info.state != "done"
        try:
            with open_votes(refs, read_only=True) as votes:
                return votes.find_study([reader.info.id]) is None
        except UsageError:  # there is no file of votes
            return True


def print_data(data: dict[str, Any], tables: Sequence[Table], form: str, as_json: bool) -> None:
    """Print tables, or all data as JSON."""
    if as_json:
        click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
    else:
        click.echo("\n\n".join(table.render(form, terminal_width()) for table in tables))


def pair_table(votes: VoteStore, study: Study) -> Table:
    """The number of pairs by dataset and models."""
    counts = Counter(map(models_in_dataset, votes.pairs(study).values()))
    rows = [
        [dataset, " – ".join(models), str(count)]
        for (dataset, models), count in sorted(counts.items())
    ]
    return Table(["dataset", "models", "pairs"], rows, left=2)


def say_progress(data: dict[str, Any], location: str, runs: str) -> None:
    """Print the number of votes and of missing votes on stderr."""
    pairs, votes = data["pairs"], data["votes"]
    there = (
        f"{plural(pairs['drawn'], 'pair')}, {pairs['settled']} settled; "
        f"{plural(votes['given'], 'vote')}"
    )
    say(f"{there}, {votes['wanted']} missing; stored in {location}")
    say(
        f"vote with: {command_name()} annotate {runs} --terminal --annotator NAME; for the "
        "browser: --invite NAME"
    )


def result_tables(data: dict[str, Any]) -> list[Table]:
    """The tables of `--results`."""
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
        Table(
            header,
            [*rows[1:], rows[0]],
            note=f"{ORDER}\nthe intervals treat each question, with all its pairs, as one "
            f"observation{alone}",
        ),
        count_table(data),
        Table(
            ["model", "win rate", *usual, "not settled"],
            wins,
            note="a tie counts as half a win" if data["ties"] else "",
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
        ("pairs not settled yet", pairs["open"]),
        ("votes given", votes["given"]),
        ("votes for side A", votes["for_a"]),
        ("votes for side B", votes["for_b"]),
        *([("votes for neither", votes["for_tie"])] if data["ties"] else []),
        ("votes changed", votes["changed"]),
        ("votes missing", votes["wanted"]),
        ("conflicts", found["found"]),
        ("conflicts settled for the higher score", found["for_the_order"]),
        ("conflicts settled for the lower score", found["against_it"]),
        *(
            [
                ("conflicts settled as a tie", found["tie"]),
                ("conflicts without a majority", found["undecided"]),
            ]
            if data["ties"]
            else []
        ),
        ("conflicts not settled yet", found["open"]),
    ]
    return Table(
        ["what", "n"],
        [[what, str(count)] for what, count in rows],
        note="a conflict is a pair whose first two votes differ; a third vote then settles the "
        "pair",
    )


def estimate_cells(each: dict[str, Any]) -> list[str]:
    """An estimate with its interval, and the numbers of pairs and questions."""
    return [
        format_number(each["value"], 3),
        format_interval(each["low"], each["high"], 3),
        str(each["pairs"]),
        str(each["questions"]),
    ]
