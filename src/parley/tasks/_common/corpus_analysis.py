"""Corpus-level scores of texts: all that a pair of models wrote is scored as one, from the counts
that matches note."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random
from statistics import stdev
from typing import Any

from parley.results.scores import Findings
from parley.rules.pool import Seat
from parley.statistics.agreement import FEWEST
from parley.statistics.intervals import ALPHA, UNKNOWN, Interval
from parley.statistics.role_tables import Cell, Pair, margins
from parley.statistics.student_t import t_quantile
from parley.tasks._common.overlap import MEASURES, of_corpus, pooled

DRAWS = 200
Counted = tuple[str, list[int]]  # a match's block, and what was counted in it


def corpus(findings: Findings, tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Role tables like those of mean scores, with corpus-level scores in the cells; none where
    nothing was counted."""
    basis = findings.reader.info.identity.get("basis", {})
    if not basis.keys() & MEASURES:
        return []
    met = {each.match: (each.first, each.second, each.block) for each in findings.meetings()}
    idle = {match.number: match.idle for match in findings.matches}
    counts: dict[
        str, dict[Pair, dict[str, list[tuple[str, list[int]]]]]
    ] = {}  # by measure, pair and role: of every match that counts
    blocks: dict[Pair, list[str]] = {}
    for match, (first, second, block) in met.items():
        for note in findings.reader.notes_of(match):
            given = {
                seat: found
                for key, found in note.facts.get("overlap", {}).items()
                if (seat := Seat.of(key)) not in idle[match]
            }
            if given:
                blocks.setdefault((first, second), []).append(block)
            for seat, found in given.items():
                for name, numbers in found.items():
                    by_role = counts.setdefault(name, {}).setdefault((first, second), {})
                    by_role.setdefault(seat.role, []).append((block, numbers))
    places = next(((table["first"], table["second"]) for table in tables), ("", ""))
    found = []
    for name, pairs in counts.items():
        cells = {
            pair: cell_of(name, by_role, places, blocks[pair]) for pair, by_role in pairs.items()
        }
        listed = [*findings.config.players, *findings.config.excluded]
        found.append(
            {
                "metric": name,
                "signature": of_corpus(name, basis.get(name, "")),
                "digits": findings.metrics.get(name, {}).get("digits", 2),
                "first": places[0],
                "second": places[1],
                "cells": [
                    {"first": one, "second": other, "cell": cell.facts()}
                    for (one, other), cell in cells.items()
                ],
                **margins(cells, listed).facts(),
            }
        )
    return found


def cell_of(
    name: str, by_role: Mapping[str, list[Counted]], places: tuple[str, str], blocks: list[str]
) -> Cell:
    """What both wrote in all their matches, each scored as one text, with an interval over
    blocks."""
    given = [by_role.get(role, []) for role in places]
    first, second = (
        pooled(name, [numbers for _, numbers in side]) if side else None for side in given
    )
    idle = len(blocks) - len(given[0]), len(blocks) - len(given[1])
    return Cell(
        first,
        second,
        len(blocks),
        len(set(blocks)),
        idle,
        resampled(name, given[0]),
        resampled(name, given[1]),
    )


def resampled(name: str, given: Sequence[Counted]) -> Interval:
    """Student's t with the spread of the score over draws of whole blocks (bootstrap), always the
    same draws."""
    blocks: dict[str, list[int]] = {}
    for block, numbers in given:
        blocks[block] = (
            [a + b for a, b in zip(blocks[block], numbers, strict=True)]
            if block in blocks
            else list(numbers)
        )
    n, rows = len(blocks), list(blocks.values())
    if n < FEWEST:
        return UNKNOWN
    value, rng = pooled(name, rows), Random(DRAWS)
    half = t_quantile(1 - ALPHA / 2, n - 1) * stdev(
        pooled(name, rng.choices(rows, k=n)) for _ in range(DRAWS)
    )
    half *= math.sqrt(n / (n - 1))
    return Interval(max(0.0, value - half), min(1.0, value + half), "block bootstrap")
