"""What word guessing shows beyond its scores (AGE §4): how matches went, means over matches, scores
that are zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from parley.results.parts.courses import fixed
from parley.results.scores import Findings
from parley.statistics.intervals import interval
from parley.tables import Table, between, nothing, number
from parley.tasks.word_guessing.scoring import age, went_beyond

Data = Mapping[str, Any]
MEANS = ("comprehension", "confusion", "age")


def guessing(findings: Findings, results: list[dict[str, Any]]) -> dict[str, Any] | None:
    """How many matches took more than two rounds and had both words guessed, and every model's
    means over its matches."""
    played = {
        match.number: (match.block, note.facts["guessing"])
        for match in findings.matches
        for note in findings.reader.notes_of(match.number)
        if "guessing" in note.facts
    }
    if not played:
        return None
    went = [
        (block, went_beyond(note["both"], note["rounds"]), note["both"] is not None)
        for block, note in played.values()
    ]
    shares = {
        "took more than two rounds": [(block, beyond) for block, beyond, _ in went],
        "of these, both words guessed": [(block, both) for block, beyond, both in went if beyond],
        "of all, both words guessed": [(block, both) for block, _, both in went],
    }
    models = []
    for alias in findings.config.contestants:
        own = [row for row in findings.observations if row.alias == alias]
        scores = {
            name: [
                (row.block, row.value)
                for row in own
                if row.metric == name and row.value is not None
            ]
            for name in MEANS
        }
        means = {name: over_matches(scores[name], findings.method) for name in MEANS}
        notes = [
            (row.block, played[row.match][1])
            for row in own
            if row.metric == "age" and row.match in played
        ]
        rest = {
            "harmonic": of_means(means["comprehension"]["mean"], means["confusion"]["mean"]),
            "zeros": share(
                [(block, value == 0) for block, value in scores["age"]], findings.method
            ),
            "guessed": share(
                [(block, note["both"] is not None) for block, note in notes], findings.method
            ),
            "scored": len(scores["age"]),
            "missing": sum(
                row["missing"] for row in results if (row["alias"], row["metric"]) == (alias, "age")
            ),
        }
        models.append({"alias": alias, **means, **rest})
    return {
        "matches": [
            {"what": what, **share(rows, findings.method)} for what, rows in shares.items()
        ],
        "models": models,
    }


def of_means(comprehension: float | None, confusion: float | None) -> float | None:
    """The harmonic mean of two means, where both are known: more than the mean of harmonic
    means."""
    return None if comprehension is None or confusion is None else age(comprehension, confusion)


def over_matches(rows: list[tuple[str, float]], method: str) -> dict[str, float | None]:
    """The mean of all matches, each counted once, and an interval over blocks, of which some may
    have more matches than others.

    A ratio estimator (Cochran 1977, §6.4): a block of the usual size stands for its mean, a smaller
    or larger one for what it does to the mean of all.
    """
    if not rows:
        return {"mean": None, "low": None, "high": None}
    mean, blocks = fmean(value for _, value in rows), defaultdict[str, list[float]](list)
    for block, value in rows:
        blocks[block].append(value)
    usual = len(rows) / len(blocks)
    worth = [(sum(values) + mean * (usual - len(values))) / usual for values in blocks.values()]
    low, high, _ = interval(worth, (0.0, 1.0), method=method)
    return {"mean": mean, "low": low, "high": high}


def share(rows: list[tuple[str, bool]], method: str) -> dict[str, Any]:
    """How many of so many, and the share of them with its interval."""
    found = over_matches([(block, float(holds)) for block, holds in rows], method)
    return {
        "count": sum(holds for _, holds in rows),
        "of": len(rows),
        "share": found.pop("mean"),
        **found,
    }


def guessing_tables(data: Data) -> list[Table]:
    """How matches of word guessing went, and every model's means."""
    found = data["guessing"]
    if found is None:
        return [nothing("no words were guessed in this run")]
    went = [
        [each["what"], f"{each['count']} of {each['of']}", *shared(each)]
        for each in found["matches"]
    ]
    rows = [
        [
            each["alias"],
            *(number(each[name]["mean"], 3) for name in MEANS),
            between(each["age"]["low"], each["age"]["high"], 3),
        ]
        + [number(each["harmonic"], 3), *shared(each["zeros"]), *shared(each["guessed"])]
        + [str(each["scored"]), str(each["missing"])]
        for each in found["models"]
    ]
    header = [
        "model",
        *MEANS,
        "95% interval",
        "of the means",
        "age is 0",
        "95% interval",
        "both words guessed",
        "95% interval",
    ]
    note = (
        "means over scored matches, each of which counts once (in the results each pair of "
        "words counts once)\n"
    )
    note += (
        "of the means: the harmonic mean of mean comprehension and mean confusion, "
        "never below the mean of age"
    )
    note += fixed(data)
    return [
        Table(["matches", "", "share", "95% interval"], went),
        Table([*header, "scored matches", "missing"], rows, note=note),
    ]


def shared(found: Data) -> list[str]:
    """A share and its interval."""
    return [number(found["share"]), between(found["low"], found["high"])]


def guessing_rows(found: Data) -> list[dict[str, Any]]:
    """All of it in rows of one form: what is about a model has its alias."""
    rows = [row("", each["what"], each["share"], each) for each in found["matches"]]
    for each in found["models"]:
        counts = {"of": each["scored"], "missing": each["missing"]}
        rows += [
            row(each["alias"], name, each[name]["mean"], {**each[name], **counts}) for name in MEANS
        ]
        rows.append(row(each["alias"], "harmonic mean of the means", each["harmonic"], counts))
        rows.append(
            row(
                each["alias"],
                "age is 0",
                each["zeros"]["share"],
                {**each["zeros"], "missing": each["missing"]},
            )
        )
        rows.append(
            row(each["alias"], "both words guessed", each["guessed"]["share"], each["guessed"])
        )
    return rows


def row(alias: str, what: str, value: float | None, found: Data) -> dict[str, Any]:
    """A number, and what is known about it."""
    return {"alias": alias, "what": what, "value": value} | {
        name: found.get(name) for name in ("low", "high", "count", "of", "missing")
    }
