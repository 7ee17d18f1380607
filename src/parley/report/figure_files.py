"""Single figures of a report, by name, as SVG or PNG files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from parley.config.extras import find_extra
from parley.errors import ParleyError, UsageError, unknown_name
from parley.report.figures import Clean, draw
from parley.report.looks import Looks, choose_looks
from parley.report.run_page import ResultChart, list_pair_charts, list_score_charts, ordered_parts
from parley.report.svg_figure import make_svg
from parley.results.compared_runs import ComparisonResult
from parley.results.result import RunResult
from parley.results.types import Figure

FIGURE_ENDINGS = (".svg", ".png")
ZOOM = 3  # pixels of a PNG for each pixel of an SVG


class NamedFigure(NamedTuple):
    """A figure of a report: its name for `--figure`, its title, its HTML, and its words."""

    name: str
    title: str
    body: str
    words: str = ""

    def to_svg(self) -> str:
        return make_svg(self.body, self.title, self.words)


def list_figures(
    compared: Sequence[ComparisonResult], results: Sequence[RunResult], clean: Clean
) -> list[NamedFigure]:
    """Every figure of a report: those of comparisons, then those of each run. With several runs,
    the name of a run's figure ends with `@` and the run."""
    looks = choose_looks(results)
    found = [
        name_figure(part.name, figure, clean, looks)
        for comparison in compared
        for part in comparison.page_parts
        for figure in comparison.figures(part.name)
    ]
    for result in results:
        result.compute()  # all parts from one reading of the file
    names = [result.head.run.name for result in results]
    for result, name in zip(results, names, strict=True):
        run = name if name and names.count(name) == 1 else result.head.run.id
        after = f"@{run}" if len(results) > 1 else ""
        own = list_run_figures(result, clean, looks)
        found += [figure._replace(name=figure.name + after) for figure in own]
    return list(number_names(found))


def list_run_figures(result: RunResult, clean: Clean, looks: Looks) -> Iterator[NamedFigure]:
    """The main result, who beats whom, and the figures of all parts."""
    yield from name_charts("result", "Result", list_score_charts(result, looks, clean), clean)
    yield from name_charts("pairs", "Who beats whom", list_pair_charts(result, looks, clean), clean)
    for name in [*(part.name for part in ordered_parts(result)), *result.stored]:
        for figure in result.figures(name):
            yield name_figure(name, figure, clean, looks)


def name_charts(
    name: str, title: str, charts: Sequence[ResultChart], clean: Clean
) -> Iterator[NamedFigure]:
    """Charts of the main result: `result`, or `result-ROLE` if there are several roles."""
    for chart in charts:
        own = name if len(charts) == 1 else f"{name}-{chart.role}"
        words = clean(chart.words)
        # the page shows the words as a caption, which a file does not draw
        body = f'<p class="why">{escape(words.partition(". ")[0])}</p>{chart.body}'
        yield NamedFigure(own, f"{title}: {clean(chart.role)}", body, words)


def name_figure(name: str, figure: Figure, clean: Clean, looks: Looks) -> NamedFigure:
    try:
        body = draw(figure, clean, looks)
    except (TypeError, ValueError, ArithmeticError, StopIteration, IndexError) as wrong:
        raise ParleyError(f"the figure `{figure.title}` cannot be drawn: {wrong}") from wrong
    return NamedFigure(name, clean(figure.title), body, clean(figure.alt))


def number_names(figures: Iterable[NamedFigure]) -> Iterator[NamedFigure]:
    """Figures whose names differ: the second of one name gets the number 2."""
    seen = Counter[str]()
    for figure in figures:
        seen[figure.name] += 1
        count = seen[figure.name]
        own, at, run = figure.name.partition("@")
        yield figure._replace(name=f"{own}-{count}{at}{run}") if count > 1 else figure


def choose_figure(figures: Sequence[NamedFigure], name: str) -> NamedFigure:
    """The figure of a name; the error lists the names of this report."""
    for figure in figures:
        if figure.name == name:
            return figure
    if not figures:
        raise UsageError("this report has no figure: no match of these runs has a score yet")
    raise unknown_name("figure", name, [figure.name for figure in figures])


def write_figure(figure: NamedFigure, path: str | Path) -> Path:
    """Write a figure to a file; the end of its name says the format."""
    place = Path(path).expanduser()
    kind = place.suffix.lower()
    if kind not in FIGURE_ENDINGS:
        raise UsageError(f"--figure needs a file that ends with .svg or .png, not {place.name}")
    svg = figure.to_svg()
    content = svg.encode() if kind == ".svg" else make_png(svg)
    try:
        place.write_bytes(content)
    except OSError as wrong:
        raise UsageError(f"the figure cannot be written to {place}: {wrong}") from None
    return place


def make_png(svg: str) -> bytes:
    """A drawing as PNG."""
    extra = find_extra("png")
    if extra.missing:
        raise UsageError(f"a PNG file needs an extra that is not installed: {extra.install}")
    drawn: bytes = bytes(import_module("resvg_py").svg_to_bytes(svg_string=svg, zoom=ZOOM))
    return drawn
