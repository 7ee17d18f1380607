"""Options that several commands share, and parsers for their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from parley.config.trust import Allowed
from parley.errors import UsageError, unknown_name
from parley.options import OPTIONS, Declared

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


class SectionedCommand(click.Command):
    """A command whose help has its options in sections: the common ones first. Run options that no
    section names stand in the section of their group."""

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[str]], **more: Any) -> None:
        super().__init__(*args, **more)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        params = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        options = {each.opts[0]: each for each in params}
        sections = {title: list(flags) for title, flags in self.sections.items()}
        named = {flag for flags in sections.values() for flag in flags}
        for flag, option in options.items():
            if flag not in named:
                declared = OPTIONS.get(option.name or "")
                title = declared.facts.group.capitalize() if declared else "Other"
                sections.setdefault(title, []).append(flag)
        for title, flags in sections.items():
            rows = [options[flag].get_help_record(ctx) for flag in flags]
            with formatter.section(title):
                formatter.write_dl([row for row in rows if row is not None])


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
in_format = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "latex", "csv"]),
    default="text",
    help="Choose the output format.",
)
with_task = click.option(
    "--task",
    metavar="FILE",
    help="Load the task from this file. Without this option, Parley does not execute a task "
    "file that is only named in a run.",
)


def make_flag(option: Declared, resume: bool = False) -> Decorator:
    """The flag of a run option."""
    facts = option.facts
    default = "unchanged" if resume else facts.default_text
    help = f"{facts.help.removesuffix('.')} (default: {default})." if default else facts.help
    kind: Any = option.type
    if option.choices:
        kind = click.Choice(option.choices)
    elif facts.minimum is not None and option.type in (int, float):
        kind = (click.IntRange if option.type is int else click.FloatRange)(facts.minimum)
    if option.type is bool:
        return click.option(option.flag, option.name, is_flag=True, default=None, help=help)
    usual = None if option.choices else {int: "N", float: "X"}.get(option.type)
    metavar = facts.metavar or facts.unit or usual
    return click.option(option.flag, option.name, type=kind, metavar=metavar, help=help)


def run_options(*names: str, resume: bool = False) -> Decorator:
    """Flags for all run options, for `names`, or with `resume` for those that may change when a run
    is resumed. An option that is not given is None."""
    chosen = [
        option
        for name, option in OPTIONS.items()
        if (name in names if names else option.facts.resume or not resume)
    ]

    def decorate(command: Command) -> Command:
        for option in reversed(chosen):
            command = make_flag(option, resume)(command)
        return command

    return decorate


def spending_options(command: Command) -> Command:
    """`--dry-run` and `--yes`, for commands that may cost money."""
    dry_run = click.option(
        "--dry-run",
        is_flag=True,
        help="Print the expected calls, tokens and cost without calling a model.",
    )
    yes = click.option("--yes", is_flag=True, help="Do not ask for confirmation before paid calls.")
    return dry_run(yes(command))


def allow_options(command: Command) -> Command:
    """The `--allow-…` flags; `read_allowed` collects their values."""
    for flag, name, what in (
        ("--allow-env", "NAME", "Let the experiment and task files use this environment variable"),
        (
            "--allow-path",
            "PATH",
            "Let the experiment and task files use this path or Python module outside their folder",
        ),
        ("--allow-host", "HOST", "Let the experiment and task files send an API key to this host"),
    ):
        option = click.option(flag, multiple=True, metavar=name, help=f"{what} (repeatable).")
        command = option(command)
    return command


def read_allowed(options: dict[str, Any]) -> Allowed:
    """Take the flags of `allow_options` out of a command's options."""
    return Allowed.of(*(options.pop(f"allow_{what}") for what in ("host", "path", "env")))


in_store = make_flag(OPTIONS["store"])
without_isolation = click.option(
    "--unsafe-run-code-without-isolation",
    "unsafe",
    is_flag=True,
    help="Run model-written code without a sandbox. The run and its report are marked UNSAFE.",
)
with_workers = click.option(
    "--workers",
    metavar="N|ray:N|slurm:N",
    help="Start N workers that share the run in a PostgreSQL store: here, on a Ray cluster or on a "
    "Slurm cluster. With 0, start none; use `parley worker` (default: this process plays alone).",
)
with_columns = click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="FIELD=COLUMN[,COLUMN…]",
    help="Read a field of the items from this column of the dataset (repeatable).",
)


def parse_run_file(text: str) -> Path:
    """The path of a run file. An address is refused, and not repeated, because it may contain a
    password."""
    from parley.store.address_forms import (  # late: few commands need it
        is_address,
        refuse_misspelled,
    )

    wanted = "expected the path of a run file"
    if is_address(text):
        raise UsageError(f"{wanted}, not the address of a database: `parley export` writes one")
    refuse_misspelled(text, wanted)
    try:
        return Path(text).expanduser()
    except RuntimeError as wrong:  # ~ with an unknown user
        raise UsageError(f"{text}: {wrong}") from None


def parse_columns(texts: Sequence[str]) -> dict[str, str | list[str]]:
    """The fields of `--column FIELD=COLUMN`; several columns, or none, become a list."""
    return {
        field: column if column and "," not in column else list(filter(None, column.split(",")))
        for field, column in parse_assignments(texts, "--column").items()
    }


def parse_assignments(texts: Sequence[str], what: str) -> dict[str, str]:
    """Parse KEY=VALUE arguments into a mapping."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(
                f"{what} needs KEY=VALUE, not {text!r}"
                if not equals
                else f"{what} needs KEY=VALUE, but {text!r} has no key"
            )
        if key in found:
            raise UsageError(f"{what} sets {key!r} twice: remove one of them")
        found[key] = value
    return found


def set_model_options(models: dict[str, dict[str, Any]], texts: Sequence[str]) -> None:
    """Give models the options of `-M ALIAS.KEY=VALUE`."""
    for alias, options in parse_model_options(texts).items():
        if alias not in models:
            raise unknown_name("model in -M:", alias, models)
        if "model" in options:
            raise UsageError(f"-M cannot choose a model: use -m {alias}={options['model']} instead")
        models[alias].update(options)


def parse_model_options(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """The options of `-M ALIAS.KEY=VALUE`, by alias."""
    found: dict[str, dict[str, str]] = {}
    for target, value in parse_assignments(texts, "-M").items():
        alias, dot, key = target.rpartition(".")
        if not dot:
            raise UsageError(f"-M needs ALIAS.KEY=VALUE, not {target}=…")
        found.setdefault(alias, {})[key] = value
    return found
