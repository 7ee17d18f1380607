"""Figures: marks stand where their numbers say, nothing hides a point, and missing is not zero."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.report.figures import (
    LINE,
    NEAR,
    WIDTHS,
    Plane,
    bound_range,
    choose_ticks,
    draw,
    pad_range,
    place_name,
)
from parley.report.html import read_style
from parley.report.looks import RING, SHAPES, Looks
from parley.results.types import (
    Bar,
    Bars,
    Box,
    Boxes,
    Dot,
    HeatMap,
    Intervals,
    Lines,
    Point,
    Scatter,
    Series,
)

LOOKS = Looks.of(["a", "b", "c"])


def shown(figure, looks=LOOKS):
    return draw(figure, str, looks)


def test_a_box_stands_where_its_quartiles_are():
    # the scale has a margin of 8% on both sides: 0 is at 6.9%, 100 at 93.1%
    box = Box("a", 0, 25, 50, 75, 100, 3, (0, 50, 100))
    drawn = shown(Boxes("Payoffs", "alt", "coins", (box,)))
    assert '<rect class="box" x="28.45%" y="6" width="43.10%"' in drawn
    assert '<line class="median" x1="50.00%" x2="50.00%"' in drawn
    assert re.findall(r'class="one" cx="([\d.]+)%"', drawn) == ["6.90", "50.00", "93.10"]
    assert '<td>50.00<span class="sub">n = 3</span></td>' in drawn  # the median as a number


def test_equal_values_do_not_cover_each_other():
    drawn = shown(Boxes("t", "alt", "", (Box("a", 1, 1, 1, 1, 1, 9, (1.0,) * 9),)))
    heights = re.findall(r'class="one" cx="[\d.]+%" cy="([\d.]+)"', drawn)
    assert len(heights) == len(set(heights)) == 9


def test_a_missing_value_interrupts_a_line_and_is_never_drawn_as_zero():
    series = Series(
        "a", (1, 2, 3, 4), (5.0, None, 7.0, 8.0), (4.0, None, 6.0, 7.0), (6, None, 8, 9)
    )
    drawn = shown(Lines("t", "alt", "round", "y", (series,)))
    assert drawn.count("<polyline") == 2
    assert drawn.count("<polygon") == 2
    assert drawn.count('<g class="dot">') == 3 + 1  # three values, and the legend
    assert ">0</text>" not in drawn  # not even the scale reaches down to zero


def test_a_model_without_any_value_says_so():
    known = [Series(name, (1, 2), (1.0, 2.0)) for name in "ab"]
    drawn = shown(Lines("t", "alt", "round", "y", (*known, Series("c", (1, 2), (None, None)))))
    assert drawn.count(">no value</text>") == 1
    assert "c, y by round: 1: no value, 2: no value" in drawn


def test_rounds_have_no_half_ticks():
    series = Series("a", (0, 1, 2, 3), (0.1, 0.2, 0.3, 0.4))
    drawn = shown(Lines("t", "alt", "round", "y", (series,)))
    assert [">1<" in drawn, ">1.5<" in drawn, ">0.5<" in drawn] == [True, False, False]


@given(st.integers(0, 400), st.integers(0, 400))
def test_ticks_of_counts_are_whole_and_some(low, more):
    found = choose_ticks(*pad_range([low, low + more]), most=6, whole=True)
    assert 1 <= len(found) <= 7
    assert all(tick == round(tick) for tick in found)


def test_more_than_two_lines_have_a_drawing_each_in_the_order_of_models():
    lines = [Series(name, (1, 2), (1.0, 2.0), (0.5, 1.5), (1.5, 2.5)) for name in "cab"]
    drawn = shown(Lines("t", "alt", "round", "y", tuple(lines)))
    assert drawn.count('role="img"') == 3
    assert drawn.count("<polygon") == 3  # a band for the own line only
    assert drawn.count('class="ln faint"') == 6
    assert re.findall("<bdi>(.)</bdi>", drawn) == ["a", "b", "c"]


def test_a_target_is_a_line_at_its_value_with_its_name_outside_of_the_drawing():
    series = Series("a", (1, 2), (10.0, 6.0))
    figure = Lines("t", "alt", "blocks", "half-width", (series,), 2.0, "target: 2")
    drawn = shown(figure)
    (height,) = set(re.findall(r'<line class="target" x1="0" x2="100%" y1="([\d.]+)"', drawn))
    assert float(height) == pytest.approx(260 - 260 * 0.64 / (8 * 1.16), abs=0.1)
    assert "<bdi>target: 2</bdi>" in drawn.partition('class="legend"')[2]


def test_no_scale_shows_what_cannot_occur():
    line = Series("expected", (20, 90), (30.0, 98.0), (5.0, 80.0), (60.0, 118.0))
    dots = (Dot("a", 30, 40), Dot("b", 90, 100))
    bounds = {"x_bounds": (0.0, 100.0), "y_bounds": (0.0, 100.0)}
    drawn = shown(Scatter("t", "alt", "x", "y", dots, line, **bounds))
    (corners,) = re.findall(r'<polygon class="bd accent" points="([^"]+)"', drawn)
    heights = [float(corner.split(",")[1]) for corner in corners.split()]
    assert min(heights) >= 0
    assert max(heights) <= 100
    assert ">120</text>" not in drawn
    assert bound_range((-8, 108), (0, 100)) == (0, 100)
    assert bound_range((-8, 108), ()) == (-8, 108)


def test_a_suspect_has_its_intervals_a_ring_and_words():
    dots = (
        Dot("a", 90, 40, "suspected", "", 80, 99, 30, 50),
        Dot("b", 50, 50),
    )
    drawn = shown(Scatter("t", "alt", "x", "y", dots))
    assert drawn.count('class="thin"') == 2
    assert 'class="ring suspected"' in drawn
    assert ">a, suspected</text>" in drawn
    assert drawn.count('class="ring') == 1


def test_a_dot_does_not_hide_another_in_the_same_place():
    drawn = shown(Scatter("t", "alt", "x", "y", (Dot("a", 1, 1), Dot("b", 1, 1), Dot("c", 2, 1))))
    assert re.findall(r'<svg x="(\d+)" overflow="visible"><g class="dot (c\d)"', drawn) == [
        ("9", "c1")
    ]


near = st.tuples(st.floats(0, 100), st.floats(0, 100))


@given(st.lists(near, min_size=1, max_size=14, unique=True), st.integers(1, 18))
def test_no_name_covers_a_point_at_any_width(points, letters):
    dots = [Dot("m" * letters, x, y) for x, y in points]
    plane = Plane((0, 100), (0, 100))
    taken = []
    for dot in dots:
        label = place_name(dot, dot.label, dots, taken, plane)
        if label is None:
            continue
        taken.append(label)
        for width in WIDTHS:
            left = label.at * width / 100 + label.start
            for other in dots:
                x, y = plane.x(other.x) * width / 100, plane.y(other.y)
                beside = not left - NEAR < x < left + label.width + NEAR
                above = not label.down - LINE < y < label.down + 3
                assert beside or above


def test_a_model_keeps_its_colour_and_shape_in_every_figure():
    figures = [
        Intervals("t", "alt", "", (Point("b", 1.0, 0.5, 1.5),)),
        Boxes("t", "alt", "", (Box("b", 0, 1, 2, 3, 4, 5),)),
        Bars("t", "alt", "", (Bar("b, reviewer", {"won": 1.0}, model="b"),)),
        Lines("t", "alt", "x", "y", (Series("b, reviewer", (1,), (1.0,), model="b"),)),
        Scatter("t", "alt", "x", "y", (Dot("b", 1, 1),)),
        HeatMap("t", "alt", "", ("b",), ("easy",), ((1.0,),)),
    ]
    for figure in figures:
        drawn = shown(figure)
        assert "c1" in re.findall(r'class="[^"]*\b(c\d)\b', drawn), figure
        assert SHAPES[1] in drawn
        assert not re.findall(r'class="[^"]*\bc[02-9]\b', drawn)


def test_instruments_are_grey_rings_and_no_model_is_grey():
    drawn = shown(Intervals("t", "alt", "", (Point("judge", 1.0, 0.5, 1.5),)))
    assert 'class="grey"' in drawn
    assert RING in drawn
    greys = re.findall(r"--grey:(#\w+)", read_style())
    assert len(greys) == 2  # light and dark
    models = re.findall(r"--m\d:(#\w+)", read_style())
    assert len(models) == 18
    assert not set(greys) & set(models)


def test_points_of_two_groups_share_a_row_and_differ_in_shape():
    points = (
        Point("a → b", 0.2, 0.1, 0.3, "before", "a"),
        Point("a → b", 0.7, 0.6, 0.8, "after", "b"),
    )
    drawn = shown(Intervals("BLEU", "alt", "bleu", points, 3))
    assert drawn.count("<tr>") == 2  # head and one row
    assert "0.200<br>0.700" in drawn
    assert 'class="c0"' in drawn
    assert 'class="c1"' in drawn
    assert drawn.index("before") < drawn.index("after")


def test_a_field_has_its_interval_and_a_missing_one_a_dash():
    figure = HeatMap(
        "t", "alt", "", ("a",), ("b", "c"), ((-0.5, None),), ((-0.7, None),), ((-0.3, None),), 1
    )
    drawn = shown(figure)
    assert '−0.5<span class="ends">−0.7 to −0.3</span>' in drawn
    assert '<td class="cell">–</td>' in drawn
    assert '<th scope="col">' in drawn
    assert '<th scope="row">' in drawn
    assert 'tabindex="0" role="group" aria-label="t"' in drawn


def test_pieces_of_bars_have_words_and_widths_by_their_share():
    bars = (Bar("a", {"won": 3.0, "lost": 1.0}), Bar("b", {"won": 0.0, "lost": 2.0}))
    drawn = shown(Bars("t", "alt", "", bars))
    assert re.findall(r'class="piece" x="([\d.]+)%" y="6" width="([\d.]+)%"', drawn) == [
        ("0.00", "75.00"),
        ("75.00", "25.00"),
        ("0.00", "50.00"),
    ]
    assert 'aria-label="won 3, lost 1"' in drawn
    assert ">3</text>" in drawn
    assert "<bdi>won</bdi>" in drawn


def test_words_of_figures_are_escaped():
    hostile = "<script>alert(1)</script>"
    figures = [
        Intervals(hostile, hostile, hostile, (Point(hostile, 1.0, group=hostile),)),
        Boxes(hostile, hostile, hostile, (Box(hostile, 0, 1, 2, 3, 4, 5),)),
        Bars(hostile, hostile, hostile, (Bar(hostile, {hostile: 1.0, "b": 1.0}, hostile),)),
        Lines(hostile, hostile, hostile, hostile, (Series(hostile, (1,), (1.0,)),) * 3, 1, hostile),
        Scatter(hostile, hostile, hostile, hostile, (Dot(hostile, 1, 1, "look", hostile),)),
        HeatMap(hostile, hostile, "", (hostile,), (hostile,), ((1.0,),), (), (), 2, hostile, "x"),
    ]
    assert all("<script" not in shown(figure, Looks()) for figure in figures)
