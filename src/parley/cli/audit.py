"""`parley audit`: fairness, checked from the record."""

from __future__ import annotations

import re
from dataclasses import asdict

import click
import orjson

from parley.audit.audit import CHECKS, Audit, audit_run
from parley.cli.progress_line import say
from parley.cli.shared_options import as_json, in_store, with_task
from parley.cli.shell_completion import complete_runs
from parley.errors import UsageError
from parley.store import find_run
from parley.tables import Table, plural, shorten, terminal_width


@click.command()
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "--digest",
    metavar="D",
    help="Check the record against the digest that the run printed at its end. Without a "
    "digest, the audit cannot notice that the whole record was replaced.",
)
@with_task
@in_store
@as_json
def command(
    run: str, digest: str | None, task: str | None, store: str | None, as_json: bool
) -> int:
    """Check that the record of RUN is unchanged and that its matches were fair.

    A match is fair if the replies within a round are simultaneous, seats are anonymous and balanced
    between models, and all seats get equal information. The exit code is 5 if any check fails.
    """
    if digest is not None and not re.fullmatch("[0-9a-f]{64}", digest.strip().lower()):
        raise UsageError(
            f"--digest must be a whole digest, which has 64 hexadecimal digits, not {digest!r}"
        )
    found = audit_run(find_run(run, store), task, digest)
    if as_json:
        click.echo(orjson.dumps(asdict(found), option=orjson.OPT_INDENT_2).decode())
    else:
        names = [
            name
            for name in CHECKS
            if name in found.checked or name in found.unchecked or breaches_of(found, name)
        ]
        rows = [[name, looked_at(found, name), count_breaches(found, name)] for name in names]
        click.echo(Table(["check", "checked", "breaches"], rows).render(width=terminal_width()))
        for breach in found.breaches:
            click.echo(str(breach))
        if found.masked:
            click.echo(
                "\nParley masked these words before other seats read them, because they reveal "
                "which model is speaking. This is not a breach; please check for false "
                "positives:"
            )
            header = ["alias", "masked", "match", "round"]
            rows = [
                [shorten(" ".join(str(claim[name]).split())) for name in header]
                for claim in found.masked
            ]
            click.echo(Table(header, rows, left=2).render(width=terminal_width()))
        seen = found.anonymity
        click.echo(
            f"\nreplies with names of models: {plural(seen.replies, 'reply', 'replies')} checked, "
            f"{seen.found} found, {seen.masked} masked. {seen.unseen}"
        )
        for caution in found.cautions:
            say(caution)
        click.echo(summarise_audit(found))
    return 5 if found.breaches else 0


def looked_at(found: Audit, check: str) -> str:
    """How many matches (or runs) a check covered."""
    return str(found.checked[check]) if check in found.checked else "not checked"


def count_breaches(found: Audit, check: str) -> str:
    """How many breaches a check found; a dash if it could not run."""
    count = breaches_of(found, check)
    return str(count) if count or check in found.checked else "–"


def summarise_audit(found: Audit) -> str:
    """The result of an audit in one line: what it found, and what it could not check."""
    said = plural(len(found.breaches), "breach", "breaches") if found.breaches else "no breach"
    verdict = f"verdict: {said} found ({plural(len(found.checked), 'check')} made)"
    if not found.unchecked:
        return verdict
    reasons: dict[str, list[str]] = {}
    for check, why in found.unchecked.items():
        reasons.setdefault(why, []).append(check)
    listed = "; ".join(f"{', '.join(checks)} ({why})" for why, checks in reasons.items())
    return f"{verdict}; {plural(len(found.unchecked), 'check')} could not be made: {listed}"


def breaches_of(found: Audit, check: str) -> int:
    return sum(breach.kind == check for breach in found.breaches)
