"""Single figures as files: fixed sizes and colours, and every figure of a page has a name."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

from parley import ParleyError, UsageError, run
from parley.cli.report import command
from parley.report import figures, looks
from parley.report.build import build_report
from parley.report.figure_files import NamedFigure, choose_figure, make_png, number_names
from parley.report.figures import draw
from parley.report.looks import Looks
from parley.report.style_rules import (
    Element,
    compute_style,
    matches,
    own_style,
    root_style,
    scope_style,
)
from parley.report.svg_figure import make_svg
from parley.results.types import (
    Bar,
    Bars,
    Dot,
    HeatMap,
    Intervals,
    Lines,
    Point,
    Scatter,
    Series,
)

MODELS = ["alpha", "beta <b>", "gamma", "delta"]
SAMPLES = {
    "intervals": Intervals(
        "t", "a", "coins",
        tuple(Point(name, at + 0.5, at, at + 1) for at, name in enumerate(MODELS)),
    ),
    "bars": Bars("t", "a", "n", tuple(Bar(name, {"won": 3, "lost": 2}, "5") for name in MODELS)),
    "lines": Lines(
        "t", "a", "round", "coins",
        tuple(
            Series(name, (1, 2, 3), (at, None, at + 1), (0, None, 0), (2, None, 3))
            for at, name in enumerate(MODELS)
        ),
    ),
    "scatter": Scatter(
        "t", "a", "accuracy", "score",
        tuple(Dot(name, 20 * at, 10 * at, "look" if at else "") for at, name in enumerate(MODELS)),
        Series("fit", (0, 60), (0, 30), (0, 20), (5, 40)),
    ),
    "scatter with a tie": Scatter(
        "t", "a", "accuracy", "score", tuple(Dot(name, 20, 10) for name in MODELS)
    ),
    "heat map": HeatMap("t", "a", "x", tuple(MODELS), ("A", "B"), ((0.1, None),) * 4),
}  # fmt: skip
LOOKS = Looks.of(MODELS)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    models = {"a": "bot/free-rider", "b": "bot/random", "c": "bot/altruist"}
    folder = tmp_path_factory.mktemp("figures")
    return [
        run("public_goods", models=models, rounds=2, repeats=3, seed=seed, name=name, store=folder)
        for seed, name in enumerate(["first", "second"])
    ]


def words_of(text):
    """The words of a page or a drawing without what only screen readers see."""
    shown = re.sub(
        r'<(title|desc|caption|span class="vh")[^>]*>.*?</(title|desc|caption|span)>', "", text
    )
    return sorted(re.sub("<[^>]*>", " ", shown).split())


@pytest.mark.parametrize("figure", SAMPLES.values(), ids=SAMPLES)
def test_a_figure_becomes_a_file_with_all_its_words(figure):
    body = draw(figure, str, LOOKS)
    svg = make_svg(body, "title", "words")
    ET.fromstring(svg)
    assert words_of(svg) == words_of(body)
    assert "%" not in re.sub("<text.*?</text>", "", svg)  # every size is fixed
    assert "var(" not in svg
    assert "class=" not in svg
    assert "currentColor" not in svg
    assert '<rect width="720" height="' in svg
    assert 'fill="#ffffff"' in svg


def test_figures_use_only_elements_that_a_file_can_have():
    drawn = "".join(
        Path(module.__file__).read_text(encoding="utf-8") for module in (figures, looks)
    )
    shapes = {"svg", "g", "line", "rect", "circle", "path", "polyline", "polygon", "text", "title"}
    around = {
        "table", "thead", "tbody", "tr", "th", "td", "caption", "div", "p", "span", "bdi", "br",
        "ul", "li",
    }  # fmt: skip
    assert set(re.findall(r"<([a-z]+)[ >/{]", drawn)) <= shapes | around


def test_a_model_has_the_colour_of_the_light_page():
    svg = make_svg(draw(SAMPLES["intervals"], str, LOOKS), "t")
    for name in ("--m0", "--m1", "--m2", "--m3"):
        assert f'fill="{root_style()[name]}"' in svg


def test_the_result_and_the_pairs_of_a_run_have_names(found, tmp_path):
    listed = build_report([found[0].ref]).list_figures()
    names = [figure.name for figure in listed]
    assert names[:2] == ["result", "pairs"]
    assert len(set(names)) == len(names)
    svg = choose_figure(listed, "result").to_svg()
    assert words_of(svg)[:3]
    assert "free-rider" in svg
    assert "<desc>Players: mean payoff (coins) per match, higher is better;" in svg
    shown = re.sub("<(title|desc)>.*?</(title|desc)>", "", svg)
    assert "Players: mean payoff (coins) per match, higher is better" in shown
    assert "▲" in choose_figure(listed, "pairs").to_svg()


def test_every_figure_of_a_page_has_a_name(found):
    page = build_report([found[0].ref]).render("html")
    charts = len(re.findall(r'<table class="(?:chart|wide)"|<figure>', page))
    inside = len(re.findall(r'<figure>(?:(?!</figure>).)*<table class="chart"', page, re.S))
    assert len(build_report([found[0].ref]).list_figures()) == charts - inside


def test_figures_of_several_runs_name_their_run(found):
    names = [each.name for each in build_report([each.ref for each in found]).list_figures()]
    assert {"result@first", "result@second", "pairs@first", "pairs@second"} <= set(names)


def test_figures_of_one_name_are_numbered():
    listed = [NamedFigure(name, "", "") for name in ("x", "x@run", "x", "x@run")]
    assert [each.name for each in number_names(listed)] == ["x", "x@run", "x-2", "x-2@run"]


def test_an_unknown_name_lists_the_figures(found):
    with pytest.raises(UsageError, match=r"'resul'; did you mean 'result'\? available: .*pairs"):
        choose_figure(build_report([found[0].ref]).list_figures(), "resul")


def ask(*given):
    return CliRunner().invoke(command, list(map(str, given)), catch_exceptions=False)


def test_the_command_writes_svg_and_png(found, tmp_path):
    svg, png = tmp_path / "fig.svg", tmp_path / "fig.png"
    ask(found[0].path, "--figure", "result", "-o", svg)
    assert svg.read_text(encoding="utf-8").startswith("<svg xmlns=")
    ask(found[0].path, "--figure", "pairs", "-o", png)
    assert png.read_bytes().startswith(b"\x89PNG")
    width = int.from_bytes(png.read_bytes()[16:20], "big")
    assert width == 3 * 720
    assert ask(found[0].path, "--figure", "result").stdout == svg.read_text(encoding="utf-8")


def test_a_wrong_file_or_format_is_refused(found, tmp_path):
    with pytest.raises(UsageError, match=r"ends with \.svg or \.png, not fig\.pdf"):
        ask(found[0].path, "--figure", "result", "-o", tmp_path / "fig.pdf")
    with pytest.raises(UsageError, match="leave out --format and --json"):
        ask(found[0].path, "--figure", "result", "--json")


def test_a_whole_report_is_not_written_over_a_figure(found, tmp_path):
    figure = tmp_path / "fig.SVG"
    figure.write_text("a figure", encoding="utf-8")
    with pytest.raises(
        UsageError, match=r"cannot be written as \.svg: .* --figure NAME; .* \.html"
    ):
        ask(found[0].path, "-o", figure)
    assert figure.read_text(encoding="utf-8") == "a figure"


@pytest.mark.parametrize(
    ("ending", "start"),
    [
        ("json", "{"),
        ("csv", "alias,"),
        ("txt", "public_goods, "),
        ("md", "**"),
        ("page", "<!doctype html>"),
    ],
)
def test_the_ending_of_a_file_chooses_the_format(found, tmp_path, ending, start):
    place = tmp_path / f"report.{ending}"
    ask(found[0].path, "-o", place, "--no-audit")
    assert place.read_text(encoding="utf-8").startswith(start)


def test_png_without_its_extra_says_what_to_install(monkeypatch):
    monkeypatch.setattr("parley.config.extras.find_spec", lambda module: None)
    with pytest.raises(UsageError, match=r"pip install 'parley-eval\[png\]'"):
        make_png("<svg/>")


def test_a_shape_that_cannot_be_written_is_named():
    with pytest.raises(ParleyError, match="<foreignobject> cannot be written"):
        make_svg('<svg width="100%" height="9"><foreignObject></foreignObject></svg>', "t")


def element(markup_classes, *parents):
    at = None
    for tag, classes in (*parents, ("td", markup_classes)):
        at = Element(tag, {"class": classes}, at)
        if at.parent:
            at.parent.children.append(at)
    return at


def test_styles_follow_the_sheet():
    cell = element("cell h4", ("table", "heat"), ("tr", ""))
    style = compute_style(cell, root_style())
    assert style["background"] == "#d1dfec"  # 20% of the accent on the card
    assert style["text-align"] == "center"
    assert matches(cell, ".heat td")
    assert matches(cell, "tr>.cell:first-child")
    assert not matches(cell, ".chart td")
    assert matches(cell, ":is(th,td):nth-child(-n+2)")


def test_a_scoped_sheet_restyles_nothing_else():
    scoped = scope_style(own_style(), ".parley")
    outside = re.sub(r"@media[^{]*\{", "", scoped)
    for rule in re.findall(r"([^{}]+)\{", outside):
        assert rule.strip().startswith(".parley"), rule
    assert scoped.count("{") == scoped.count("}")
