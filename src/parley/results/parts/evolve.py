"""What models learnt from earlier rounds (LLM-Evolve): rounds, gains, controls and their price."""

from __future__ import annotations

from parley.results.evolve_result import EvolveResult, compute_evolve, evolve_rows, is_evolving
from parley.results.evolve_tables import evolve_figures, evolve_tables
from parley.results.part import Part

PARTS = (
    Part(
        "evolve",
        "What was learnt from earlier rounds",
        EvolveResult,
        compute_evolve,
        tables=evolve_tables,
        rows=evolve_rows,
        figures=evolve_figures,
        applies=is_evolving,
        absent="the run does not evolve: `--plan evolve` plays its items in several rounds",
        section="result",
    ),
)
