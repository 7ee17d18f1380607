"""A run's result: every number with n, interval and signature, computed from the run's file alone."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from parley.catalogue import digest
from parley.errors import UsageError
from parley.statistics import results
from parley.store.archive import Archive
from parley.tables import Table, number, whisker

COLUMNS = (
    "alias", "model_requested", "model_served", "role", "metric", "unit", "mean", "low", "high", "sd", "interval", "blocks",
    "matches", "missing", "signature",
)  # fmt: skip


class Result:
    """What a run has found so far."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def data(self) -> dict[str, Any]:
        """All of it, in the form that `--json` prints (schema parley.result/1)."""
        with Archive(self.path) as archive:
            scores = scored(archive)
            return {
                "schema": "parley.result/1",
                "run": run_facts(archive),
                "results": scores["results"],
                "violations": violated(archive),
                "pairs": scores["pairs"],
                "ranks": scores["ranks"],
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
        """Alias × role: mean, interval, n, with the interval drawn, and what the numbers rest on."""
        rows = self.data["results"]
        spans: dict[str, tuple[float, float]] = {}
        for metric in {row["metric"] for row in rows}:
            known = [row[end] for row in rows if row["metric"] == metric for end in ("low", "mean", "high")]
            ends = [value for value in known if value is not None]
            spans[metric] = (min(ends), max(ends)) if ends else (0, 0)
        plain = self._plain()
        header = [*plain.header[:5], "", *plain.header[5:]]
        drawn = [whisker(row["low"], row["mean"], row["high"], spans[row["metric"]]) for row in rows]
        lines = [[*line[:5], drawing, *line[5:]] for line, drawing in zip(plain.rows, drawn, strict=True)]
        return Table(header, lines, left=3, note=plain.note)

    def render(self, form: str = "text") -> str:
        """The table in one of its forms; CSV has a column for everything, unrounded."""
        if form == "csv":
            names = [name for name in COLUMNS if name != "model_served"]
            cells = [["" if row[name] is None else str(row[name]) for name in names] for row in self.data["results"]]
            return Table(names, cells).render("csv")
        if not self.data["results"]:
            return "\n".join(self.remarks())
        return (self.table() if form in ("text", "html") else self._plain()).render(form)

    def _plain(self) -> Table:
        """The table without drawings."""
        header = ["model", "role", "metric", "mean", "95% interval", "sd", "blocks", "matches", "missing"]
        lines = []
        for row in self.data["results"]:
            mark = "*" if row["interval"] == "bounded" else ""
            bounds = "–" if row["low"] is None else f"{number(row['low'])} to {number(row['high'])}{mark}"
            unit = f"{row['metric']} ({row['unit']})" if row["unit"] else row["metric"]
            counts = [str(row[name]) for name in ("blocks", "matches", "missing")]
            lines.append([row["alias"], row["role"], unit, number(row["mean"]), bounds, number(row["sd"]), *counts])
        return Table(header, lines, left=3, note="\n".join(self.remarks()))

    def remarks(self) -> list[str]:
        """What belongs to the table: how the run stands, violations, ranks, what the scores rest on."""
        data, lines = self.data, []
        run = data["run"]
        if run["state"] != "done":
            played = f"{run['matches']['done']} of {run['matches']['planned']} matches"
            lines.append(f"{run['state']}: {played}" + (f"; {run['stop']['reason']}" if run["stop"]["reason"] else ""))
        if any(row["interval"] == "bounded" for row in data["results"]):
            lines.append("* all blocks agree exactly; the interval is the one for bounded scores, and wide for that reason")
        if data["violations"]:
            found = ", ".join(f"{each['alias']} {each['kind']} ×{each['count']}" for each in data["violations"])
            lines.append(f"violations: {found}")
        if data["results"]:
            primary = data["results"][0]["metric"]
            places = [rank for rank in data["ranks"] if rank["metric"] == primary]
            lines += [ranked(primary, role, places) for role in sorted({rank["role"] for rank in places})]
            lines.append(f"signature: {data['results'][0]['signature']}")
        return lines

    def to_pandas(self) -> Any:
        """The results as a pandas data frame."""
        return frames("pandas").DataFrame(self.data["results"])

    def to_polars(self) -> Any:
        """The results as a polars data frame."""
        return frames("polars").DataFrame(self.data["results"], infer_schema_length=None)

    def __repr__(self) -> str:
        return f"{self.data['run']['id']} ({self.state})\n{self.render()}"

    def _repr_html_(self) -> str:
        return f"<p>{self.data['run']['id']} ({self.state})</p>{self.table()._repr_html_()}"


def frames(library: str) -> Any:
    """A library for data frames, which is no part of the installation."""
    try:
        return import_module(library)
    except ImportError:
        raise UsageError(f"{library} is not installed: pip install 'parley-eval[frames]'") from None


def ranked(metric: str, role: str, places: list[dict[str, Any]]) -> str:
    """The places of all models in a role, in one line."""
    shown = [
        f"{rank['alias']} {rank['low']}" + (f"–{rank['high']}" if rank["high"] != rank["low"] else "")
        for rank in places
        if rank["role"] == role
    ]
    return f"ranks by {metric}, {role} (95%, Holm): {', '.join(shown)}"


def run_facts(archive: Archive) -> dict[str, Any]:
    """The `run` object of results and of `parley ls`."""
    config, counts = archive.config, archive.counts()
    return {
        "id": archive.id,
        "name": config.name or None,
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
    """What a score rests on, in one line: two scores compare only if these agree.

    `field` stands for who else was at the table, and is there only where somebody was.
    """
    config, identity = archive.config, archive.identity
    params = [f"{name}:{value}" for name, value in config.params.items()]
    seats = sum(count for role, count in identity["seats"].items() if identity["roles"][role] == "contestant")
    facts = [f"plan:{config.plan}", f"seats:{seats}", f"matches:{matches}", f"standardise:{config.standardise}"]
    if seats > 1:
        facts.append(f"field:{short([config.models[alias] for alias in config.contestants])}")
    for role, panel in sorted(config.instruments.items()):
        judges = [config.models[alias] for alias in panel]
        facts.append(f"{role}:{'+'.join(str(judge['model']) for judge in judges)}@{short(judges)}")
    if identity.get("items"):
        facts.append(f"items:{identity['items']}")
    words = short(sorted(identity["prompts"].items()))
    return "|".join(
        [identity["task"], *params, *facts, f"task:{identity['version']}", f"prompts:{words}", f"parley:{identity['parley']}"]
    )


def short(value: Any) -> str:
    """A few letters that stand for a value."""
    return digest(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())[:8]


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
