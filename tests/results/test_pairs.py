"""The table of pairs says whether an interval is corrected like the p beside it."""

import pytest

from parley.results.part import Style
from parley.results.parts.pairs import difference_tables
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
