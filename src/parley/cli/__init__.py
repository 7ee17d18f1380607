"""The command. Each subcommand is one file, imported when it is used, so that `parley --help` stays
fast."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module

import click

from parley import __version__
from parley.cli.interruption import interrupt_on_hangup
from parley.errors import ParleyError, UsageError

LOGIN = re.compile(r"://[^/?#\s@]*:[^/?#\s]*@")  # in an address: a user and a password
COMMANDS = {
    "run": "Run a task or an experiment file, and print the result.",
    "resume": "Resume a run that stopped.",
    "worker": "Play matches of runs that several machines share.",
    "stop": "Stop a run that workers play.",
    "ls": "List the runs in the store.",
    "rm": "Delete runs.",
    "export": "Write a run into a file, to move it to another store.",
    "import": "Add runs from files to the store.",
    "show": "Print the results of a run, a list of its matches, or the transcript of one match.",
    "report": "Compare runs in tables or on an HTML page.",
    "view": "Show runs, results and transcripts in a browser.",
    "rejudge": "Score recorded matches again with other judges.",
    "annotate": "Let people compare conversations and vote for the better one.",
    "audit": "Check that a run was fair and that its record is unchanged.",
    "simulate": "Estimate how many matches each plan needs, without calling a model.",
    "new": "Write a starting point for a task of your own.",
    "tasks": "List the tasks, or describe one.",
    "check": "Check a task that you have written before you run it.",
    "datasets": "List the datasets, or check one.",
    "models": "List models, bots and other participants.",
    "doctor": "Check API keys, endpoints, the sandbox and versions.",
    "demo": "Play a small tournament that needs no API key.",
}


def want_traceback(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    """Remember in the context of the command that the user wants tracebacks."""
    if value:  # also before the name of a command of a group
        ctx.ensure_object(dict)["traceback"] = True


# every command gets this option
TRACEBACK = click.Option(
    ["--traceback"],
    is_flag=True,
    expose_value=False,
    callback=want_traceback,
    help="Show the full traceback of an error.",
)


class Lazy(click.Group):
    """A group that imports a command only when it runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:  # the shell completes a command
            refuse_passwords(args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = "import_run" if name == "import" else name  # `import` is a word of Python
        command: click.Command = import_module(f"parley.cli.{module}").command
        within = command.commands.values() if isinstance(command, click.Group) else ()
        for each in (command, *within):
            if TRACEBACK not in each.params:
                each.params.append(TRACEBACK)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def refuse_passwords(words: Sequence[str]) -> None:
    """Refuse a command with the password of a database in its words, without repeating it."""
    if not any("://" in word or "postgres" in word.lower() for word in words):
        return
    from parley.store.address_forms import passwords_in  # late: it takes time

    if any(LOGIN.search(word) or passwords_in(word) for word in words):
        raise UsageError(
            "this command contains an address with a password, but all users of this machine can "
            "read the words of a command: type the address without the password, and put the "
            "password into a password file (~/.pgpass, or the file that PGPASSFILE names), or the "
            "address with the password into the environment variable PARLEY_STORE"
        )


@click.group(
    cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="parley")
def command() -> None:
    """Evaluate language models by letting them interact.

    For a first result without an API key, run: parley demo
    """


def main() -> None:
    """The entry point: every expected error becomes one clear message and an exit code."""
    prepare_surroundings()
    interrupt_on_hangup()
    settings: dict[str, bool] = {}
    try:
        code = command(standalone_mode=False, obj=settings)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as wrong:  # the disk is full, or nobody reads the output
        with suppress(OSError):
            print(f"parley: {wrong}", file=sys.stderr)
        os._exit(1)  # a normal exit would try to flush the output again
    except ParleyError as wrong:
        from parley.providers._secrets import redact

        if settings.get("traceback"):
            print_traceback(wrong)
        click.echo(f"parley: {redact(str(wrong))}", err=True)
        sys.exit(2 if isinstance(wrong, UsageError) else 1)


def print_traceback(wrong: BaseException) -> None:
    """Print a traceback on stderr, with keys masked."""
    from traceback import format_exception

    from parley.providers._secrets import redact

    click.echo(redact("".join(format_exception(wrong))), err=True, nl=False)


def prepare_surroundings() -> None:
    """Open closed standard streams on the null device, replace characters that the terminal cannot
    show, and raise the limit of open files."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number, which is the closed one
            setattr(
                sys,
                name,
                open(number, "w" if number else "r", encoding="utf-8", closefd=False),  # noqa: SIM115
            )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
