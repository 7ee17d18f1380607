"""Single figures of a report, by name, as SVG or PNG files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from parley.config.extras import find_extra
from parley.errors import ParleyError, UsageError, unknown_name
from parley.report.html import make_cleaner, read_file_style
from parley.report.model_signs import ModelSigns, choose_signs
from parley.report.run_page import ordered_parts
from parley.report.svg import DrawingError, draw_file
from parley.results.compared_runs import ComparisonResult
from parley.results.result import RunResult
from parley.results.types import Figure, HeatMap, Intervals

FIGURE_ENDINGS = (".svg", ".png")
ZOOM = 3  # pixels of a PNG for each pixel of an SVG
MAIN = {"results": "result", "pairs": "pairs"}  # by part: what users type for its figures


class NamedFigure(NamedTuple):
    """A figure of a report, and its name for `--figure`."""

    name: str
    figure: Figure
    signs: ModelSigns

    def to_svg(self) -> str:
        try:
            return draw_file(self.figure, read_file_style(), make_cleaner(), self.signs)
        except DrawingError as wrong:
            title = self.figure.title
            raise ParleyError(f"the figure `{title}` cannot be drawn: {wrong}") from wrong


def list_figures(
    compared: Sequence[ComparisonResult], results: Sequence[RunResult]
) -> list[NamedFigure]:
    """Every figure of a report: those of comparisons, then those of each run. With several runs,
    the name of a run's figure ends with `@` and the run."""
    signs = choose_signs(results)
    found = [
        NamedFigure(part.name, figure, signs)
        for comparison in compared
        for part in comparison.page_parts
        for figure in comparison.figures(part.name)
    ]
    names = [result.head.run.name for result in results]
    for result, name in zip(results, names, strict=True):
        run = name if name and names.count(name) == 1 else result.head.run.id
        after = f"@{run}" if len(results) > 1 else ""
        own = list_run_figures(result)
        found += [NamedFigure(name + after, figure, signs) for name, figure in own]
    return list(number_names(found))


def list_run_figures(result: RunResult) -> Iterator[tuple[str, Figure]]:
    """The main result, who beats whom, and the figures of all parts."""
    result.compute()  # all parts from one reading of the file
    for part, name in MAIN.items():
        figures = result.figures(part)
        for figure in figures:
            role = figure.role if isinstance(figure, Intervals | HeatMap) else ""
            yield name if len(figures) == 1 else f"{name}-{role}", figure
    for name in [*(part.name for part in ordered_parts(result)), *result.stored]:
        for figure in result.figures(name):
            yield name, figure


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
