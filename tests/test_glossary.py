"""The glossary fixes one word for each thing; commands, options and metrics keep to it."""

import re
from pathlib import Path

import click

from parley.cli import COMMANDS, command
from parley.cli.tasks import count_least_seats
from parley.config.task_catalogue import builtin_names, task_class

TEXT = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
WORDS, METRICS, ORDINARY = TEXT.partition("## Words")[2].split("\n## ")


def first_cells(table):
    return [row.split("|")[1].strip() for row in table.splitlines() if row.startswith("|")][2:]


def all_commands():
    with click.Context(command) as context:
        for name in COMMANDS:
            found = command.get_command(context, name)
            yield name, found
            yield from getattr(found, "commands", {}).items()


def names_of_the_command_line():
    for name, found in all_commands():
        yield name
        for parameter in found.params:
            yield from (flag[2:] for flag in parameter.opts if flag.startswith("--"))


def singulars(word):
    return word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y"


def test_words_and_metrics_are_in_order_and_listed_once():
    words = first_cells(WORDS)
    assert words == sorted(set(words))
    metrics = [name for cell in first_cells(METRICS) for name in re.findall(r"`(\w+)`", cell)]
    assert metrics == sorted(set(metrics))


def test_every_word_of_a_command_or_an_option_is_in_the_glossary():
    known = {part for word in first_cells(WORDS) for part in re.split(r"[ -]", word)}
    known |= set(re.findall(r"`([^`]+)`", ORDINARY))
    used = {part for name in names_of_the_command_line() for part in name.split("-")}
    unknown = {word for word in used if not {word, *singulars(word)} & known}
    assert unknown == set()


def test_no_ordinary_word_is_listed_that_no_command_uses():
    used = {part for name in names_of_the_command_line() for part in name.split("-")}
    assert set(re.findall(r"`([^`]+)`", ORDINARY)) - used == set()


def test_every_metric_is_explained_with_its_tasks():
    found: dict[str, set[str]] = {}
    for name in builtin_names():
        task = task_class(name)
        for metric in task().metrics(count_least_seats(task)):
            found.setdefault(re.sub(r"_\d+$", "_N", metric.name), set()).add(name)
    listed = {
        metric: set(re.findall(r"`(\w+)`", row.split("|")[2]))
        for row in METRICS.splitlines()
        if row.startswith("| `")
        for metric in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert listed == found
