"""The table that a run is known by: the best mean first, one metric, nothing that is the same in
all rows."""

import csv
import re
from dataclasses import replace

import pytest

import parley
from parley.errors import UsageError
from parley.results.part import Style
from parley.results.parts.results import ranking_metrics, score_table
from parley.results.types import ScoreRow
from parley.statistics.estimates import Rank
from parley.tables import text_width

MODELS = {"kind": "bot/altruist", "rider": "bot/free-rider", "noise": "bot/random"}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    store = tmp_path_factory.mktemp("runs")
    return parley.run("public_goods", MODELS, repeats=8, seed=1, store=store)


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    store = tmp_path_factory.mktemp("runs")
    models = {
        name: {"model": "bot/translator", "strength": strength}
        for name, strength in (("weak", 0.1), ("strong", 0.9))
    }
    roles = {"judge": "bot/judge"}
    return parley.run("translation", models, roles=roles, items=4, seed=1, store=store)


def row(alias="a", metric="score", mean=0.5, **more):
    """A row of scores that has everything but what is given."""
    known = {"low": mean - 0.1, "high": mean + 0.1, "sd": 0.1, "interval": "block t"}
    counts = {"blocks": 5, "matches": 5, "missing": 0, "violations": 0}
    return ScoreRow(
        **{
            "alias": alias,
            "model_requested": "m",
            "model_served": [],
            "role": "players",
            "metric": metric,
            "unit": "",
            "mean": mean,
            "signature": "s",
            **known,
            **counts,
            **more,
        }
    )


STYLE = Style(
    task="game",
    leading={"players": "score"},
    ranks=tuple(Rank("players", "score", *each) for each in (("a", 2, 3), ("b", 1, 1))),
)


def test_the_title_says_what_is_measured_what_higher_means_and_n(played):
    title = played.render().splitlines()[0]
    assert title == "public_goods, players: payoff (coins); higher is better; n = 8 matches each"
    lower = score_table((row(),), replace(STYLE, lower_is_better=frozenset({"score"})))
    assert lower.title == "game, players: score; lower is better; n = 5 matches"
    blocks = score_table((row(), row("b", matches=15)), STYLE)
    assert blocks.title.endswith("n = 5 to 15 matches in 5 blocks each")


def test_models_have_their_ranks_and_the_best_mean_comes_first(played):
    table = played.table()
    assert table.header[:2] == ["rank", "model"]
    assert [line[:2] for line in table.rows] == [["1", "rider"], ["2", "noise"], ["3", "kind"]]


def test_the_mean_decides_and_not_the_rank_and_a_model_without_a_score_is_last():
    ranks = tuple(Rank("players", "score", *each) for each in (("a", 1, 2), ("b", 2, 2)))
    nothing = row("0", mean=0.0, low=None, high=None)
    found = (replace(nothing, mean=None), row("a", mean=0.2), row("b", mean=0.8))
    table = score_table(found, replace(STYLE, ranks=ranks))
    assert [line[:3] for line in table.rows] == [
        ["2", "b", "0.80"],
        ["1–2", "a", "0.20"],
        ["–", "0", "–"],
    ]
    lower = replace(STYLE, ranks=ranks, lower_is_better=frozenset({"score"}))
    assert [line[1] for line in score_table(found[1:], lower).rows] == ["a", "b"]


def test_a_column_that_is_the_same_in_all_rows_is_left_out(played):
    assert played.table().header == ["rank", "model", "mean", "95% interval", "sd"]
    table = score_table((row(missing=2), row("b", missing=2, violations=1)), STYLE)
    assert list(table.header[-2:]) == ["sd", "violations"]
    assert "2 scores missing each" in table.title  # not zero: that must be said
    assert "`violations` counts replies" in table.note
    one = score_table((row(low=None, high=None, sd=None, interval=None),), STYLE)
    assert one.header == ["model", "mean"]
    assert "the interval is missing" in one.note


def test_only_the_metrics_that_a_role_is_ranked_by_are_shown(translated):
    """The one that is measured, and the judges' score."""
    text = translated.render()
    metrics = {line[3] for line in translated.table().rows}
    assert metrics == {"bleu", "improvement", "judge"}
    ranked = [line for line in translated.table().rows if line[3] == "judge"]
    assert sorted(line[2] for line in ranked) == ["proofreader"] * 2 + ["translator"] * 2
    assert all(line[0][0] in "12" for line in ranked)
    assert re.search(r"the task has more metrics.*chrf.*--metrics\s+all`", text, re.DOTALL)
    every = translated.table("all")
    assert {line[3] for line in every.rows} == {"bleu", "chrf", "improvement", "judge"}
    assert "--metrics all" not in every.note
    assert {line[2] for line in translated.table("chrf").rows} == {"translator", "proofreader"}
    with pytest.raises(UsageError, match="did you mean 'chrf'"):
        translated.table("chrff")


def test_a_role_that_judges_lead_is_ranked_once():
    style = replace(STYLE, leading={"players": "judge"}, judged=frozenset({"judge", "mark"}))
    found = (row(metric="judge"), row(metric="mark"), row(metric="words"))
    assert ranking_metrics(found, style) == {"players": ["judge"]}
    assert ranking_metrics(found, replace(style, leading={"players": "words"})) == {
        "players": ["words", "judge"]
    }


def test_csv_and_json_keep_all_metrics(translated):
    rows = list(csv.DictReader(translated.render("csv").splitlines()))
    assert {each["metric"] for each in rows} == {"bleu", "chrf", "improvement", "judge"}
    assert len(rows) == len(translated.data["results"])


def test_metrics_with_different_directions_are_marked():
    found = (row(), row(metric="words"))
    table = score_table(
        found, replace(STYLE, lower_is_better=frozenset({"words"})), ["score", "words"]
    )
    assert [line[1] for line in table.rows] == ["score", "words ↓"]
    assert "lower where marked ↓" in table.title


def test_marks_are_explained_where_they_stand():
    plain, bounded = row(), row("b", interval="bounded")
    assert "*" not in score_table((plain,), STYLE).render()
    marked = score_table((plain, bounded), STYLE)
    assert [line[1] + line[3][-1] for line in marked.rows] == ["a0", "b*"]
    assert "\n* this interval uses a method for bounded scores" in marked.note
    assert "\n\n\\* this interval uses" in marked.render("markdown")
    assert (
        "`rank` gives all ranks that are compatible with the paired differences between models"
        in marked.note
    )


def test_notes_speak_of_blocks_only_where_blocks_are_explained():
    single = score_table((row(interval="bounded"),), STYLE)
    assert "`sd` is the standard deviation over matches" in single.note
    assert "block" not in single.note
    assert "`sd`" not in single.render(width=30)  # where the column is left out
    several = score_table((row(matches=15),), STYLE)
    assert "block is all matches on one item" in several.note


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_table_fits_the_terminal(translated, played, width):
    for result in (translated, played):
        for metrics in ("", "all"):
            text = result.render(metrics=metrics, width=width)
            assert max(map(text_width, text.splitlines())) <= width
    assert ("●" in played.render(width=width)) == (width >= 80)
    assert ("●" in played.render()) is True


def test_a_page_or_a_notebook_has_no_drawing_made_of_letters(played, tmp_path):
    page = played.report(tmp_path / "page.html").read_text()
    assert "●" not in played._repr_html_()
    for text in (page, played.table()._repr_html_()):
        assert "●" not in text
        assert "<caption>public_goods, players: payoff" in text
