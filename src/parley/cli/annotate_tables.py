"""The tables of `parley annotate draw` and `results`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from parley.annotation.pair_sampling import models_in_dataset
from parley.store.pair_votes import VoteStore
from parley.store.types import Study
from parley.tables import Table, format_interval, format_number, plural

ORDER = (
    "`with order` is the share of pairs in which most annotators prefer the conversation with "
    "the higher score; pairs without a majority are left out"
)
ALONE = (
    "only one annotator has voted, so this table counts every single vote; no pair is settled "
    "and agreement is unknown until a second annotator votes"
)


def pair_table(votes: VoteStore, study: Study) -> Table:
    """The number of pairs by dataset and models."""
    counts = Counter(map(models_in_dataset, votes.pairs(study).values()))
    rows = [
        [dataset, " – ".join(models), str(count)]
        for (dataset, models), count in sorted(counts.items())
    ]
    return Table(["dataset", "models", "pairs"], rows, left=2)


def verdict_tables(data: dict[str, Any]) -> list[Table]:
    """What people were asked about, stage by stage, and who has voted."""
    keys = ("asked", "success", "failure", "undecided", "missing")
    rows = [
        ["standard" if not each["stage"] else str(each["stage"]), *(str(each[key]) for key in keys)]
        for each in data["stages"]
    ]
    several = data["several_votes"]
    note = (
        "undecided: the same number of people voted yes and no, or nobody could tell; such a "
        "match is not kept in the memory"
    )
    if several:
        note += (
            f"\n{plural(several, 'conversation')} with several votes, {data['unanimous']} of them "
            f"unanimous"
        )
    tables = [Table(["stage", *keys], rows, note=note)]
    people = [[each["name"], str(each["votes"])] for each in data["annotators"]]
    return [*tables, Table(["annotator", "votes"], people)] if people else tables


def result_tables(data: dict[str, Any]) -> list[Table]:
    """How people compared pairs, and how well they agree."""
    both = zip(data["agreement"], data["kappa"], strict=True)
    rows = [
        [
            each["dataset"] or "overall",
            *estimate_cells(each),
            *estimate_cells(kappa)[:3],
            str(each["missing"]),
        ]
        for each, kappa in both
    ]
    header = [
        "dataset",
        "with order",
        "95% interval",
        "pairs",
        "questions",
        "kappa",
        "95% interval",
        "pairs",
        "not settled",
    ]
    wins = [[each["model"], *estimate_cells(each), str(each["missing"])] for each in data["models"]]
    voters = [
        [each["name"], str(each["votes"]), str(each["changed"])] for each in data["annotators"]
    ]
    among = [[each["first"], each["second"], *estimate_cells(each)] for each in data["between"]]
    usual = ["95% interval", "pairs", "questions"]
    alone = f"\n{ALONE}" if data["single_annotator"] else ""
    tables = [
        Table(
            header,
            [*rows[1:], rows[0]],
            note=f"{ORDER}\nthe intervals treat each question, with all its pairs, as one "
            f"observation{alone}",
        ),
        count_table(data),
        Table(
            ["model", "win rate", *usual, "not settled"],
            wins,
            note="a tie counts as half a win" if data["ties"] else "",
        ),
        Table(["annotator", "votes", "changed"], voters),
    ]
    return [
        *tables,
        *([Table(["annotator", "and", "kappa", *usual], among, left=2)] if among else []),
    ]


def count_table(data: dict[str, Any]) -> Table:
    """Pairs, votes and conflicts."""
    pairs, votes, found = data["pairs"], data["votes"], data["conflicts"]
    rows = [
        ("pairs drawn", pairs["drawn"]),
        ("pairs settled", pairs["settled"]),
        *([("pairs without a majority", pairs["undecided"])] if data["ties"] else []),
        ("pairs not settled yet", pairs["open"]),
        ("votes given", votes["given"]),
        ("votes for side A", votes["for_a"]),
        ("votes for side B", votes["for_b"]),
        *([("votes for neither", votes["for_tie"])] if data["ties"] else []),
        ("votes changed", votes["changed"]),
        ("votes missing", votes["wanted"]),
        ("conflicts", found["found"]),
        ("conflicts settled for the higher score", found["for_the_order"]),
        ("conflicts settled for the lower score", found["against_it"]),
        *(
            [
                ("conflicts settled as a tie", found["tie"]),
                ("conflicts without a majority", found["undecided"]),
            ]
            if data["ties"]
            else []
        ),
        ("conflicts not settled yet", found["open"]),
    ]
    return Table(
        ["what", "n"],
        [[what, str(count)] for what, count in rows],
        note="a conflict is a pair whose first two votes differ; a third vote then settles the "
        "pair",
    )


def estimate_cells(each: dict[str, Any]) -> list[str]:
    """An estimate with its interval, and the numbers of pairs and questions."""
    return [
        format_number(each["value"], 3),
        format_interval(each["low"], each["high"], 3),
        str(each["pairs"]),
        str(each["questions"]),
    ]
