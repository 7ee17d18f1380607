"""A self-contained HTML page: no scripts, no requests, all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any, get_args

from parley import __version__
from parley.report.figures import draw
from parley.report.sections import Clean, ComparisonResult, Section, clean_table, make_secret_filter
from parley.results.part import Part, SectionName
from parley.results.result import Result
from parley.results.types import Figure, Scatter
from parley.tables import show_hidden

LARGEST = 1_000_000  # bytes of a page


def make_page(compared: Sequence[ComparisonResult], results: Sequence[Result]) -> str:
    """The comparisons, if there are any, then every run."""
    for whole in (True, False):  # all parts of single runs, if the page does not get too large
        text = page_text(compared, results, whole)
        if len(text.encode()) < LARGEST:
            break
    return text


def page_text(compared: Sequence[ComparisonResult], results: Sequence[Result], whole: bool) -> str:
    """The page, with all parts of every run or with its results only."""
    without_secrets = make_secret_filter()

    def clean(text: str) -> str:
        return show_hidden(without_secrets(text))

    sections = [
        *(section for found in compared for section in found.sections),
        *(make_run_section(result, whole) for result in results),
    ]
    ids = [result.head.run.id for result in results]
    tasks = ", ".join(dict.fromkeys(result.head.run.task for result in results))
    body = "".join(draw_section(section, f"s{at}", clean) for at, section in enumerate(sections))
    links = "".join(
        f'<li><a href="#s{at}">{escape(clean(section.title))}</a></li>'
        for at, section in enumerate(sections)
    )
    title = escape(clean(f"Parley: {tasks}"))
    closed = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width">'
        f'<meta name="generator" content="Parley {__version__}">'
        f'<meta http-equiv="Content-Security-Policy" content="{closed}">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>"
        f"<p>{escape(clean(', '.join(ids)))}</p><nav><ul>{links}</ul></nav><main>{body}</main></"
        f"body></html>\n"
    )


def make_run_section(result: Result, whole: bool) -> Section:
    """The result of a run, and below it each part that the run has, in the order of sections."""
    run, title = result.head.run, name_run(result)
    if not whole:
        left_out = (
            f"Other parts are left out to keep the page small; see parley show {run.id} --part NAME"
        )
        return Section(title, [result.table()], left_out)
    parts = [part for part in result.parts.values() if part.name != "results"]
    titles = {part.name: part.title for part in sorted(parts, key=place_of_part)}
    titles |= {name: f"{name} (as stored in the file)" for name in result.stored}
    sections = [make_part_section(result, name, heading) for name, heading in titles.items()]
    own = [part for part in sections if part.tables or part.figures]
    return Section(title, [result.table()], figures=result.figures("results"), parts=own)


def name_run(result: Result) -> str:
    """The heading of a run."""
    run = result.head.run
    name = f" ({run.name})" if run.name else ""
    return f"Run {run.id}{name}: {run.task}, {run.state}"


def place_of_part(part: Part[Any]) -> int:
    """The position of a part on the page: parts of one section are kept together."""
    return get_args(SectionName).index(part.section)


def make_part_section(result: Result, name: str, title: str) -> Section:
    """A part of a result under its own title; every table has the signature of the scores."""
    tables = [
        replace(table, note="\n".join([*filter(None, [table.note]), *result.signature_lines()]))
        for table in result.tables(name)
        if table.rows
    ]
    return Section(title, tables, figures=result.figures(name), anchor=name)


def draw_figure(figure: Figure, clean: Clean) -> str:
    """A figure with its title, or a line that says why it cannot be drawn."""
    try:
        drawing = draw(figure, clean)
    except (TypeError, ValueError, ArithmeticError, StopIteration, IndexError) as wrong:
        return f"<p>{escape(clean(f'{figure.title}: this figure cannot be drawn ({wrong})'))}</p>"
    title = escape(clean(figure.title))
    return f"<figure>{drawing}<figcaption>{title}</figcaption></figure>"


def draw_section(section: Section, anchor: str, clean: Clean, level: int = 2) -> str:
    """A section: text, figures, tables, and its subsections."""
    figures = "".join(draw_figure(figure, clean) for figure in section.figures)
    legends = dict.fromkeys(
        figure.legend for figure in section.figures if isinstance(figure, Scatter)
    )
    figures += "".join(f"<p>{escape(clean(legend))}</p>" for legend in legends if legend)
    words = f"<p>{escape(clean(section.words))}</p>" if section.words else ""
    tables = "".join(
        f'<div class="table left{table.left}">{clean_table(table, clean).render("html")}</div>'
        for table in section.tables
    )
    title = escape(clean(section.title))
    parts = "".join(
        draw_section(part, f"{anchor}-{part.anchor}", clean, level + 1) for part in section.parts
    )
    heading = f"<h{level}>{title}</h{level}>"
    body = f"{heading}{words}{figures}{tables}{parts}"
    return f'<section id="{escape(anchor)}">{body}</section>'


STYLE = """
:root{color-scheme:light dark;--ink:#1c1f24;--soft:#5c6370;--paper:#fff;--rule:#d9dde3;--band:#3b6ea522;--line:#3b6ea5;
--bad:#b3261e;--look:#b26a00;--good:#1b7f4b}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#a0a7b4;--paper:#15181c;--rule:#343a43;--band:#7fb0e622;--line:#7fb0e6;
--bad:#ff8a80;--look:#ffc069;--good:#7ddba3}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2rem auto;max-width:76rem;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid var(--rule)}h3{font-size:1rem;margin-top:1.6rem}
nav ul{columns:2;padding-left:1.2rem}a{color:var(--line)}p{color:var(--soft);overflow-wrap:anywhere}
.table{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.87rem}
th,td{padding:.2rem .6rem;text-align:right;white-space:pre;border-bottom:1px solid var(--rule)}
caption{text-align:left;font-weight:600;padding:.2rem .6rem}
.table p{font-size:.8rem;margin:.3rem 0}
.left1 :is(th,td):nth-child(-n+1),.left2 :is(th,td):nth-child(-n+2),.left3 :is(th,td):nth-child(-n+3),
.left4 :is(th,td):nth-child(-n+4),.left5 :is(th,td):nth-child(-n+5){text-align:left}
figure{display:inline-block;margin:0 1rem 1rem 0;max-width:100%}svg{width:35rem;max-width:100%;height:auto}
figcaption{color:var(--soft);text-align:center}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
.grid{stroke:var(--rule)}.band{fill:var(--band)}.line{fill:none;stroke:var(--line);stroke-width:2}
.name{paint-order:stroke;stroke:var(--paper);stroke-width:3px}
.point{fill:var(--line)}.suspected{fill:var(--bad)}.look{fill:var(--paper);stroke:var(--look);stroke-width:2}.above{fill:var(--good)}
.heat{fill:color-mix(in srgb,var(--line) calc(var(--share)*70%),var(--paper))}
.stroke0{fill:none;stroke:#3b6ea5;stroke-width:2}.stroke1{fill:none;stroke:#d98e04;stroke-width:2}.stroke2{fill:none;stroke:#2b8a6e;stroke-width:2}
.stroke3{fill:none;stroke:#b3261e;stroke-width:2}.stroke4{fill:none;stroke:#7b5ea7;stroke-width:2}.stroke5{fill:none;stroke:#7a7f87;stroke-width:2}
.kind0{fill:#3b6ea5}.kind1{fill:#d98e04}.kind2{fill:#2b8a6e}.kind3{fill:#b3261e}.kind4{fill:#7b5ea7}.kind5{fill:#7a7f87}
@media print{nav{display:none}section{break-inside:avoid}}
"""  # noqa: E501
