"""Single figures as files: fixed sizes and colours, and every figure of a page has a name."""

import re
import struct
import xml.etree.ElementTree as ET
import zlib

import pytest
from click.testing import CliRunner

from parley import ParleyError, UsageError, run
from parley.cli.report import command
from parley.report.build import build_report
from parley.report.html import read_style
from parley.report.model_signs import ModelSigns
from parley.report.named_figures import NamedFigure, choose_figure, make_png, number_names
from parley.report.svg import draw_file
from parley.results.types import (
    Bar,
    Bars,
    Intervals,
    Point,
)
from tests.report.figures import make_figures

MODELS = ["alpha", "beta <b>", "gamma", "delta"]
SAMPLES = make_figures(MODELS)
SIGNS = ModelSigns.of(MODELS)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    models = {"a": "bot/free-rider", "b": "bot/random", "c": "bot/altruist"}
    folder = tmp_path_factory.mktemp("figures")
    return [
        run("public_goods", models=models, rounds=2, repeats=3, seed=seed, name=name, store=folder)
        for seed, name in enumerate(["first", "second"])
    ]


def shown_words(svg):
    """The words of a file that everybody sees."""
    return re.sub("<(title|desc|style)>.*?</(title|desc|style)>", "", svg)


@pytest.mark.parametrize("figure", SAMPLES, ids=lambda figure: figure.kind)
def test_a_file_has_all_that_it_needs(figure):
    svg = NamedFigure("name", figure, SIGNS).to_svg()
    root = ET.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("width") == "720"
    assert "var(" not in svg
    assert "@" not in svg  # no rule depends on a theme or a width
    assert "url(" not in svg
    assert 'fill="#ffffff"' in svg
    assert "<title>t</title><desc>alt</desc>" in svg
    used = {kind for each in re.findall(r'class="([^"]+)"', svg) for kind in each.split()}
    style = re.search("<style>(.*?)</style>", svg, re.DOTALL)[1]
    assert used <= {*re.findall(r"\.([a-z][\w-]*)", style)}


def test_a_file_says_what_it_shows():
    bars = Bars("Why it ended", "", "share", (Bar("a", {"off topic": 1.0}),))
    words = re.findall("<text[^>]*>([^<]*)", draw_file(bars, "", str))
    assert words[0] == "Why it ended"
    assert "off topic" in words


def test_a_model_has_the_colour_of_the_light_page():
    svg = NamedFigure("name", SAMPLES[0], SIGNS).to_svg()
    (light, dark) = re.findall(r"--m0:(#\w+)", read_style())
    assert f".c0{{color:{light}}}" in svg
    assert dark not in svg


@pytest.mark.parametrize("figure", SAMPLES, ids=lambda figure: figure.kind)
def test_a_picture_has_marks_in_the_colours_of_models(figure, monkeypatch):
    """Programs for SVG know less of CSS than browsers: what they draw is looked at."""
    monkeypatch.setattr("parley.report.named_figures.ZOOM", 1)
    png = make_png(NamedFigure("name", figure, SIGNS).to_svg())
    assert count_pixels(png, "#0b67ab") > 40  # the first model
    assert count_pixels(png, "#ffffff") > 20_000


def count_pixels(png, colour):
    """How many pixels of a picture have exactly a colour."""
    pixels = read_pixels(png)
    wanted = bytes.fromhex(colour.removeprefix("#")) + b"\xff"
    return sum(pixels[at : at + 4] == wanted for at in range(0, len(pixels), 4))


def read_pixels(png):
    """The pixels of a PNG with eight bits for each of four channels."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert (depth, kind) == (8, 6)
    data, at = b"", 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        at += size + 12
    raw, rows, above = zlib.decompress(data), [], bytearray(4 * width)
    for row in range(height):
        start = row * (4 * width + 1)
        method, line = raw[start], bytearray(raw[start + 1 : start + 1 + 4 * width])
        for place in range(len(line)):
            left = line[place - 4] if place >= 4 else 0
            corner = above[place - 4] if place >= 4 else 0
            line[place] = (line[place] + guess_byte(method, left, above[place], corner)) % 256
        rows.append(bytes(line))
        above = line
    return b"".join(rows)


def guess_byte(method, left, up, corner):
    """What a filter of PNG expects."""
    near = left + up - corner
    paeth = min((left, up, corner), key=lambda each: abs(near - each))
    return (0, left, up, (left + up) // 2, paeth)[method]


def test_the_result_and_the_pairs_of_a_run_have_names(found, tmp_path):
    listed = build_report([found[0].ref]).list_figures()
    names = [figure.name for figure in listed]
    assert names[:2] == ["result", "pairs"]
    assert len(set(names)) == len(names)
    svg = choose_figure(listed, "result").to_svg()
    assert "free-rider" in svg
    assert "<desc>Players: mean payoff (coins) per match, higher is better;" in svg
    assert "Players: mean payoff (coins) per match, higher is better" in shown_words(svg)
    assert "≈" in shown_words(choose_figure(listed, "pairs").to_svg())


def test_every_figure_of_a_page_has_a_name(found):
    page = build_report([found[0].ref]).render("html")
    drawn = page.count('<div class="drawings')
    assert len(build_report([found[0].ref]).list_figures()) == drawn


def test_figures_of_several_runs_name_their_run(found):
    names = [each.name for each in build_report([each.ref for each in found]).list_figures()]
    assert {"result@first", "result@second", "pairs@first", "pairs@second"} <= set(names)


def test_figures_of_one_name_are_numbered():
    listed = [NamedFigure(name, SAMPLES[0], SIGNS) for name in ("x", "x@run", "x", "x@run")]
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


def test_a_figure_that_cannot_be_drawn_is_named():
    figure = Intervals("wide", "", "", (Point("a", float("inf")),))
    with pytest.raises(ParleyError, match="the figure `wide` cannot be drawn"):
        NamedFigure("wide", figure, SIGNS).to_svg()


def test_a_secret_is_masked_in_a_file(monkeypatch):
    key = "kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    figure = Intervals(key, key, key, (Point(key, 1.0),), legend=key)
    assert key not in NamedFigure("x", figure, SIGNS).to_svg()


def test_a_file_is_xml_whatever_the_words_are():
    words = "".join(map(chr, [*range(32), 0x7F, 0x202E, 0xD800, 0xFDD0, 0xFFFE, 0xFFFF, 0x1F600]))
    figure = Intervals(words, words, words, (Point(words, 1.0),), legend=words)
    ET.fromstring(NamedFigure("x", figure, SIGNS).to_svg())
