"""Figures as SVG: marks stand where their numbers say, no words cover others, missing is not zero,
and whatever the data say stays text."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.report.html import read_style
from parley.report.model_signs import RING, SHAPES, ModelSigns
from parley.report.svg import (
    LETTER,
    NARROW,
    NEAR,
    WIDE,
    Axis,
    Canvas,
    DrawingError,
    Plane,
    at,
    bound_range,
    choose_ticks,
    cut_text,
    draw,
    is_bold,
    measure_text,
    pad_range,
    place_name,
    wrap_text,
)
from parley.results.types import (
    FIGURES,
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
from tests.report.figures import HOSTILE, LONG, NAMES, make_figures

SIGNS = ModelSigns.of(["a", "b", "c"])


def shown(figure, signs=SIGNS, clean=str):
    """The drawings of a figure as HTML."""
    return draw(figure, clean, signs)


def drawings(figure, signs=SIGNS, clean=str):
    """The wide and the narrow drawing as elements."""
    return list(ET.fromstring(shown(figure, signs, clean)))


def wide_of(figure, signs=SIGNS):
    """The wide drawing as text."""
    return re.findall(r"<svg.*?</svg>", shown(figure, signs))[0]


def width_of(drawing):
    return float(drawing.get("viewBox").split()[2])


def extents(drawing):
    """Every text that runs across: its baseline, its left and its right end."""
    upright = {text for group in drawing.findall("g[@transform]") for text in group.iter("text")}
    for text in drawing.iter("text"):
        if text in upright:
            continue
        width = measure_text(text.text, is_bold(text.get("class", "")))
        share = {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor", "start")]
        left = float(text.get("x")) - share * width
        yield float(text.get("y")), left, left + width, text.text


CASES = [
    pytest.param(figure, names, id=f"{figure.kind} {number} {case}")
    for case, names in NAMES.items()
    for number, figure in enumerate(make_figures(names))
]


@pytest.mark.parametrize(("figure", "names"), CASES)
def test_a_drawing_has_its_words_inside_and_none_covers_another(figure, names):
    for signs in (ModelSigns.of(names), ModelSigns()):
        wide, narrow = drawings(figure, signs)
        assert (width_of(wide) >= WIDE, width_of(narrow) >= NARROW) == (True, True)
        for drawing in (wide, narrow):
            assert drawing.get("role") == "img"
            assert [drawing[0].tag, drawing[0].text] == ["title", "t"]
            assert [drawing[1].tag, drawing[1].text] == ["desc", "alt"]
            found = list(extents(drawing))
            for _, left, right, words in found:
                assert left >= -0.2, words
                assert right <= width_of(drawing) + 0.2, words
            for number, (baseline, left, right, words) in enumerate(found):
                for other, start, end, more in found[number + 1 :]:
                    if abs(baseline - other) < LETTER - 3:
                        assert right <= start + 0.2 or end <= left + 0.2, (words, more)


@pytest.mark.parametrize("figure", make_figures(["a", "b", "c"], lambda place: 7.0))
def test_equal_values_can_be_drawn(figure):
    for drawing in drawings(figure):
        assert "nan" not in ET.tostring(drawing, "unicode")


@pytest.mark.parametrize(
    "figure",
    [
        Intervals("t", "alt", "", (Point("a", None),)),
        Intervals("t", "alt", "", ()),
        Bars("t", "alt", "", (Bar("a", {}), Bar("b", {"won": 0}))),
        Bars("t", "alt", "", ()),
        Boxes("t", "alt", "", ()),
        Lines("t", "alt", "x", "y", (Series("a", (1, 2), (None, None)),)),
        Lines("t", "alt", "x", "y", ()),
        Scatter("t", "alt", "x", "y", ()),
        HeatMap("t", "alt", "", ("a",), ("b",), ((None,),)),
        HeatMap("t", "alt", "", (), (), ()),
    ],
    ids=lambda figure: figure.kind,
)
def test_a_figure_without_values_can_be_drawn(figure):
    assert len(drawings(figure)) == 2


def test_every_kind_has_a_drawing():
    assert {figure.kind for figure in make_figures(["a"])} == set(FIGURES)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_has_no_place_is_refused(value):
    for figure in make_figures(["a", "b"], lambda place: value):
        if figure.kind not in ("bars", "heat map"):
            with pytest.raises(DrawingError):
                shown(figure)
    with pytest.raises(ValueError, match="no place"):
        at(value)


SECRET = "kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"


@pytest.mark.parametrize("figure", make_figures([HOSTILE, "b"]), ids=lambda figure: figure.kind)
def test_hostile_words_stay_text(figure):
    drawn = shown(figure, ModelSigns.of([HOSTILE]))
    assert "<script" not in drawn
    assert "<style" not in drawn
    assert drawn.count("</svg>") == 2
    ET.fromstring(drawn)


@pytest.mark.parametrize("figure", make_figures([SECRET, LONG]), ids=lambda figure: figure.kind)
def test_a_secret_is_masked_before_a_name_is_cut(figure):
    drawn = shown(figure, clean=hide(SECRET))
    assert SECRET[:6] not in drawn
    assert SECRET[-6:] not in drawn


def test_a_key_with_a_hyphen_before_a_digit_is_masked_in_a_column():
    key = "-1kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"
    points = (Point("a", -1.0, cells=(f"-1 {key}",)),)
    drawn = shown(Intervals("t", "", "", points, columns=("x",)), clean=hide(key))
    assert "Zt2Lw9" not in drawn
    assert ">−1 [secret]</text>" in drawn


def hide(key):
    return lambda text: text.replace(key, "[secret]")


def test_the_title_and_the_words_of_a_figure_are_clean():
    figure = Intervals(SECRET, f"<{SECRET}>", SECRET, (), caption=SECRET)
    drawn = shown(figure, clean=hide(SECRET))
    assert SECRET not in drawn
    assert drawn.count("<title>[secret]</title><desc>&lt;[secret]&gt;</desc>") == 2


def test_a_name_that_is_cut_keeps_both_ends_and_its_tooltip_has_all():
    figure = Intervals("t", "alt", "", (Point(LONG, 1.0), Point("b", 2.0)))
    for drawing in drawings(figure):
        (name,) = [text for text in drawing.findall("text") if text.find("title") is not None]
        assert name.find("title").text == LONG
        head, tail = name.text.split("…")
        assert head
        assert LONG.startswith(head)
        assert tail
        assert LONG.endswith(tail)


words = st.text(max_size=90)


@given(words, st.floats(30, 700), st.booleans())
def test_cut_words_fit(text, room, bold):
    shown = cut_text(text, room, bold)
    assert measure_text(shown, bold) <= room + 0.1
    assert shown == text or "…" in shown


@given(words, st.floats(60, 700))
def test_lines_fit(text, room):
    lines = wrap_text(text, room)
    assert lines
    assert all(measure_text(line) <= room + 0.1 for line in lines)


# Rows.


def test_a_box_stands_where_its_quartiles_are():
    box = Box("a", 0, 25, 50, 75, 100, 3, (0, 50, 100))
    drawn = wide_of(Boxes("Payoffs", "alt", "coins", (box,)))
    (left, width) = map(
        float, re.search(r'class="box c0" x="([\d.]+)" y="\S+" width="([\d.]+)"', drawn).groups()
    )
    dots = [float(x) for x in re.findall(r'class="one c0" cx="([\d.]+)"', drawn)]
    (middle,) = re.findall(r'class="median c0" x1="([\d.]+)"', drawn)
    assert left == pytest.approx((dots[0] + dots[1]) / 2, abs=0.2)
    assert left + width == pytest.approx((dots[1] + dots[2]) / 2, abs=0.2)
    assert float(middle) == pytest.approx(dots[1], abs=0.1)
    assert ">50.00</text>" in drawn  # the median as a number


def test_equal_values_do_not_cover_each_other():
    drawn = wide_of(Boxes("t", "alt", "", (Box("a", 1, 1, 1, 1, 1, 9, (1.0,) * 9),)))
    heights = re.findall(r'class="one c0" cx="[\d.]+" cy="([\d.]+)"', drawn)
    assert len(heights) == len(set(heights)) == 9


def test_a_narrow_drawing_has_marks_below_the_words_only_where_they_do_not_fit_beside():
    def height(name):
        figure = Intervals("t", "alt", "", (Point(name, 1.0),))
        return float(drawings(figure)[1].get("viewBox").split()[3])

    assert height("short") < height(LONG)


def test_pieces_of_bars_have_words_and_widths_by_their_share():
    bars = (Bar("a", {"won": 3.0, "lost": 1.0}), Bar("b", {"won": 0.0, "lost": 2.0}))
    drawn = wide_of(Bars("t", "alt", "", bars))
    pieces = re.findall(r'class="piece p(\d) c(\d)" x="([\d.]+)" y="\S+" width="([\d.]+)"', drawn)
    whole = float(pieces[0][3]) + float(pieces[1][3])
    assert [(shade, model) for shade, model, *_ in pieces] == [("0", "0"), ("1", "0"), ("1", "1")]
    assert float(pieces[0][3]) == pytest.approx(0.75 * whole, abs=0.2)
    assert float(pieces[2][3]) == pytest.approx(0.5 * whole, abs=0.2)
    assert "<title>won: 3</title>" in drawn
    assert ">3</text>" in drawn
    assert ">won</text>" in drawn


def test_points_of_two_groups_share_a_row_and_differ_in_shape():
    points = (
        Point("a → b", 0.2, 0.1, 0.3, "before", "a"),
        Point("a → b", 0.7, 0.6, 0.8, "after", "b"),
    )
    drawn = wide_of(Intervals("BLEU", "alt", "bleu", points, 3))
    assert drawn.count(">a → b</text>") == 1
    assert drawn.index(">0.200</text>") < drawn.index(">0.700</text>")
    assert f"{SHAPES[0]}</g>" in drawn
    assert f"{SHAPES[1]}</g>" in drawn
    assert drawn.index(">before</text>") < drawn.index(">after</text>")


# Heat maps.


def test_a_field_has_its_interval_and_a_missing_one_a_dash():
    figure = HeatMap(
        "t", "alt", "", ("a",), ("b", "c"), ((-0.5, None),), ((-0.7, None),), ((-0.3, None),), 1
    )
    for drawing in drawings(figure):
        said = [text.text for text in drawing.findall("text")]
        assert {"−0.5", "−0.7 to −0.3", "–"} <= set(said)


def test_a_mark_says_in_sign_number_and_colour_who_is_better():
    figure = HeatMap(
        "t", "alt", "", ("a", "b", "c"), ("d",), ((1.0,), (-1.0,), (0.1,)),
        marks=(("better",), ("worse",), ("even",)),
    )  # fmt: skip
    drawn = wide_of(figure)
    for sign, number, kind in [
        ("▲", "+1.00", "up"),
        ("▼", "−1.00", "down"),
        ("≈", "+0.10", "even"),
    ]:
        assert f'class="words-{kind}" text-anchor="middle">{sign} {number}</text>' in drawn
        assert f'class="field {kind}"' in drawn
    assert "▲ significantly better, ▼ significantly worse, ≈ no significant difference" in drawn


def test_many_marks_stand_without_numbers_on_a_phone_whose_tooltips_have_them():
    figure = make_figures([f"model {number}" for number in range(12)])[-1]
    wide, narrow = drawings(figure)
    assert width_of(narrow) == NARROW
    said = {text.text for text in narrow.iter("text")}
    assert "▲" in said
    assert "+0.00" not in said
    assert "▼ +0.00" in {title.text for title in narrow.iter("title")}
    assert "+0.00" in {text.text for text in wide.iter("text")}


def test_intervals_without_room_are_in_tooltips():
    values = ((0.5,) * 9,)
    figure = HeatMap("t", "alt", "", ("a",), tuple("bcdefghij"), values, values, values)
    (wide, _) = drawings(figure)
    assert width_of(wide) == WIDE
    assert "0.50, 0.50 to 0.50" in {title.text for title in wide.iter("title")}


def test_a_heat_map_that_is_too_wide_keeps_its_size_and_the_keyboard_can_scroll_it():
    names = tuple(f"model {number}" for number in range(16))
    drawn = shown(HeatMap("t", "alt", "", ("a",), names, ((0.5,) * 16,)))
    assert drawn.startswith(
        '<div class="drawings scrolls" tabindex="0" role="group" aria-label="t">'
    )
    assert 'class="drawing at-narrow natural"' in drawn
    assert "tabindex" not in shown(make_figures(["a", "b"])[-1])


# Two axes.


def test_a_missing_value_interrupts_a_line_and_is_never_drawn_as_zero():
    series = Series(
        "a", (1, 2, 3, 4), (5.0, None, 7.0, 8.0), (4.0, None, 6.0, 7.0), (6, None, 8, 9)
    )
    drawn = wide_of(Lines("t", "alt", "round", "y", (series,)))
    assert drawn.count("<polyline") == 2
    assert drawn.count("<polygon") == 2
    assert drawn.count('<g class="dot') == 3 + 1  # three values, and the legend
    assert ">0</text>" not in drawn  # not even the scale reaches down to zero


def test_a_model_without_any_value_says_so():
    known = [Series(name, (1, 2), (1.0, 2.0)) for name in "ab"]
    drawn = wide_of(Lines("t", "alt", "round", "y", (*known, Series("c", (1, 2), (None, None)))))
    assert drawn.count(">no value</text>") == 1


def test_rounds_have_no_half_ticks():
    series = Series("a", (0, 1, 2, 3), (0.1, 0.2, 0.3, 0.4))
    drawn = shown(Lines("t", "alt", "round", "y", (series,)))
    assert [">1<" in drawn, ">1.5<" in drawn, ">0.5<" in drawn] == [True, False, False]


@given(st.integers(0, 400), st.integers(0, 400))
def test_ticks_of_counts_are_whole_and_some(low, more):
    found = choose_ticks(*pad_range([low, low + more]), most=6, whole=True)
    assert 1 <= len(found) <= 7
    assert all(tick == round(tick) for tick in found)


@given(st.floats(-1e3, 1e3), st.floats(1e-6, 1e6))
def test_ticks_differ_and_lie_in_the_range(low, more):
    found = choose_ticks(low, low + more)
    assert found == sorted(set(found))
    assert all(low - more / 10 <= tick <= low + more * 1.1 for tick in found)


def test_more_than_two_lines_have_a_drawing_each_in_the_order_of_models():
    lines = [Series(name, (1, 2), (1.0, 2.0), (0.5, 1.5), (1.5, 2.5)) for name in "cab"]
    drawn = wide_of(Lines("t", "alt", "round", "y", tuple(lines)))
    assert drawn.count("<polygon") == 3  # a band for the own line only
    assert drawn.count('class="ln faint"') == 6
    assert re.findall('class="label">(.)</text>', drawn) == ["a", "b", "c"]


def test_a_target_is_a_line_at_its_value_with_its_name_in_the_legend():
    series = Series("a", (1, 2), (10.0, 6.0))
    drawn = wide_of(Lines("t", "alt", "blocks", "half-width", (series,), 2.0, "target: 2"))
    (height,) = re.findall(r'<line class="target" x1="\S+" y1="([\d.]+)"', drawn)
    (tick,) = re.findall(r'<text x="\S+" y="([\d.]+)" text-anchor="end">2</text>', drawn)
    assert float(height) == pytest.approx(float(tick) - LETTER / 3, abs=0.1)
    assert ">target: 2</text>" in drawn


def test_no_scale_shows_what_cannot_occur():
    line = Series("expected", (20, 90), (30.0, 98.0), (5.0, 80.0), (60.0, 118.0))
    dots = (Dot("a", 30, 40), Dot("b", 90, 100))
    bounds = {"x_bounds": (0.0, 100.0), "y_bounds": (0.0, 100.0)}
    drawn = wide_of(Scatter("t", "alt", "x", "y", dots, line, **bounds))
    (corners,) = re.findall(r'<polygon class="bd accent" points="([^"]+)"', drawn)
    top = min(float(y) for y in re.findall(r'<line class="grid" x1="\S+" y1="([\d.]+)"', drawn))
    assert min(float(corner.split(",")[1]) for corner in corners.split()) >= top
    assert ">120</text>" not in drawn
    assert bound_range((-8, 108), (0, 100)) == (0, 100)
    assert bound_range((-8, 108), ()) == (-8, 108)


def test_a_suspect_has_its_intervals_a_ring_and_words():
    dots = (Dot("a", 90, 40, "suspected", "", 80, 99, 30, 50), Dot("b", 50, 50))
    drawn = wide_of(Scatter("t", "alt", "x", "y", dots))
    assert drawn.count('class="thin c0"') == 2
    assert 'class="ring suspected"' in drawn
    assert ">a, suspected</text>" in drawn
    assert drawn.count('class="ring') == 1


def test_a_dot_does_not_hide_another_in_the_same_place():
    dots = (Dot("a", 1, 1), Dot("b", 1, 1), Dot("c", 2, 1))
    drawn = wide_of(Scatter("t", "alt", "x", "y", dots))
    found = re.findall(r'<g class="dot c[01]" transform="translate\(([\d.]+) \S+\)"><title>', drawn)
    assert float(found[1]) - float(found[0]) == pytest.approx(9, abs=0.1)


near = st.tuples(st.floats(0, 100), st.floats(0, 100))


@settings(deadline=None)
@given(
    st.lists(near, min_size=1, max_size=14, unique=True),
    st.integers(1, 18),
    st.sampled_from([WIDE, NARROW]),
)
def test_no_name_covers_a_point(points, letters, width):
    dots = [Dot("m" * letters, x, y) for x, y in points]
    plane = Plane(Axis((0, 100), 30, width - 14), Axis((0, 100), 220, 6))
    taken = []
    for dot in dots:
        label = place_name(dot, measure_text(dot.label), dots, taken, plane)
        if label is None:
            continue
        taken.append(label)
        for other in dots:
            x, y = plane.place(other.x, other.y)
            beside = not label.left - NEAR < x < label.left + label.width + NEAR
            above = not label.baseline - LETTER < y < label.baseline + 3
            assert beside or above


# What models look like.


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
    assert 'class="dot grey"' in drawn
    assert RING in drawn
    greys = re.findall(r"--grey:(#\w+)", read_style())
    assert len(greys) == 2  # light and dark
    models = re.findall(r"--m\d:(#\w+)", read_style())
    assert len(models) == 18
    assert not set(greys) & set(models)


def test_all_classes_of_drawings_have_a_style():
    known = set(re.findall(r"\.([a-z][\w-]*)", read_style()))
    for names in NAMES.values():
        for figure in make_figures(names):
            used = re.findall(r'class="([^"]+)"', shown(figure, ModelSigns.of(names)))
            assert {kind for each in used for kind in each.split()} <= known


def test_letters_have_at_least_eleven_pixels_where_a_drawing_is_shown():
    style = read_style()
    (size,) = re.findall(r"\.drawing text\{font-size:(\d+)px", style)
    (least,) = re.findall(r"@container \(min-width:(\d+)px\)\{\.drawings", style)
    assert int(size) == LETTER
    assert LETTER * int(least) / WIDE >= 11
    phone = 320 - 54  # the narrowest phone without the margins of page and card
    assert LETTER * phone / NARROW >= 11


def test_a_canvas_shows_hidden_characters():
    canvas = Canvas(WIDE, lambda text: text.replace("\u202e", "<U+202E>"), SIGNS)
    canvas.add_text(0, 10, "\u202ex")
    assert canvas.to_svg(Intervals("t", "", "", ()), "at-wide").count("&lt;U+202E&gt;x") == 1
