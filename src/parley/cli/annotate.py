"""`parley annotate`: people compare conversations, or say whether they are successes."""

from __future__ import annotations

import ipaddress
import shlex
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click
import orjson

from parley.annotation.sheets import format_of_runs
from parley.annotation.study import (
    DEFAULT_PAIRS,
    find_study,
    open_runs,
    prepare_study,
    summarise_votes,
)
from parley.annotation.verdict_ballots import asks_people, list_open_places, summarise_verdicts
from parley.annotation.voters import VerdictVoting, find_voting
from parley.cli.annotate_tables import pair_table, result_tables, verdict_tables
from parley.cli.annotate_terminal import take_votes
from parley.cli.invocation import command_name
from parley.cli.progress_line import say
from parley.cli.shared_options import as_json, in_format, in_store
from parley.cli.shell_completion import complete_runs
from parley.cli.view import PORT
from parley.config.extras import require_extra
from parley.errors import UsageError
from parley.statistics.preferences import ConversationPair
from parley.store import open_store, open_votes, read_run, read_verdict_votes
from parley.store.reader import RunReader
from parley.store.types import RunRef
from parley.tables import Table, plural, terminal_width

LOOPBACK = "127.0.0.1"
PAGES = ("vote_page",)  # people who vote see no scores and no runs

Command = Callable[..., Any]
of_runs = click.argument(
    "runs", nargs=-1, required=True, metavar="RUN…", shell_complete=complete_runs
)
annotator_option = click.option(
    "--annotator", metavar="NAME", required=True, help="Set the name of the person who votes."
)


def address_options(command: Command) -> Command:
    """`--port` and `--bind`, which a link and the server behind it must have in common."""
    port = click.option(
        "--port",
        type=click.IntRange(0, 65_535),
        help=f"Set the port of the voting pages (default: {PORT}).",
    )
    bind = click.option(
        "--bind",
        metavar="ADDRESS",
        help=f"Set the address of the voting pages (default: {LOOPBACK}).",
    )
    return port(bind(command))


class OrderedGroup(click.Group):
    """A group that lists its commands in the order in which people use them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=OrderedGroup)
def command() -> None:
    """Let people compare conversations and vote for the better one.

    First draw pairs of conversations. Then invite people to vote in a browser, or let them vote in
    the terminal. Two people vote on each pair. If they disagree, a third one votes. Votes are
    stored beside the runs.

    If a run waits for votes (`--plan evolve` with `feedback=people`), people vote on single
    conversations of this run instead: was it a success? Then there are no pairs to draw.

    RUN… are ids, starts of ids, names or paths in one folder.

    \b
    parley annotate draw last --pairs 50
    parley annotate invite last --annotator NAME      print a personal link
    parley annotate serve last                        answer these links in a browser
    parley annotate vote last --annotator NAME        vote here; stop with q, continue later
    parley annotate results last
    """


@command.command("draw")
@of_runs
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
@in_store
@in_format
@as_json
def draw_pairs(
    runs: tuple[str, ...],
    pairs: int | None,
    seed: int | None,
    ties: bool,
    store: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Draw pairs of conversations of RUN… for people to compare.

    A pair has two conversations about the same question, by models whose scores differ. Pairs
    that were drawn before stay.
    """
    refs = find_runs(runs, store)
    with open_runs(refs) as found:
        refuse_waiting(found)
        format_of_runs(found)  # refuses a task without a sheet before there is a file of votes
        ids = [reader.info.id for reader in found]
    with open_votes(refs) as votes:
        known = votes.find_study(ids)
        before = {} if known is None else votes.pairs(known)
        study = prepare_study(votes, refs, pairs, seed, ties)
        drawn = votes.pairs(study)
        say_drawn(before, drawn, study.seed)
        if len(drawn) < (pairs or 0):
            say(
                f"you asked for {pairs} pairs, but these runs have only "
                f"{plural(len(drawn), 'pair')} with different scores; all of them were drawn"
            )
        state = summarise_votes(votes, study)
        print_data(state, [pair_table(votes, study)], form, as_json)
        say_progress(state, votes.location, refs)


@command.command("invite")
@of_runs
@annotator_option
@click.option(
    "--end",
    is_flag=True,
    help="Make this person's link stop working. The votes are kept.",
)
@address_options
@in_store
@as_json
def invite_voter(
    runs: tuple[str, ...],
    annotator: str,
    end: bool,
    port: int | None,
    bind: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Print a personal link to vote on RUN… in a browser.

    An earlier link of this person stops working. The link works while `parley annotate serve`
    or `parley view` runs with the same --port and --bind.
    """
    refs = find_runs(runs, store)
    if end:
        if port is not None or bind is not None:
            raise UsageError("--port and --bind do not work with --end, which prints no link")
        find_voting(refs).end_link(annotator)
        say(f"the link of {annotator} no longer works; the votes stay")
        return
    with find_voting(refs).open_voter(annotator) as voter:
        token, replaces = voter.invite()
    if replaces:
        say(f"the earlier link of {annotator} no longer works")
    host, number = bind or LOOPBACK, PORT if port is None else port
    link = f"http://{name_server(host)}:{number}/vote/{token}"
    data = {"annotator": annotator, "token": token, "link": link}
    click.echo(orjson.dumps(data).decode() if as_json else link)
    say("this link is shown only once; anyone who has it can vote under this name")
    place = "" if bind is None else f" --bind {shlex.quote(bind)}"
    place += "" if port is None else f" --port {port}"
    say(f"the link works while you run: {command_name()} annotate serve {quote_runs(refs)}{place}")


@command.command("serve")
@of_runs
@address_options
@in_store
def serve_pages(
    runs: tuple[str, ...], port: int | None, bind: str | None, store: str | None
) -> None:
    """Serve the voting pages, so that people can open their links.

    This server answers the links of everybody who was invited to vote on RUN… or on other runs of
    the same store. It shows no models, scores or runs.
    """
    refs = find_runs(runs, store)
    find_voting(refs)  # refuses runs without pairs
    require_extra("web", "voting in the browser")
    import asyncio

    from parley.web.app import make_app, make_site
    from parley.web.listening import make_server, open_address

    address = open_address(bind or LOOPBACK, PORT if port is None else port)
    # There is nothing but personal links, which are secrets themselves.
    safety = replace(address.safety, token="")
    app = make_app(make_site(open_store(refs[0].store)), safety, PAGES)
    place = f"http://{name_server(address.host)}:{address.port}/vote/…"
    say(f"people can open their links at {place} (Ctrl-C stops the server)")
    asyncio.run(make_server(app).serve(sockets=[address.socket]))


@command.command("vote")
@of_runs
@annotator_option
@click.option(
    "--change",
    type=click.IntRange(1),
    multiple=True,
    metavar="N",
    help="Change your vote on pair N, or on match N of a run that waits for votes (repeatable).",
)
@in_store
def vote_here(
    runs: tuple[str, ...], annotator: str, change: tuple[int, ...], store: str | None
) -> None:
    """Vote on conversations of RUN… in this terminal.

    Stop with q, and continue later with the same command.
    """
    refs = find_runs(runs, store)
    open_voter = partial(find_voting(refs).open_voter, annotator)
    take_votes(open_voter, change)
    with open_voter() as voter:
        ready = voter.find_resumable()
    if ready is not None:
        say_resumable(ready)


@command.command("results")
@of_runs
@in_store
@in_format
@as_json
def print_results(runs: tuple[str, ...], store: str | None, form: str, as_json: bool) -> None:
    """Print how people voted on RUN…, and how well their votes agree."""
    refs = find_runs(runs, store)
    if isinstance(find_voting(refs), VerdictVoting):
        print_verdicts(refs[0], form, as_json)
        return
    with open_votes(refs, read_only=True) as votes:
        data = summarise_votes(votes, find_study(votes, refs))
    print_data(data, result_tables(data), form, as_json)


def print_verdicts(ref: RunRef, form: str, as_json: bool) -> None:
    """Print how the votes on single conversations stand, and what to do next."""
    with read_run(ref) as reader:
        data = summarise_verdicts(reader, read_verdict_votes(reader))
        waits = reader.info.state != "done" and bool(list_open_places(reader))
    print_data(data, verdict_tables(data), form, as_json)
    if data["missing"]:
        say(f"{plural(data['missing'], 'vote')} still missing; {suggest_voting([ref])}")
    elif waits:
        say_resumable(ref)
    elif not data["stages"]:
        say("this run does not need votes yet: it asks for votes at the end of each stage")


def find_runs(runs: Sequence[str], store: str | None) -> list[RunRef]:
    """The runs that the user named, each once."""
    place = open_store(store)
    return list(dict.fromkeys(place.find(run) for run in runs))


def refuse_waiting(readers: Sequence[RunReader]) -> None:
    """Refuse to draw pairs while people vote on the single conversations of a run."""
    first = readers[0]
    if len(readers) == 1 and asks_people(first) and first.info.state != "done":
        raise UsageError(
            f"people vote on the single conversations of {first.info.id} until it is done: draw "
            f"pairs then; {suggest_voting([first.info.ref])}"
        )


def print_data(data: Mapping[str, Any], tables: Sequence[Table], form: str, as_json: bool) -> None:
    """Print tables, or all data as JSON."""
    if as_json:
        click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
    else:
        click.echo("\n\n".join(table.render(form, terminal_width()) for table in tables))


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


def say_progress(data: Mapping[str, Any], location: str, refs: Sequence[RunRef]) -> None:
    """Print the number of votes and of missing votes on stderr."""
    pairs, votes = data["pairs"], data["votes"]
    there = (
        f"{plural(pairs['drawn'], 'pair')}, {pairs['settled']} settled; "
        f"{plural(votes['given'], 'vote')}"
    )
    say(f"{there}, {votes['wanted']} missing; stored in {location}")
    say(suggest_voting(refs))


def suggest_voting(refs: Sequence[RunRef]) -> str:
    """The commands with which people vote."""
    runs = quote_runs(refs)
    return (
        f"vote with: {command_name()} annotate vote {runs} --annotator NAME; for the browser: "
        f"{command_name()} annotate invite {runs} --annotator NAME"
    )


def say_resumable(ref: RunRef) -> None:
    """Say how a run goes on after its last vote."""
    resume = f"{command_name()} resume {shlex.quote(ref.location)}"
    say(f"every match has a vote; resume with: {resume}")


def quote_runs(refs: Sequence[RunRef]) -> str:
    """The runs as they can be typed in a shell."""
    return shlex.join(ref.location for ref in refs)


def name_server(host: str) -> str:
    """The name of this machine in a link, if it listens on all its addresses; else the address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return socket.gethostname()
    return f"[{host}]" if address.version == 6 else host
