"""Options that several commands share, and the texts of the command line taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from parley.errors import UsageError, unknown

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
in_store = click.option(
    "--store", metavar="DIR", help="Where runs are kept (default: PARLEY_STORE, else runs/)."
)
in_format = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "latex", "csv"]),
    default="text",
    help="The table's form.",
)
at_once = click.option(
    "--concurrency", type=click.IntRange(1), help="Matches in flight (default: as the run began)."
)

within_usd = click.option(
    "--budget-usd",
    type=click.FloatRange(0),
    metavar="USD",
    help="Spend no more than this in all; unknown prices are refused.",
)
within_calls = click.option(
    "--max-calls",
    type=click.IntRange(0),
    help="Make no more calls than this in all, further tries included.",
)


def assigned(texts: Sequence[str], what: str) -> dict[str, str]:
    """KEY=VALUE texts as a mapping."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(
                f"{what} wants KEY=VALUE, got {text!r}"
                if not equals
                else f"{what} wants KEY=VALUE, got no key"
            )
        if key in found:
            raise UsageError(f"{what} {key} is given twice")
        found[key] = value
    return found


def with_options(models: dict[str, dict[str, Any]], texts: Sequence[str]) -> None:
    """Give models the options of `-M ALIAS.KEY=VALUE`."""
    for target, value in assigned(texts, "-M").items():
        alias, dot, key = target.rpartition(".")
        if not dot:
            raise UsageError(f"-M wants ALIAS.KEY=VALUE, got {target}=…")
        if alias not in models:
            raise unknown("model in -M:", alias, models)
        if key == "model":
            raise UsageError(f"-M sets options; the model itself is named with -m {alias}={value}")
        models[alias][key] = value
