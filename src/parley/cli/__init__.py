"""The command. Each subcommand is one file, imported when it is used, so that `parley --help` stays
fast."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module

import click

from parley import __version__
from parley.errors import ParleyError, UsageError

COMMANDS = {
    "run": "Play a task, or an experiment file, and print the result.",
    "resume": "Go on where a run stopped.",
    "ls": "List the runs in the store.",
    "rm": "Delete runs.",
    "show": "Print a run's results, its matches, or what was said in one.",
    "report": "Show runs beside each other, as tables or as one page.",
    "rejudge": "Score recorded matches again by other judges.",
    "annotate": "Let people compare conversations, and say what they prefer.",
    "audit": "Check from the record that a run was fair.",
    "simulate": "Tell what a plan would need, before anything is paid.",
    "tasks": "List the tasks, or describe one.",
    "check": "Check a task of your own before it is played.",
    "datasets": "List the datasets, or check one.",
    "models": "List who can sit in a seat.",
    "doctor": "Say what this machine has: keys, endpoints, sandbox, versions.",
    "demo": "A small tournament that needs no key.",
}


def want_traceback(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    """Note in the surroundings of a command that tracebacks are wanted."""
    ctx.ensure_object(dict)["traceback"] = value


# every command has it
TRACEBACK = click.Option(
    ["--traceback"],
    is_flag=True,
    expose_value=False,
    callback=want_traceback,
    help="Show the whole traceback of an error.",
)


class Lazy(click.Group):
    """Knows its commands by name, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"parley.cli.{name}").command
        if TRACEBACK not in command.params:
            command.params.append(TRACEBACK)
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


@click.group(
    cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="parley")
def command() -> None:
    """Evaluate language models by letting them interact.

    First result, without any key: parley demo
    """


def main() -> None:
    """The entry point: every foreseen fault is one clear message and an exit code."""
    prepare_surroundings()
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
    except OSError as wrong:  # what is printed finds no room, or nobody
        with suppress(OSError):
            print(f"parley: {wrong}", file=sys.stderr)
        os._exit(1)  # what could not be written would be tried again at the end
    except ParleyError as wrong:
        from parley.providers._secrets import redact

        if settings.get("traceback"):
            print_traceback(wrong)
        click.echo(f"parley: {redact(str(wrong))}", err=True)
        sys.exit(2 if isinstance(wrong, UsageError) else 1)


def print_traceback(wrong: BaseException) -> None:
    """Where an error comes from, on stderr; keys are masked."""
    from traceback import format_exception

    from parley.providers._secrets import redact

    click.echo(redact("".join(format_exception(wrong))), err=True, nl=False)


def prepare_surroundings() -> None:
    """Streams that are closed lead nowhere, letters that a terminal lacks are replaced, files may
    be as many as allowed."""
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
