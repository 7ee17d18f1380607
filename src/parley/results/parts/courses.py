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
    found: dict[tuple[str, str], dict[int, str]] = {
        (row["role"], row["alias"]): {} for row in data["rounds"]
    }
    for row in data["rounds"]:
        found[row["role"], row["alias"]][row["round"]] = (
            f"{number(row['mean'])} ({between(row['low'], row['high'])})"
        )
    header = [f"round {each}" for each in numbers]
    lines = [
        [alias, role, *(by.get(each, "–") for each in numbers)]
        for (role, alias), by in found.items()
    ]
    level = f"{100 * (1 - data['stability']['alpha']):g}%" if data["stability"] else "95%"
    note = f"means with {level} intervals; after the end the last version stands"
    return [
        Table(["model", "role", *header], lines, left=2, note=note),
        *(partners(data) if data["partners"] else []),
    ]


def partners(data: Data) -> list[Table]:
    """The score of whoever writes, from round to round, with each who comments."""
    if not data["partners"]:
        return [nothing("no score of this task goes from round to round between two")]
    numbers = sorted({row["round"] for row in data["partners"]})
    pairs: dict[tuple[str, str], dict[int, str]] = {}
    for row in data["partners"]:
        pairs.setdefault((row["first"], row["second"]), {})[row["round"]] = (
            f"{number(row['mean'])} ({row['matches']})"
        )
    roles = [data["partners"][0][name] for name in ("first_role", "second_role")]
    lines = [[*pair, *(by.get(each, "–") for each in numbers)] for pair, by in pairs.items()]
    return [
        Table(
            [*roles, *(f"round {each}" for each in numbers)], lines, left=2, note="means (matches)"
        )
    ]


def passes(data: Data) -> list[Table]:
    """The chance that one of K samples succeeds."""
    if not data["passes"]:
        return [
            nothing(
                "Pass@K is for metrics that say what success is, on items; there is none here, "
                "or nothing was played"
            )
        ]
    ks = sorted({row["k"] for row in data["passes"]})
    found: dict[tuple[str, str, str], dict[int, str]] = {}
    for row in data["passes"]:
        shown = f"{number(row['mean'])} ({between(row['low'], row['high'])})"
        found.setdefault((row["alias"], row["role"], row["metric"]), {})[row["k"]] = shown
    lines = [[*key, *(by.get(k, "–") for k in ks)] for key, by in found.items()]
    note = (
        f"unbiased estimate, mean over items with its 95% interval; the matches on one item are "
        f"the samples{fixed(data)}"
    )
    return [Table(["model", "role", "metric", *(f"K = {k}" for k in ks)], lines, left=3, note=note)]


def outcomes(data: Data) -> list[Table]:
    """Matches won, drawn and lost, and what they were lost by."""
    if not data["outcomes"]:
        return [nothing("outcomes are for matches of two that one wins")]
    ends = list(dict.fromkeys(end for row in data["outcomes"] for end in row["by"]))
    lines = [
        [
            row["alias"],
            row["seat"],
            *(str(row[kind]) for kind in ("matches", "won", "drawn", "lost")),
        ]
        + [str(row["by"].get(end, 0)) for end in ends]
        for row in data["outcomes"]
    ]
    header = ["model", "seat", "matches", "won", "drawn", "lost", *(f"by {end}" for end in ends)]
    return [
        Table(
            header,
            lines,
            left=2,
            note="numbers of matches; win rates with their intervals stand in --part roles",
        )
    ]


def aspects(data: Data) -> list[Table]:
    """All metrics of a model in one row (KIEval, tables 8 to 12)."""
    metrics = list(dict.fromkeys(row["metric"] for row in data["results"]))
    if len(metrics) < 2:
        return [
            nothing(
                "aspects are for tasks with several metrics, and there is one here, "
                "or nothing was played"
            )
        ]
    found: dict[tuple[str, str], dict[str, str]] = {}
    counts: dict[tuple[str, str], int] = {}
    for row in data["results"]:
        digits, key = data["digits"][row["metric"]], (row["alias"], row["role"])
        shown = f"{number(row['mean'], digits)} ({between(row['low'], row['high'], digits)})"
        found.setdefault(key, {})[row["metric"]] = shown
        counts[key] = max(counts.get(key, 0), row["blocks"])
    lines = [
        [*key, *(by.get(metric, "–") for metric in metrics), str(counts[key])]
        for key, by in found.items()
    ]
    return [
        Table(
            ["model", "role", *metrics, "blocks"], lines, left=2, note="means with their intervals"
        )
    ]


def stops(data: Data) -> list[Table]:
    """Why interviews ended (KIEval, figure 4), and first answers that could not be read."""
    if not data["stops"]:
        return [nothing("no interview was held in this run")]
    ends = list(dict.fromkeys(end for row in data["stops"] for end in row["reasons"]))
    lines = [
        [
            row["alias"],
            row["role"],
            str(row["interviews"]),
            *(str(row["reasons"].get(end, 0)) for end in ends),
        ]
        + [cell for kind in ("early", "unreadable") for cell in share(row[kind])]
        for row in data["stops"]
    ]
    header = [
        "model",
        "role",
        "interviews",
        *(end.replace("_", " ") for end in ends),
        "ended early",
        "95% interval",
    ]
    header += ["first answer unreadable", "95% interval"]
    note = (
        f"interviews by what ended them; none: they went on to the last round; intervals over "
        f"questions{fixed(data)}"
    )
    return [Table(header, lines, left=2, note=note)]


def share(found: Mapping[str, Any]) -> list[str]:
    """A share in percent, and its interval."""
    low, high = (None if found[end] is None else 100 * found[end] for end in ("low", "high"))
    return [f"{number(100 * found['share'], 1)}%", between(low, high, 1)]


def rejudged(data: Data) -> list[Table]:
    """Scores before and now, where matches were judged again."""
    found = data["rejudged"]
    if found is None:
        return [nothing("this run was judged once (see `parley rejudge`)")]
    lines = []
    for row in found["models"]:
        digits = data["digits"][row["metric"]]
        shown = [
            number(row["before"], digits),
            number(row["now"], digits),
            signed(row["difference"], digits),
        ]
        lines.append(
            [
                row["alias"],
                row["role"],
                row["metric"],
                *shown,
                between(row["low"], row["high"], digits),
                str(row["blocks"]),
            ]
        )
    before = "; ".join(
        f"{role}: {', '.join(panel) or 'nobody'}" for role, panel in found["before"].items()
    )
    note = (
        f"before: {found['run']} ({before}); the difference on the blocks that have both, "
        f"with its 95% interval"
    )
    header = ["model", "role", "metric", "before", "now", "now − before", "95% interval", "blocks"]
    models = Table(header, lines, left=3, note=note)
    lines = [
        [
            row["role"],
            row["metric"],
            row["kind"],
            number(row["value"]),
            between(row["low"], row["high"]),
            str(row["n"]),
        ]
        for row in found["agreement"]
    ]
    note = (
        "over matches: Krippendorff's alpha (1: the same scores), Pearson's r (1: "
        "the same order and distances)"
    )
    return [
        models,
        Table(
            ["role", "metric", "agreement", "value", "95% interval", "n"], lines, left=3, note=note
        ),
    ]


def judges(data: Data) -> list[Table]:
    """Judges one by one, among themselves, beside what was measured, and what they favour."""
    found = data["judges"]
    if found is None or not found["panel"]:
        return [nothing("no judge was seated")]
    panel = [
        [
            each["judge"],
            each["role"],
            number(each["mean"]),
            between(each["low"], each["high"]),
            str(each["blocks"]),
        ]
        + [f"{each['votes']} of {each['asked']}"]
        for each in found["panel"]
    ]
    missing = found["incomplete"]
    note = (
        f"in {missing['matches']} of {missing['of']} matches a vote is missing"
        if missing["matches"]
        else ""
    )
    tables = [
        Table(
            ["judge", "judged role", "mean", "95% interval", "blocks", "votes"],
            panel,
            left=2,
            note=note,
        )
    ]
    if any(each["judges"] > 1 for each in found["agreement"]):
        lines = [
            [
                each["role"],
                str(each["judges"]),
                number(each["value"]),
                between(each["low"], each["high"]),
                str(each["n"]),
            ]
            for each in found["agreement"]
        ]
        twice = any(each["one_model_twice"] for each in found["agreement"])
        note = "Krippendorff's alpha of ordinal marks, over what two or more have judged"
        note += (
            "; one model sits there twice: with itself, it agrees by being itself" if twice else ""
        )
        tables.append(
            Table(["judged role", "judges", "alpha", "95% interval", "judged"], lines, note=note)
        )
    if found["validity"]:
        lines = [
            [
                each["role"],
                each["measured"],
                each["over"],
                number(each["value"]),
                between(each["low"], each["high"]),
            ]
            + [str(each["n"])]
            for each in found["validity"]
        ]
        note = (
            f"correlation of {found['metric']} with what was measured: Pearson's r over matches, "
            f"rank correlations else"
        )
        tables.append(
            Table(["role", "measured", "over", "r", "95% interval", "n"], lines, left=3, note=note)
        )
    lines = [
        [each["judge"] or "all", each["role"] or "all", each["about"], signed(each["value"])]
        + [between(each["low"], each["high"]), str(each["n"])]
        for each in found["bias"]
    ]
    note = (
        "length: rank correlation of ratings with how much was said, within items, a bias only as "
        "far as more is not better; itself: how much more a judge gives its own model than other "
        "judges do, beyond what it so gives to others"
    )
    last = Table(
        ["judge", "judged role", "towards", "value", "95% interval", "n"],
        lines,
        left=3,
        note=note + fixed(data),
    )
    return [*tables, last] if lines else tables


def fixed(data: Data) -> str:
    """What to know of an interval that is made for a number of blocks fixed beforehand, where it
    was not."""
    return (
        "; intervals as if the number of blocks had been fixed beforehand"
        if data["stability"]
        else ""
    )
