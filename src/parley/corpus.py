"""Corpus-level scores of texts: all that a pair of models wrote is scored as one, from the counts that matches note."""

from __future__ import annotations

from typing import Any

from parley.findings import Findings
from parley.pool import Seat
from parley.scoring.overlap import MEASURES, of_corpus, pooled
from parley.statistics.roles import Cell, Pair, margins


def corpus(findings: Findings, tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Role tables like those of mean scores, with corpus-level scores in the cells; none where nothing was counted."""
    basis = findings.archive.identity.get("basis", {})
    if not basis.keys() & MEASURES:
        return []
    met = {each.match: (each.first, each.second, each.block) for each in findings.meetings()}
    counts: dict[str, dict[Pair, dict[str, list[list[int]]]]] = {}  # by measure, pair and role: of every match
    blocks: dict[Pair, list[str]] = {}
    for match, (first, second, block) in met.items():
        for note in findings.archive.notes(match):
            if "overlap" in note:
                blocks.setdefault((first, second), []).append(block)
            for seat, found in note.get("overlap", {}).items():
                for name, numbers in found.items():
                    by_role = counts.setdefault(name, {}).setdefault((first, second), {})
                    by_role.setdefault(Seat.of(seat).role, []).append(numbers)
    places = next(((table["first"], table["second"]) for table in tables), ("", ""))
    found = []
    for name, pairs in counts.items():
        cells = {pair: cell_of(name, by_role, places, blocks[pair]) for pair, by_role in pairs.items()}
        edges = margins(cells, findings.config.players)
        found.append(
            {
                "metric": name,
                "signature": of_corpus(name, basis.get(name, "")),
                "digits": findings.metrics.get(name, {}).get("digits", 2),
                "first": places[0],
                "second": places[1],
                "cells": [{"first": one, "second": other, "cell": cell._asdict()} for (one, other), cell in cells.items()],
                "rows": {alias: margin._asdict() for alias, margin in edges.rows.items()},
                "columns": {alias: margin._asdict() for alias, margin in edges.columns.items()},
                "all": {side: getattr(edges, side)._asdict() for side in ("first", "second")},
            }
        )
    return found


def cell_of(name: str, by_role: dict[str, list[list[int]]], places: tuple[str, str], blocks: list[str]) -> Cell:
    """What both wrote in all their matches, each scored as one text."""
    first, second = (pooled(name, by_role[role]) if by_role.get(role) else None for role in places)
    return Cell(first, second, len(blocks), len(set(blocks)))
