"""A run's result: every number with n, interval and signature, computed from the run's file
alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from parley.errors import UsageError, unknown
from parley.money import LookUp, costs, is_free, priced, prices_of, remark
from parley.results.parts.differences import PARTS, paths, rows_of
from parley.results.parts.external import external
from parley.results.parts.judges import judges
from parley.results.parts.outcomes import outcomes
from parley.results.parts.rejudged import again
from parley.results.parts.rounds import by_partner, by_round, passes
from parley.results.parts.topics import topics
from parley.results.scores import (
    Findings,
    asked_without,
    not_finished,
    run_facts,
    unfinished,
    violated,
)
from parley.statistics.intervals import ALPHA
from parley.store import RunReader
from parley.store.sqlite.reader import SqliteReader
from parley.tables import Table, between, number, whisker
from parley.tasks._common.corpus_analysis import corpus
from parley.tasks.kieval.analysis import stops
from parley.tasks.word_guessing.analysis import guessing

COUNTS = ("blocks", "matches", "missing", "violations")
COLUMNS = (
    "alias", "model_requested", "model_served", "role", "metric", "unit", "mean", "low", "high",
    "sd", "interval", "blocks", "matches", "missing", "violations", "signature",
)  # fmt: skip
NOTES = {
    "bounded": (
        "* an interval for bounded scores: for so few blocks an end of the range is near, or all "
        "blocks agree exactly"
    ),
    "anytime": (
        "intervals hold at every look, all of a metric together: the run looks at what it plays"
    ),
}


UNSAFE = (
    "UNSAFE: what models wrote was run without isolation; a program can have changed anything, "
    "these numbers too"
)


class Result:
    """What a run has found so far; `interval` may ask for a bootstrap over blocks instead of
    Student's t.

    `scores` names a file with scores from elsewhere (`alias`, and columns of scores), for the part
    `external`.
    """

    def __init__(
        self,
        path: str | Path,
        interval: str = "block",
        reasoned: bool = True,
        scores: str | Path | None = None,
        look_up: LookUp | None = None,
    ) -> None:
        """`reasoned`: whether the table says why a run stopped. `look_up` finds prices that the run
        did not record."""
        self.path, self._method, self._reasoned, self._scores = (
            Path(path),
            interval,
            reasoned,
            scores,
        )
        self._look_up = look_up

    @cached_property
    def data(self) -> dict[str, Any]:
        """All of it, in the form that `--json` prints (schema parley.result/1)."""
        with SqliteReader(self.path) as reader:
            findings = Findings(reader, self._method)
            pairs, results, tables = findings.pairs(), findings.results(), findings.tables()
            return {
                "schema": "parley.result/1",
                "run": {**run_facts(reader), "unfinished": unfinished(reader)},
                "digits": {
                    name: metric.get("digits", 2) for name, metric in findings.metrics.items()
                },
                "results": results,
                "leading": {
                    role: metric for role in findings.roles if (metric := findings.leading(role))
                },
                "violations": violated(reader),
                "left_out": reader.unsupported_options(),
                "pairs": [vars(pair) for pair in pairs],
                "ranks": [vars(rank) for rank in findings.ranks(pairs)],
                "positions": findings.positions(),
                "tables": tables,
                "corpus": corpus(findings, tables),
                "ratings": findings.ratings(),
                "outcomes": outcomes(findings),
                "stability": findings.stability(),
                "rounds": by_round(findings, results),
                "partners": by_partner(findings, tables),
                "passes": passes(findings),
                "judges": judges(findings),
                "guessing": guessing(findings, results),
                "topics": topics(findings),
                "external": external(results, self._scores) if self._scores else [],
                "stops": stops(findings),
                "rejudged": again(findings),
                "programs": programs(reader),
                "cost": costs(reader, prices := prices_of(reader, self._look_up)),
                "prices": priced(reader, prices),
            }

    @property
    def state(self) -> str:
        """running, done, stopped or failed; all but `done` mean that the result is partial."""
        return str(self.data["run"]["state"])

    @property
    def matches(self) -> list[dict[str, Any]]:
        """Every match with its seats, scores, violations and transcript."""
        with SqliteReader(self.path) as reader:
            scores = reader.scores_by_match()
            return [
                {
                    **match.to_dict(),
                    "scores": {seat.key: by for seat, by in scores.get(match.number, {}).items()},
                    "violations": [each.to_dict() for each in reader.violations(match.number)],
                    "notes": [note.to_dict() for note in reader.notes_of(match.number)],
                    "transcript": reader.messages(match.number),
                }
                for match in reader.matches()
            ]

    def table(self) -> Table:
        """Alias × role: mean, interval, n, with the interval drawn, and what the numbers rest
        on."""
        rows = self.data["results"]
        spans: dict[str, tuple[float, float]] = {}
        for metric in {row["metric"] for row in rows}:
            known = [
                row[end]
                for row in rows
                if row["metric"] == metric
                for end in ("low", "mean", "high")
            ]
            ends = [value for value in known if value is not None]
            spans[metric] = (min(ends), max(ends)) if ends else (0, 0)
        plain = self._plain()
        header = [*plain.header[:5], "", *plain.header[5:]]
        drawn = [
            whisker(row["low"], row["mean"], row["high"], spans[row["metric"]]) for row in rows
        ]
        lines = [
            [*line[:5], drawing, *line[5:]] for line, drawing in zip(plain.rows, drawn, strict=True)
        ]
        return Table(header, lines, left=3, note=plain.note)

    def render(self, form: str = "text", part: str = "results") -> str:
        """A part of the result in one of its forms; CSV has a column for everything, unrounded."""
        if part != "results":
            if part not in PARTS:
                raise unknown("part", part, ["results", *PARTS])
            return self._part(part, form)
        if form == "csv":
            names = [name for name in COLUMNS if name != "model_served"]
            cells = [
                ["" if row[name] is None else str(row[name]) for name in names]
                for row in self.data["results"]
            ]
            return Table(names, cells).render("csv")
        if not self.data["results"]:
            return "\n".join(self.remarks())
        return (self.table() if form in ("text", "html") else self._plain()).render(form)

    def _part(self, part: str, form: str) -> str:
        """A part of the result; its rows as they are for machines, with the signature for
        people."""
        if form == "csv":
            rows = rows_of(part, self.data)
            names = list(rows[0]) if rows else []
            cells = [
                ["" if row[name] is None else str(row[name]) for name in names] for row in rows
            ]
            return Table(names, cells).render("csv") if rows else ""
        *first, last = PARTS[part](self.data)
        if not last.rows:
            return str(last.header[0])
        signature = (
            [f"signature: {self.data['results'][0]['signature']}"]
            if self.data["results"] and last.rows
            else []
        )
        standing = [] if self.data["run"]["state"] == "done" else self._standing()
        last = replace(
            last,
            note="\n".join(filter(None, [last.note, *standing, *unsafe(self.data), *signature])),
        )
        return "\n\n".join(table.render(form) for table in [*first, last])

    def _plain(self) -> Table:
        """The table without drawings."""
        header = ["model", "role", "metric", "mean", f"{self._level()} interval", "sd", *COUNTS]
        lines = []
        for row in self.data["results"]:
            digits, mark = (
                self.data["digits"][row["metric"]],
                "*" if row["interval"] == "bounded" else "",
            )
            bounds = f"{between(row['low'], row['high'], digits)}{mark}"
            unit = f"{row['metric']} ({row['unit']})" if row["unit"] else row["metric"]
            mean, sd, counts = (
                number(row["mean"], digits),
                number(row["sd"], digits),
                [str(row[name]) for name in COUNTS],
            )
            lines.append([row["alias"], row["role"], unit, mean, bounds, sd, *counts])
        return Table(header, lines, left=3, note="\n".join(self.remarks()))

    def _level(self) -> str:
        """How sure the intervals are."""
        stability = self.data["stability"]
        return f"{100 * (1 - (stability['alpha'] if stability else ALPHA)):g}%"

    def remarks(self) -> list[str]:
        """What belongs to the table: how the run stands, violations, cost, ranks, what the scores
        rest on."""
        data, lines = self.data, self._standing()
        run = data["run"]
        if data["rejudged"]:
            lines.append(
                f"{' and '.join(data['rejudged']['roles'])} of {data['rejudged']['run']}, judged "
                f"again: no contestant was called"
            )
        lines += (
            [f"excluded, and not played: {', '.join(run['excluded'])}"] if run["excluded"] else []
        )
        lines += unsafe(data) + forgeable(data) + partial_panel(data)
        kinds = {row["interval"] for row in data["results"]}
        lines += [note for kind, note in NOTES.items() if kind in kinds]
        lines += paths(data["stability"])
        if data["violations"]:
            found = ", ".join(
                f"{each['alias']} {each['kind']} ×{each['count']}" for each in data["violations"]
            )
            lines.append(f"violations: {found}")
        lines += asked_without(data["left_out"])
        lines += remark([row for row in data["cost"] if not is_free(run["models"][row["alias"]])])
        if data["results"]:
            sure = f"{self._level()}, {'at every look' if data['stability'] else 'Holm'}"
            for role, metric in sorted(data["leading"].items()):
                places = [
                    rank
                    for rank in data["ranks"]
                    if (rank["metric"], rank["role"]) == (metric, role)
                ]
                lines += [ranked(metric, role, places, sure)] if places else []
            lines.append(f"signature: {data['results'][0]['signature']}")
        return lines

    def _standing(self) -> list[str]:
        """How the run stands, where there is anything to say to that."""
        run, stop = self.data["run"], self.data["run"]["stop"]
        if run["state"] == "done":
            return (
                [f"{stop['status'].replace('_', ' ')}: {stop['reason']}"]
                if stop["status"] and stop["reason"]
                else []
            )
        # where nobody knows how many there will be
        of = "" if self.data["stability"] else f" of {run['matches']['planned']}"
        why = f"; {stop['reason']}" if stop["reason"] and self._reasoned else ""
        return [
            f"{run['state']}: {run['matches']['done']}{of} matches{why}",
            *not_finished(run["unfinished"]),
        ]

    def to_pandas(self) -> Any:
        """The results as a pandas data frame."""
        return frames("pandas").DataFrame(self.data["results"])

    def to_polars(self) -> Any:
        """The results as a polars data frame."""
        return frames("polars").DataFrame(self.data["results"], infer_schema_length=None)

    def report(self, path: str | Path) -> Path:
        """All parts of the result on one self-contained page."""
        # which stands above results: only this door leads up
        making = import_module("parley.report.build")
        place: Path = making.written(path, making.report([self.path]).render("html"))
        return place

    def __repr__(self) -> str:
        return f"{self.data['run']['id']} ({self.state})\n{self.render()}"

    def _repr_html_(self) -> str:
        return f"<p>{self.data['run']['id']} ({self.state})</p>{self.table()._repr_html_()}"


def programs(reader: RunReader) -> dict[str, int] | None:
    """How many programs were judged, and how many of them where they could interfere; None where a
    task runs none."""
    if not reader.info.identity.get("runs_code"):
        return None
    found = reader.verdict_kinds()
    return {"run": found.total(), "inside": found["inside"]}


def unsafe(data: dict[str, Any]) -> list[str]:
    """The word of warning for a run whose programs nothing held."""
    return [UNSAFE] if data["run"]["sandbox"] == "none" else []


def forgeable(data: dict[str, Any]) -> list[str]:
    """How many verdicts a hostile program could have forged."""
    found = data["programs"]
    if not found or not found["inside"]:
        return []
    were = "was" if found["inside"] == 1 else "were"
    return [
        f"{found['inside']} of {found['run']} programs {were} judged inside their own process, "
        f"where they could forge it"
    ]


def partial_panel(data: dict[str, Any]) -> list[str]:
    """What to know of judges before their scores are believed."""
    found, lines = data["judges"], []
    if found and found["incomplete"]["matches"]:
        lines.append(
            "a vote is missing in {matches} of {of} matches (see --part judges)".format(
                **found["incomplete"]
            )
        )
    if found and found["also_play"]:
        lines.append(
            f"judges whose models play as well: {', '.join(found['also_play'])} (see --part judges)"
        )
    return lines


def frames(library: str) -> Any:
    """A library for data frames, which is no part of the installation."""
    try:
        return import_module(library)
    except ImportError:
        raise UsageError(f"{library} is not installed: pip install 'parley-eval[frames]'") from None


def ranked(metric: str, role: str, places: list[dict[str, Any]], sure: str) -> str:
    """The places of all models in a role, in one line."""
    shown = [
        f"{rank['alias']} {rank['low']}"
        + (f"–{rank['high']}" if rank["high"] != rank["low"] else "")
        for rank in places
        if rank["role"] == role
    ]
    return f"ranks by {metric}, {role} ({sure}): {', '.join(shown)}"
