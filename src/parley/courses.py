"""Parts of a result that follow versions, samples and judges, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parley.tables import Table, between, nothing, number, signed

Data = Mapping[str, Any]


def rounds(data: Data) -> list[Table]:
    """A score from round to round: by model and role, and by pair."""
    if not data["rounds"]:
        return [nothing("no score of this task goes from round to round")]
    numbers = sorted({row["round"] for row in data["rounds"]})
    found: dict[tuple[str, str], dict[int, str]] = {(row["role"], row["alias"]): {} for row in data["rounds"]}
    for row in data["rounds"]:
        found[row["role"], row["alias"]][row["round"]] = f"{number(row['mean'])} ({between(row['low'], row['high'])})"
    header = [f"round {each}" for each in numbers]
    lines = [[alias, role, *(by.get(each, "–") for each in numbers)] for (role, alias), by in found.items()]
    note = "means with 95% intervals; after the end the last version stands"
    return [Table(["model", "role", *header], lines, left=2, note=note), *(partners(data) if data["partners"] else [])]


def partners(data: Data) -> list[Table]:
    """The score of whoever writes, from round to round, with each who comments."""
    if not data["partners"]:
        return [nothing("no score of this task goes from round to round between two")]
    numbers = sorted({row["round"] for row in data["partners"]})
    pairs: dict[tuple[str, str], dict[int, str]] = {}
    for row in data["partners"]:
        pairs.setdefault((row["first"], row["second"]), {})[row["round"]] = f"{number(row['mean'])} ({row['matches']})"
    roles = [data["partners"][0][name] for name in ("first_role", "second_role")]
    lines = [[*pair, *(by.get(each, "–") for each in numbers)] for pair, by in pairs.items()]
    return [Table([*roles, *(f"round {each}" for each in numbers)], lines, left=2, note="means (matches)")]


def passes(data: Data) -> list[Table]:
    """The chance that one of K samples succeeds."""
    if not data["passes"]:
        return [nothing("no metric of this task says what success is, or nothing was played")]
    ks = sorted({row["k"] for row in data["passes"]})
    found: dict[tuple[str, str, str], dict[int, str]] = {}
    for row in data["passes"]:
        shown = f"{number(row['mean'])} ({between(row['low'], row['high'])})"
        found.setdefault((row["alias"], row["role"], row["metric"]), {})[row["k"]] = shown
    lines = [[*key, *(by.get(k, "–") for k in ks)] for key, by in found.items()]
    note = "unbiased estimate, mean over items with its 95% interval; the matches on one item are the samples"
    return [Table(["model", "role", "metric", *(f"K = {k}" for k in ks)], lines, left=3, note=note)]


def rejudged(data: Data) -> list[Table]:
    """Scores before and now, where matches were judged again."""
    found = data["rejudged"]
    if found is None:
        return [nothing("this run was judged once (see `parley rejudge`)")]
    lines = []
    for row in found["models"]:
        digits = data["digits"][row["metric"]]
        shown = [number(row["before"], digits), number(row["now"], digits), signed(row["difference"], digits)]
        lines.append(
            [row["alias"], row["role"], row["metric"], *shown, between(row["low"], row["high"], digits), str(row["blocks"])]
        )
    before = "; ".join(f"{role}: {', '.join(panel) or 'nobody'}" for role, panel in found["before"].items())
    note = f"before: {found['run']} ({before}); the difference on the blocks that have both, with its 95% interval"
    header = ["model", "role", "metric", "before", "now", "now − before", "95% interval", "blocks"]
    models = Table(header, lines, left=3, note=note)
    lines = [
        [row["role"], row["metric"], row["kind"], number(row["value"]), between(row["low"], row["high"]), str(row["n"])]
        for row in found["agreement"]
    ]
    note = "over matches: Krippendorff's alpha (1: the same scores), Pearson's r (1: the same order and distances)"
    return [models, Table(["role", "metric", "agreement", "value", "95% interval", "n"], lines, left=3, note=note)]


def judges(data: Data) -> list[Table]:
    """Judges among themselves and beside what was measured."""
    found = data["judges"]
    if found is None or not found["panel"]:
        return [nothing("no judge was seated")]
    panel = [[each["judge"], str(each["votes"]), number(each["mean"])] for each in found["panel"]]
    tables = [Table(["judge", "votes", "mean"], panel)]
    if any(each["judges"] > 1 for each in found["agreement"]):
        lines = [
            [each["role"], str(each["judges"]), number(each["value"]), between(each["low"], each["high"]), str(each["n"])]
            for each in found["agreement"]
        ]
        tables.append(Table(["judged role", "judges", "alpha", "95% interval", "judged"], lines, note="Krippendorff's alpha"))
    lines = [
        [each["role"], each["over"], number(each["value"]), between(each["low"], each["high"]), str(each["n"])]
        for each in found["validity"]
    ]
    note = f"correlation of {found['metric']} with {found['measured']}: Pearson's r over matches, rank correlations else"
    return [*tables, Table(["role", "over", "r", "95% interval", "n"], lines, left=2, note=note)]
