"""Figures in a real browser: readable at every width and theme, whatever the data are."""

import pytest

from parley.report.html import read_style
from parley.report.model_signs import ModelSigns
from parley.report.svg import draw
from tests.report.figures import HOSTILE, LONG, NAMES, make_figures

# drawings that are shown: their words outside of them, and words that cover other words
FAULTS = """() => {
    const found = [];
    for (const drawing of document.querySelectorAll('.drawing')) {
        const frame = drawing.getBoundingClientRect();
        if (!frame.width) continue;
        const texts = [...drawing.querySelectorAll('text')].map(text => {
            const box = text.getBoundingClientRect();
            return {words: text.firstChild?.data, box};
        });
        for (const {words, box} of texts)
            if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
                box.top < frame.top - 4 || box.bottom > frame.bottom + 4)
                found.push(['outside', words, box.left - frame.left, box.right - frame.right,
                    box.top - frame.top, box.bottom - frame.bottom]);
        texts.forEach((one, at) => texts.slice(at + 1).forEach(other => {
            const across = Math.min(one.box.right, other.box.right)
                - Math.max(one.box.left, other.box.left);
            const down = Math.min(one.box.bottom, other.box.bottom)
                - Math.max(one.box.top, other.box.top);
            if (across > 1 && down > 6) found.push(['covers', one.words, other.words]);
        }));
    }
    return found.slice(0, 12);
}"""
SHOWN = """() => [...document.querySelectorAll('.drawings')].map(
    drawn => [...drawn.children].filter(each => each.getClientRects().length).map(
        each => each.getAttribute('class')).join())"""


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    """A page of figures about few and many models, with long, foreign and hostile names."""
    body = ""
    for names in (*NAMES.values(), ["a", "b", "c"], [HOSTILE, LONG]):
        for figure in make_figures(names):
            body += f'<section class="card">{draw(figure, str, ModelSigns.of(names))}</section>'
    place = tmp_path_factory.mktemp("gallery") / "page.html"
    place.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Figures</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{read_style()}</style><main><h1>Figures</h1>{body}</main></html>",
        encoding="utf-8",
    )
    return place


@pytest.mark.parametrize(
    ("width", "kind"), [(1280, "at-wide"), (700, "at-wide"), (390, "at-narrow")]
)
def test_words_stay_inside_and_cover_no_others(gallery, open_page, width, kind):
    page = open_page(gallery, width).page
    assert page.evaluate(FAULTS) == []
    shown = page.evaluate(SHOWN)
    assert shown
    assert all(kind in each and each.count("drawing") == 1 for each in shown)


@pytest.mark.parametrize("width", [1280, 700, 390, 320])
def test_every_width(gallery, open_page, width):
    open_page(gallery, width).check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "media", "theme"),
    [(1280, "screen", "dark"), (390, "screen", "dark"), (700, "print", "light")],
)
def test_dark_and_print(gallery, open_page, width, media, theme):
    open_page(gallery, width, theme, media).check()


def test_a_printed_page_has_wide_drawings_in_dark_ink(gallery, open_page):
    page = open_page(gallery, 794 - 77, "dark", "print").page  # A4 with its margins
    assert all("at-wide" in each for each in page.evaluate(SHOWN))
    colour = "() => getComputedStyle(document.querySelector('.drawing .label')).fill"
    assert page.evaluate(colour) == "rgb(27, 29, 33)"
