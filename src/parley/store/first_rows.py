"""The rows that a new run begins with: its items, and what it copies from other runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parley.store.call_rows import call_row
from parley.store.digests import digest_plan, with_digests
from parley.store.rows import encode_json, experience_row, match_row
from parley.store.types import CopiedMatch, NewRun


def first_rows(run: NewRun, origin: str) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """The rows of a new run, by table. `origin`: the digest that all its chains begin with."""
    yield "items", [(id, number, data.decode()) for number, (id, data) in enumerate(run.items)]
    yield (
        "transferred",
        [experience_row(number, each) for number, each in enumerate(run.transferred, 1)],
    )
    for match in run.copied:
        yield from copied_rows(match, origin)


def copied_rows(match: CopiedMatch, origin: str) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """The rows of a match that is copied from another run, to be rejudged, by table."""
    number, planned = match.spec.number, match_row(match.spec)
    first = digest_plan(planned, origin)
    yield "matches", [planned]
    # the device of a copied call worked for the other run
    yield "calls", with_digests((call_row(number, call, copied=1) for call in match.calls), first)
    effects = [
        (number, *place, request_digest, encode_json(result))
        for place, (request_digest, result) in sorted(match.effects.items())
    ]
    yield "effects", with_digests(effects, first)
    yield (
        "scores",
        [
            (number, seat.key, metric, value, match.judge)
            for seat, by in match.scores.items()
            for metric, value in by.items()
        ],
    )
    yield (
        "people_verdicts",
        [(number, each.seat.key, each.yes, each.no, each.unsure) for each in match.people],
    )
