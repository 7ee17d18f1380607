"""The glossary lists every word once, and explains every metric."""

import re
from pathlib import Path

from parley.cli.tasks import count_least_seats
from parley.config.task_catalogue import builtin_names, task_class

TEXT = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
WORDS, METRICS = TEXT.partition("## Words")[2].split("\n## ")


def first_cells(table):
    return [row.split("|")[1].strip() for row in table.splitlines() if row.startswith("|")][2:]


def test_words_and_metrics_are_in_order_and_listed_once():
    words = first_cells(WORDS)
    assert words == sorted(set(words))
    metrics = [name for cell in first_cells(METRICS) for name in re.findall(r"`(\w+)`", cell)]
    assert metrics == sorted(set(metrics))


def test_every_metric_is_explained_with_its_tasks():
    found: dict[str, set[str]] = {}
    for name in builtin_names():
        task = task_class(name)
        for metric in task().metrics(count_least_seats(task)):
            found.setdefault(re.sub(r"_\d+(?=_|$)", "_N", metric.name), set()).add(name)
    listed = {
        metric: set(re.findall(r"`(\w+)`", row.split("|")[2]))
        for row in METRICS.splitlines()
        if row.startswith("| `")
        for metric in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert listed == found
