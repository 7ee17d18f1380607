"""The table of pairs says whether an interval is adjusted like the p beside it."""

import pytest

from parley.results.part import Style
from parley.results.parts.differences import difference_tables
from parley.statistics.estimates import PairedDifference


@pytest.mark.parametrize(
    ("sequential", "interval", "p"),
    [
        (False, "95% interval, unadjusted", "p, Holm-adjusted"),
        (True, "95% interval, adjusted", "p, adjusted"),
    ],
)
def test_the_interval_says_whether_it_is_adjusted_like_p(sequential, interval, p):
    pair = PairedDifference("players", "score", "a", "b", 0.2, 0.1, 0.3, 0.01, 9)
    (table,) = difference_tables((pair,), Style(sequential=sequential))
    assert table.header[5:7] == [interval, p]
