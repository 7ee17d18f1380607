"""`parley audit`: fairness, checked from the record."""

from __future__ import annotations

from dataclasses import asdict

import click
import orjson

from parley import store as stores
from parley.audit import audit
from parley.cli.options import as_json, in_store
from parley.cli.progress import say
from parley.tables import Table


@click.command()
@click.argument("run")
@in_store
@as_json
def command(run: str, store: str | None, as_json: bool) -> int:
    """Check RUN's record for synchrony, anonymity and balance; exit 5 if it shows a breach."""
    found = audit(stores.find(run, stores.folder(store)))
    if as_json:
        click.echo(orjson.dumps(asdict(found), option=orjson.OPT_INDENT_2).decode())
    else:
        kinds = sorted({*found.checked, *(breach.kind for breach in found.breaches)})
        rows = [[kind, str(found.checked.get(kind, 0)), str(sum(b.kind == kind for b in found.breaches))] for kind in kinds]
        click.echo(Table(["check", "looked at", "breaches"], rows).render())
        for breach in found.breaches:
            click.echo(f"{breach.kind}" + (f", match {breach.match}" if breach.match else "") + f": {breach.detail}")
        for caution in found.cautions:
            say(caution)
    return 5 if found.breaches else 0
