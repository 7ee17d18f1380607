"""Parts of a result that follow versions, samples, judges, guesses and topics, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parley.tables import Table, between, nothing, number

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


def fixed(data: Data) -> str:
    """What to know of an interval that is made for a number of blocks fixed beforehand, where it was not."""
    return "; intervals as if the number of blocks had been fixed beforehand" if data["stability"] else ""


def guessing(data: Data) -> list[Table]:
    """How matches of word guessing went, and what stands beside the means."""
    found = data["guessing"]
    if found is None:
        return [nothing("no words were guessed in this run")]
    went = [[each["what"], f"{each['count']} of {each['of']}", *shared(each)] for each in found["matches"]]
    rows = [
        [each["alias"], *(number(each[name], 3) for name in ("comprehension", "confusion", "age", "harmonic"))]
        + [*shared(each["zeros"]), *shared(each["guessed"]), str(each["matches"])]
        for each in found["models"]
    ]
    header = ["model", "comprehension", "confusion", "age", "of the means", "age is 0", "95% interval"]
    header += ["both words guessed", "95% interval", "matches"]
    note = "age: the mean over matches of the harmonic mean; of the means: the harmonic mean of the two means"
    note += fixed(data)
    return [Table(["matches", "", "share", "95% interval"], went), Table(header, rows, note=note)]


def shared(found: Data) -> list[str]:
    """A share and its interval."""
    return [number(found["share"]), between(found["low"], found["high"])]


def topics(data: Data) -> list[Table]:
    """The leading score by topic and model."""
    if not data["topics"]:
        return [nothing("the items of this run have no topics, or nothing was played")]
    leading = data["topics"][0]["metric"]
    rows = [row for row in data["topics"] if row["metric"] == leading]
    aliases, digits = sorted({row["alias"] for row in rows}), data["digits"][leading]
    cells: dict[tuple[str, str], dict[str, Data]] = {}
    for row in rows:
        cells.setdefault((row["topic"], row["role"]), {})[row["alias"]] = row
    lines = []
    for (topic, role), by in cells.items():
        means = [row["mean"] for row in by.values() if row["mean"] is not None]
        middle = number(sum(means) / len(means) if means else None, digits)
        lines.append([topic, role, *(heat(by.get(alias), digits) for alias in aliases), middle])
    note = f"{leading}: mean (95% interval; blocks), and the mean over models; other metrics are in CSV and JSON{fixed(data)}"
    return [Table(["topic", "role", *aliases, "mean"], lines, left=2, note=note)]


def heat(cell: Data | None, digits: int) -> str:
    """A cell of a heat map."""
    if cell is None or cell["mean"] is None:
        return "–"
    return f"{number(cell['mean'], digits)} ({between(cell['low'], cell['high'], digits)}; {cell['blocks']})"


def external(data: Data) -> list[Table]:
    """Rank correlations with scores from elsewhere."""
    if not data["external"]:
        return [nothing("scores from elsewhere come in a file: --scores FILE.csv, with a column `alias` and columns of scores")]
    rows = [
        [row["score"], row["metric"], row["role"], number(row["rho"]), between(row["low"], row["high"])]
        + [number(row["p"], 3), str(row["models"]), str(row["left_out"])]
        for row in data["external"]
    ]
    header = ["score", "metric", "role", "rho", "95% interval", "p", "models", "without a score"]
    return [Table(header, rows, left=3, note="Spearman's rank correlation over models; few models say little")]
