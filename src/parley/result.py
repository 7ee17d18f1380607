"""A run's result: every number with n, interval and signature, computed from the run's file alone."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from parley.statistics import results
from parley.store.archive import Archive
from parley.tables import Table, number, whisker


class Result:
    """What a run has found so far."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def data(self) -> dict[str, Any]:
        """All of it, in the form that `--json` prints (schema parley.result/1)."""
        with Archive(self.path) as archive:
            return {
                "schema": "parley.result/1",
                "run": run_facts(archive),
                **scored(archive),
                "violations": violated(archive),
                "cost": costs(archive),
            }

    @property
    def state(self) -> str:
        """running, done, stopped or failed; all but `done` mean that the result is partial."""
        return str(self.data["run"]["state"])

    @property
    def matches(self) -> list[dict[str, Any]]:
        """Every match with its seats, scores, violations and transcript."""
        with Archive(self.path) as archive:
            scores = archive.finished()
            return [
                {
                    **match,
                    "scores": {seat.key: by for seat, by in scores.get(match["number"], {}).items()},
                    "violations": archive.violations(match["number"]),
                    "notes": archive.notes(match["number"]),
                    "transcript": archive.messages(match["number"]),
                }
                for match in archive.matches()
            ]

    def table(self) -> Table:
        """Alias × role: mean, interval, n, with the interval drawn."""
        rows = self.data["results"]
        spans: dict[str, tuple[float, float]] = {}
        for metric in {row["metric"] for row in rows}:
            ends = [
                row[end] for row in rows if row["metric"] == metric for end in ("low", "mean", "high") if row[end] is not None
            ]
            spans[metric] = (min(ends), max(ends)) if ends else (0, 0)
        header = ["model", "role", "metric", "mean", "95% interval", "", "sd", "blocks", "matches", "missing"]
        lines = []
        for row in rows:
            bounds = "–" if row["low"] is None else f"{number(row['low'])} to {number(row['high'])}"
            drawn = whisker(row["low"], row["mean"], row["high"], spans[row["metric"]])
            unit = f"{row['metric']} ({row['unit']})" if row["unit"] else row["metric"]
            counts = [str(row[name]) for name in ("blocks", "matches", "missing")]
            lines.append([row["alias"], row["role"], unit, number(row["mean"]), bounds, drawn, number(row["sd"]), *counts])
        return Table(header, lines, left=3)

    def to_pandas(self) -> Any:
        """The results as a pandas data frame."""
        import pandas

        return pandas.DataFrame(self.data["results"])

    def to_polars(self) -> Any:
        """The results as a polars data frame."""
        import polars

        return polars.DataFrame(self.data["results"], infer_schema_length=None)

    def __repr__(self) -> str:
        return f"{self.data['run']['id']} ({self.state})\n{self.table()}"

    def _repr_html_(self) -> str:
        return f"<p>{self.data['run']['id']} ({self.state})</p>{self.table()._repr_html_()}"


def run_facts(archive: Archive) -> dict[str, Any]:
    """The `run` object of results and of `parley ls`."""
    config, counts = archive.config, archive.counts()
    return {
        "id": archive.id,
        "name": config.name,
        "task": archive.identity["task"],
        "params": config.params,
        "models": config.models,
        "plan": config.plan,
        "seed": config.seed,
        "state": archive.state,
        "stop": {"status": archive.status, "reason": archive.reason},
        "matches": {
            "planned": archive.planned,
            "done": counts.get("done", 0) + counts.get("aborted", 0),
            "failed": counts.get("failed", 0),
        },
        "parley": archive.identity["parley"],
        "created": datetime.fromtimestamp(archive.created, UTC).isoformat(timespec="seconds"),
    }


def scored(archive: Archive) -> dict[str, Any]:
    """The `results`, `pairs` and `ranks` objects."""
    metrics = {metric["name"]: metric for metric in archive.identity["metrics"]}
    bounds = {name: (metric["low"], metric["high"]) for name, metric in metrics.items()}
    observations = [
        results.Observation(score.block, score.match, score.alias, score.seat.role, score.metric, score.value)
        for score in archive.scores()
    ]
    served, config = archive.served(), archive.config
    order = list(metrics)
    cells = sorted(results.cells(observations, bounds), key=lambda cell: (order.index(cell.metric), cell.role, cell.alias))
    table = results.block_means(observations)
    pairs = results.pairs(table, bounds)
    lower = frozenset(name for name, metric in metrics.items() if metric["better"] == "lower")
    places = results.ranks(table, pairs, lower)
    by_metric = sorted(pairs, key=lambda pair: (order.index(pair.metric), pair.role, pair.a, pair.b))
    return {
        "results": [
            {
                "alias": cell.alias,
                "model_requested": config.models[cell.alias]["model"],
                "model_served": served.get(cell.alias, []),
                "role": cell.role,
                "metric": cell.metric,
                "unit": metrics[cell.metric]["unit"],
                "mean": cell.mean,
                "low": cell.interval.low,
                "high": cell.interval.high,
                "sd": cell.sd,
                "interval": cell.interval.kind,
                "blocks": cell.blocks,
                "matches": cell.matches,
                "missing": cell.missing,
                "signature": signature(archive, cell.matches),
            }
            for cell in cells
        ],
        "pairs": [vars(pair) for pair in by_metric],
        "ranks": [vars(rank) for rank in sorted(places, key=lambda r: (order.index(r.metric), r.role, r.low, r.high, r.alias))],
    }


def signature(archive: Archive, matches: int) -> str:
    """What a score rests on, in one line: two scores compare only if these agree."""
    from parley.catalogue import digest

    config, identity = archive.config, archive.identity
    params = [f"{name}:{value}" for name, value in config.params.items()]
    seats = sum(count for role, count in identity["seats"].items() if identity["roles"][role] == "contestant")
    words = digest("".join(f"{name}{text}" for name, text in sorted(identity["prompts"].items())))[:8]
    facts = [f"plan:{config.plan}", f"seats:{seats}", f"matches:{matches}", f"standardise:{config.standardise}"]
    if config.dataset:
        facts.append(f"dataset:{Path(config.dataset).name}")
    return "|".join(
        [identity["task"], *params, *facts, f"task:{identity['version']}", f"prompts:{words}", f"parley:{identity['parley']}"]
    )


def violated(archive: Archive) -> list[dict[str, Any]]:
    """The `violations` object: how often which model did what."""
    counted = Counter((each["alias"], each["kind"]) for each in archive.violations())
    return [{"alias": alias, "kind": kind, "count": count} for (alias, kind), count in sorted(counted.items())]


def costs(archive: Archive) -> list[dict[str, Any]]:
    """The `cost` object: calls and tokens by model and role; what is unknown is null, not zero."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in archive.usage():
        role = row["seat"].rpartition(".")[0] or row["seat"]
        cell = found.setdefault((row["alias"], role), {"alias": row["alias"], "role": role, "calls": 0})
        cell["calls"] += row["calls"]
        for name in ("tokens_in", "tokens_cached", "tokens_out"):
            known = [count for count in (cell.get(name), row[name]) if count is not None]
            cell[name] = sum(known) if known else None
        cell["usd"] = None
    return [found[key] for key in sorted(found)]
