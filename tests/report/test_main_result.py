"""The main result: its page, text, notebook and place in a list say the same."""

import re
import shutil
from pathlib import Path

import pytest

from parley import Result
from parley.store import open_store
from parley.web.run_catalogue import RunCatalogue

RUNS = Path(__file__).parents[1] / "data" / "runs"
BOUNDED = "* this interval uses a method for bounded scores"


@pytest.fixture
def copied(tmp_path):
    """A recorded run, copied so that opening it leaves the original alone."""

    def copy(name):
        return shutil.copy(RUNS / f"{name}.parley", tmp_path / f"{name}.parley")

    return copy


def charts(html):
    """The models of each wide drawing, from top to bottom."""
    found = re.findall(r'<svg class="drawing at-wide".*?</svg>', html, re.DOTALL)
    return [re.findall(r'class="label">(.*?)</text>', chart) for chart in found]


def test_a_page_has_the_intervals_that_its_result_has(copied, tmp_path):
    path = copied("qa")
    result = Result(path, interval="bootstrap")
    page = result.report(tmp_path / "page.html", audit=False).read_text(encoding="utf-8")
    row = next(row for row in result.part("results") if row.alias == "fair")
    block = next(row for row in Result(path).part("results") if row.alias == "fair")
    assert (row.interval, block.interval) == ("bootstrap", "bounded")
    assert f"{row.low:.3f} to {row.high:.3f}" in page
    assert f"{block.low:.3f} to {block.high:.3f}" not in page


def test_a_page_has_the_scores_that_its_result_was_given(copied, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("alias,arena\ngood,3\nfair,2\nweak,1\n", encoding="utf-8")
    result = Result(copied("qa"), scores=scores)
    page = result.report(tmp_path / "page.html", audit=False).read_text(encoding="utf-8")
    assert result.part("external")
    assert 'id="s0-external"' in page
    assert "arena" in page


def test_models_are_in_one_order_everywhere_the_best_mean_first(copied, tmp_path):
    """A better rank with a worse mean does not come first, and JSON keeps its own order."""
    path = copied("poem")
    result = Result(path)
    rows = [row for row in result.part("results") if row.role == "poet"]
    expected = [row.alias for row in sorted(rows, key=lambda row: -row.mean)]
    ranks = {rank.alias: rank.low for rank in result.head.ranks if rank.role == "poet"}
    assert [ranks[alias] for alias in expected] != sorted(ranks.values())
    table = result.table()
    model, role = table.header.index("model"), table.header.index("role")
    assert [line[model] for line in table.rows if line[role] == "poet"] == expected
    page = result.report(tmp_path / "page.html", audit=False).read_text(encoding="utf-8")
    for html in (page, result._repr_html_()):
        assert charts(html).count(expected) == 1
    (figure,) = [each for each in result.figures("results") if each.role == "poet"]
    assert [point.label for point in figure.points] == expected
    assert [row["alias"] for row in result.data["results"]] == [
        row.alias for row in result.part("results")
    ]


def test_a_bounded_interval_is_marked_and_explained_on_a_page(copied, tmp_path):
    result = Result(copied("qa"))
    page = result.report(tmp_path / "page.html", audit=False).read_text(encoding="utf-8")
    for html in (page, result._repr_html_()):
        assert html.count("0.351 to 0.881*</text>") == 2  # in the wide and the narrow drawing
        assert html.count(BOUNDED) >= 1
    plain = Result(copied("race"))._repr_html_()  # its intervals are anytime-valid
    assert "*</text>" not in plain
    assert BOUNDED not in plain


def test_the_list_of_runs_has_the_order_and_the_decimals_of_the_table(copied, tmp_path):
    copied("poem")
    store = open_store(tmp_path)
    (ref,) = store.refs()
    catalogue = RunCatalogue(store)
    catalogue.start_summary(ref)
    found = catalogue.summaries.wait(ref.location, store.stamp(ref), 10)
    table = Result(ref).table(found.value.metric)
    model, mean = table.header.index("model"), table.header.index("mean")
    role = table.header.index("role")
    own = [line for line in table.rows if line[role] == found.value.scores[0].row.role]
    assert [(score.row.alias, score.mean) for score in found.value.scores] == [
        (line[model], line[mean]) for line in own
    ]
