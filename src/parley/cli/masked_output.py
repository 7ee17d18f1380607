"""Output on stdout without secrets: a model may repeat a key that the environment has now."""

from __future__ import annotations

import click

from parley.providers._secrets import redact


def print_masked(text: str) -> None:
    """Print a text on stdout with all secrets masked."""
    click.echo(redact(text))
