"""The main result as a Vega-Lite specification, for people who want to draw it themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parley.results.part import Style
from parley.results.types import ScoreRow

SCHEMA_URL = "https://vega.github.io/schema/vega-lite/v5.json"
MIME_TYPE = "application/vnd.vegalite.v5+json"


def make_vega_lite(rows: Sequence[ScoreRow], style: Style, title: str) -> dict[str, Any]:
    """Means with their intervals, models by rank; one panel for each role and metric. The data are
    part of the specification: every row has its interval, its n and its signature."""
    leading = [row for row in rows if style.leading.get(row.role, row.metric) == row.metric]
    ranks = {(rank.role, rank.metric, rank.alias): rank for rank in style.ranks}
    values = []
    for row in leading:
        rank = ranks.get((row.role, row.metric, row.alias))
        values.append(
            {
                "model": row.alias,
                "model_requested": row.model_requested,
                "role": row.role,
                "metric": row.metric,
                "unit": row.unit,
                "mean": row.mean,
                "low": row.low,
                "high": row.high,
                "level": style.level,
                "n": row.matches,
                "rank_low": rank.low if rank else None,
                "rank_high": rank.high if rank else None,
                "signature": row.signature,
            }
        )
    shown = list(dict.fromkeys((row.role, row.metric, row.unit) for row in leading))
    panels = [draw_panel(*each, style) for each in shown]
    return {
        "$schema": SCHEMA_URL,
        "title": title,
        "data": {"name": "results", "values": values},
        "vconcat": panels,
    }


def draw_panel(role: str, metric: str, unit: str, style: Style) -> dict[str, Any]:
    """One role and metric: a line for each interval, a point for each mean."""
    lower = metric in style.lower_is_better
    measure = f"{metric} ({unit})" if unit else metric
    axis = f"{measure}, {'lower' if lower else 'higher'} is better, {style.level} interval"
    sort = {"field": "mean", "op": "max", "order": "ascending" if lower else "descending"}
    models = {"field": "model", "type": "nominal", "sort": sort, "title": None}
    tooltip = [
        {"field": name, "type": kind}
        for name, kind in {
            "model": "nominal",
            "mean": "quantitative",
            "low": "quantitative",
            "high": "quantitative",
            "n": "quantitative",
        }.items()
    ]
    scale = {"zero": False}
    return {
        "title": role,
        "width": 480,
        "transform": [
            {"filter": {"field": "role", "equal": role}},
            {"filter": {"field": "metric", "equal": metric}},
        ],
        "layer": [
            {
                "transform": [{"filter": {"field": "low", "valid": True}}],
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "y": models,
                    "x": {"field": "low", "type": "quantitative", "scale": scale, "title": axis},
                    "x2": {"field": "high"},
                },
            },
            {
                "transform": [{"filter": {"field": "mean", "valid": True}}],
                "mark": {"type": "point", "filled": True, "size": 70},
                "encoding": {
                    "y": models,
                    "x": {"field": "mean", "type": "quantitative", "scale": scale, "title": axis},
                    "tooltip": tooltip,
                },
            },
        ],
    }
