"""Parts over several runs: the same shape as parts of one run, computed from all of them."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest

import parley
from parley.errors import TaskError, UsageError
from parley.report.build import find_comparisons, report_on
from parley.results.compared_runs import (
    ComparedRuns,
    ComparisonOptions,
    ComparisonPart,
    ComparisonResult,
)
from parley.results.part import no_rows
from parley.results.types import as_json, json_schema
from parley.tables import Table


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder, bots = tmp_path_factory.mktemp("runs"), ["bot/altruist", "bot/free-rider"]
    return [
        parley.run("public_goods", bots, repeats=repeats, rounds=1, seed=1, store=folder)
        for repeats in (2, 3)
    ]


@dataclass(frozen=True)
class MatchesOfRun:
    run: str
    matches: int


def count_matches(runs):
    return tuple(MatchesOfRun(run.info.id, len(run.matches)) for run in runs.each())


def match_table(found, style):
    return [Table(["run", "matches"], [[row.run, str(row.matches)] for row in found])]


def part(name="counts", **more):
    known = {"tables": match_table, "takes": ("public_goods",)}
    return ComparisonPart(
        name, "Matches", tuple[MatchesOfRun, ...], count_matches, **(known | more)
    )


def compare(parts, results, **options):
    return ComparisonResult(parts, ComparedRuns(results, ComparisonOptions(**options)))


def test_a_part_is_computed_from_all_runs_and_has_tables_words_rows_and_json(played):
    parts = [part(words=lambda found, style: f"{len(found)} runs."), part("none", rows=no_rows)]
    found = compare(parts, played)
    rows = [{"run": each.ref.id, "matches": n} for each, n in zip(played, (2, 3), strict=True)]
    assert found.data == {"counts": rows, "none": rows}
    assert [table.rows for table in found.tables("counts")] == [
        [[played[0].ref.id, "2"], [played[1].ref.id, "3"]]
    ]
    assert (found.words("counts"), found.words("none")) == ("2 runs.", "")
    assert found.figures("counts") == []
    assert found.rows_table().header == ["run", "matches"]
    assert len(found.rows_table().rows) == 2


def test_runs_without_data_for_a_part_have_nothing_of_it(played):
    found = compare([part(data=len), part("empty", rows=no_rows)], [])
    assert found.data == {"counts": [], "empty": []}
    assert found.tables("counts") == []
    assert found.words("counts") == ""


def test_runs_have_the_interval_of_their_results(played):
    other = parley.Result(played[0].ref, interval="bootstrap")
    assert [run.method for run in ComparedRuns([played[1], other], ComparisonOptions()).each()] == [
        "block",
        "bootstrap",
    ]


def test_an_analysis_that_parts_share_is_made_once(played):
    made = []

    def analyse(runs):
        made.append(runs.refs)
        return count_matches(runs)

    def shared(name):
        return replace(part(name), compute=lambda runs: runs.once(analyse))

    parts = [shared("one"), shared("other")]
    found = compare(parts, played)
    assert found.data["one"] == found.data["other"]
    assert made == [[each.ref for each in played]]


def test_a_part_that_a_single_run_shows_elsewhere_is_left_out_of_its_page(played):
    parts = [part(), part("same", alone=False)]
    assert [each.name for each in compare(parts, played).page_parts] == ["counts", "same"]
    assert [each.name for each in compare(parts, played[:1]).page_parts] == ["counts"]


def test_a_part_says_whose_runs_it_takes_and_has_a_name_of_its_own(played):
    with pytest.raises(TaskError, match="needs `takes`, the tasks whose runs it takes"):
        part(takes=())
    with pytest.raises(TaskError, match="two parts named `counts`"):
        compare([part(), part()], played)


def test_the_comparisons_of_installed_tasks_are_found_by_the_runs_they_take():
    found = find_comparisons()
    assert list(found) == [("kieval", "qa")]
    names = [each.name for each in found["kieval", "qa"]]
    assert names[:2] == ["cautions", "models"]


def test_options_of_a_comparison_need_runs_that_it_takes(played):
    with pytest.raises(UsageError, match="need runs of kieval and qa, found runs of public_goods"):
        report_on(played, ComparisonOptions(without=["a"]))


class Side(NamedTuple):
    p: float | None
    level: str = ""


def test_a_named_tuple_is_published_as_an_object():
    assert as_json((Side(0.5), Side(None, "high"))) == [
        {"p": 0.5, "level": ""},
        {"p": None, "level": "high"},
    ]
    schema = json_schema(tuple[Side, ...])["items"]
    assert (schema["type"], schema["required"]) == ("object", ["p"])
    assert set(schema["properties"]) == {"p", "level"}
