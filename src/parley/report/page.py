"""One page that holds everything: no script, no request to anywhere, every word escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from parley import __version__
from parley.report.figures import scatter, stop_bars
from parley.results.parts.differences import PARTS
from parley.results.result import Result
from parley.statistics.contamination import Fit
from parley.tasks.kieval.comparison import Analysis
from parley.tasks.kieval.sections import Clean, Section, cleaned, sections, tidy

LARGEST = 1_000_000  # bytes of a page


def page(found: Analysis | None, results: Sequence[Result]) -> str:
    """The analysis, where there is one, then every run for itself."""
    for parts in (True, False):  # of single runs, as far as there is room for them
        text = made(found, results, parts)
        if len(text.encode()) < LARGEST:
            break
    return text


def made(found: Analysis | None, results: Sequence[Result], parts: bool) -> str:
    """The page, with all parts of every run or with its results only."""
    clean = cleaned()
    shown = [
        *([] if found is None else sections(found)),
        *(of_run(result, parts) for result in results),
    ]
    ids = [str(result.data["run"]["id"]) for result in results]
    tasks = ", ".join(dict.fromkeys(str(result.data["run"]["task"]) for result in results))
    body = "".join(drawn(part, at, found, clean) for at, part in enumerate(shown))
    links = "".join(
        f'<li><a href="#s{at}">{escape(clean(part.title))}</a></li>'
        for at, part in enumerate(shown)
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


def of_run(result: Result, whole: bool) -> Section:
    """The ordinary parts of a result, as far as it has them."""
    data = result.data
    name = f" ({data['run']['name']})" if data["run"]["name"] else ""
    title = f"Run {data['run']['id']}{name}: {data['run']['task']}, {data['run']['state']}"
    if not whole:
        return Section(
            title,
            [result.table()],
            f"Its other parts are left out here: parley show {data['run']['id']} --part …",
        )
    parts = [table for part in PARTS for table in PARTS[part](data) if table.rows]
    signature = f"signature: {data['results'][0]['signature']}" if data["results"] else ""
    parts = [
        replace(table, note="\n".join(filter(None, [table.note, signature]))) for table in parts
    ]
    return Section(title, [result.table(), *parts])


def drawn(section: Section, at: int, found: Analysis | None, clean: Clean) -> str:
    """A section: words, figures, tables."""
    figures = ""
    if section.figure == "scatter" and found is not None and found.contamination is not None:
        pictures = [
            (fit.dataset, scatter(named(fit, clean)))
            for fit in found.contamination.fits
            if fit.positions
        ]
        figures = "".join(
            f"<figure>{svg}<figcaption>{escape(clean(name))}</figcaption></figure>"
            for name, svg in pictures
        )
        figures += f"<p>{LEGEND}</p>"
    if section.figure == "stops" and found is not None:
        picture = stop_bars([{**row, "alias": clean(row["alias"])} for row in found.record.stops])
        figures = f"<figure>{picture}</figure>" if picture else ""
    words = f"<p>{escape(clean(section.words))}</p>" if section.words else ""
    tables = "".join(
        f'<div class="table left{table.left}">{tidy(table, clean).render("html")}</div>'
        for table in section.tables
    )
    title = escape(clean(section.title))
    return f'<section id="s{at}"><h2>{title}</h2>{words}{figures}{tables}</section>'


def named(fit: Fit, clean: Clean) -> Fit:
    """A dataset's points with names that may be shown."""
    return replace(
        fit,
        dataset=clean(fit.dataset),
        positions=[replace(one, model=clean(one.model)) for one in fit.positions],
    )


LEGEND = (
    "Line and band: where models are expected by the others; the band leaves out 5 in 100 honest "
    "models on either side. ◆ suspected, □ worth a look, ▲ above the line, ● others."
)

STYLE = """
:root{color-scheme:light dark;--ink:#1c1f24;--soft:#5c6370;--paper:#fff;--rule:#d9dde3;--band:#3b6ea522;--line:#3b6ea5;
--bad:#b3261e;--look:#b26a00;--good:#1b7f4b}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#a0a7b4;--paper:#15181c;--rule:#343a43;--band:#7fb0e622;--line:#7fb0e6;
--bad:#ff8a80;--look:#ffc069;--good:#7ddba3}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2rem auto;max-width:76rem;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid var(--rule)}
nav ul{columns:2;padding-left:1.2rem}a{color:var(--line)}p{color:var(--soft);overflow-wrap:anywhere}
.table{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.87rem}
th,td{padding:.2rem .6rem;text-align:right;white-space:pre;border-bottom:1px solid var(--rule)}
.table p{font-size:.8rem;margin:.3rem 0}
.left1 :is(th,td):nth-child(-n+1),.left2 :is(th,td):nth-child(-n+2),.left3 :is(th,td):nth-child(-n+3),
.left4 :is(th,td):nth-child(-n+4),.left5 :is(th,td):nth-child(-n+5){text-align:left}
figure{display:inline-block;margin:0 1rem 1rem 0;max-width:100%}svg{width:35rem;max-width:100%;height:auto}
figcaption{color:var(--soft);text-align:center}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
.grid{stroke:var(--rule)}.band{fill:var(--band)}.line{fill:none;stroke:var(--line);stroke-width:2}
.name{paint-order:stroke;stroke:var(--paper);stroke-width:3px}
.point{fill:var(--line)}.suspected{fill:var(--bad)}.look{fill:var(--paper);stroke:var(--look);stroke-width:2}.above{fill:var(--good)}
.kind0{fill:#3b6ea5}.kind1{fill:#d98e04}.kind2{fill:#2b8a6e}.kind3{fill:#b3261e}.kind4{fill:#7b5ea7}.kind5{fill:#7a7f87}
@media print{nav{display:none}section{break-inside:avoid}}
"""  # noqa: E501
