"""The table of pairs says whether an interval is corrected like the p beside it."""

import pytest

from parley.results.part import Style
from parley.results.parts.pairs import MOST_COMPARED, difference_figures, difference_tables
from parley.results.types import ScoreRow
from parley.statistics.estimates import PairedDifference


@pytest.mark.parametrize(
    ("sequential", "interval", "p"),
    [
        (False, "95% interval, uncorrected", "p, Holm-corrected"),
        (True, "95% interval, corrected", "p, corrected"),
    ],
)
def test_the_interval_says_whether_it_is_corrected_like_p(sequential, interval, p):
    pair = PairedDifference("players", "score", "a", "b", 0.2, 0.1, 0.3, 0.01, 9)
    (table,) = difference_tables((pair,), Style(sequential=sequential))
    assert table.header[5:7] == [interval, p]


@pytest.mark.parametrize(("lower", "names"), [((), ["b", "a"]), (("score",), ["a", "b"])])
def test_the_model_that_scored_better_stands_first(lower, names):
    pair = PairedDifference("players", "score", "a", "b", -0.2, -0.5, 0.1, 0.01, 9)
    (table,) = difference_tables((pair,), Style(lower_is_better=frozenset(lower)))
    ends = ["-0.20", "-0.50 to 0.10"] if lower else ["+0.20", "-0.10 to 0.50"]
    assert table.rows[0][2:6] == [*names, *ends]


def make_row(alias, mean):
    return ScoreRow(
        alias, "bot/x", [], "players", "score", "", mean, None, None, None, None, 9, 9, 0, 0, ""
    )


@pytest.mark.parametrize("lower", [False, True])
def test_a_pair_is_marked_for_both_models_in_the_order_of_the_main_table(lower):
    pairs = (
        PairedDifference("players", "score", "a", "b", -0.2, -0.3, -0.1, 0.01, 9),
        PairedDifference("players", "score", "a", "c", 0.1, -0.3, 0.5, 0.5, 9),
    )
    style = Style(
        scores=(make_row("a", 0.3), make_row("b", 0.5), make_row("c", 0.2), make_row("d", None)),
        lower_is_better=frozenset(["score"] if lower else []),
    )
    (figure,) = difference_figures(pairs, style)
    names = ("c", "a", "b") if lower else ("b", "a", "c")
    assert (figure.rows, figure.columns, figure.role) == (names, names, "players")
    a, b, c = map(names.index, "abc")
    assert (figure.values[a][b], figure.values[b][a]) == (-0.2, 0.2)
    better, worse = ("worse", "better") if lower else ("better", "worse")
    assert (figure.marks[b][a], figure.marks[a][b]) == (better, worse)
    assert (figure.marks[a][c], figure.marks[c][a]) == ("even", "even")
    assert (figure.marks[b][c], figure.values[b][c]) == ("", None)  # no block in common


def test_more_models_than_fit_have_no_figure():
    names = [f"m{number}" for number in range(MOST_COMPARED + 1)]
    rows = tuple(make_row(name, 0.5) for name in names)
    pairs = (PairedDifference("players", "score", "m0", "m1", 0.2, 0.1, 0.3, 0.01, 9),)
    assert difference_figures(pairs, Style(scores=rows)) == []
    assert difference_figures(pairs, Style(scores=rows[1:])) != []
