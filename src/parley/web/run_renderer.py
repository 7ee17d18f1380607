"""The parts of a run's page that change while the run is played, as HTML."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from traceback import format_exception
from typing import TYPE_CHECKING

from parley.errors import StoreError
from parley.providers._secrets import redact
from parley.report.model_signs import ModelSigns
from parley.results.match_notes import Mark
from parley.store.types import RunRef
from parley.web.live_run import RECENT, LiveRun, read_live
from parley.web.run_result import find_result

if TYPE_CHECKING:
    from parley.web.app import Site

CHIPS = {
    "running": Mark("● running", "warn"),
    "done": Mark("✓ done", "good"),
    "stopped": Mark("❙❙ stopped"),
    "failed": Mark("✕ failed", "bad"),
}


@dataclass(frozen=True)
class Rendered:
    """The parts of a page by name, as HTML, and whether they are final."""

    parts: dict[str, str]
    is_final: bool = False
    news: object = None  # changes if there is something to draw although nothing was written


class RunRenderer:
    """Renders the changing parts of the page of a run, for the page itself and for its events,
    which call it in a thread."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def render(self, ref: RunRef) -> Rendered:
        with self._site.store.read(ref) as reader:
            live = read_live(reader)
        return self.render_live(live)

    def render_live(self, live: LiveRun) -> Rendered:
        """The parts of a page for a state of the run."""
        ref, info = live.info.ref, live.info
        news = self.news(ref)
        result = find_result(self._site, info, live.counts)
        computing = not result.is_current and info.state != "running"
        signs = ModelSigns.of(info.config.contestants)

        facts = {"live": live, "state": CHIPS[info.state], "computing": computing}
        facts |= {"recent": RECENT}
        parts: dict[str, str] = {
            name: self._site.render(f"live_{name}.html", signs, ref=ref, **facts)
            for name in ("state", "progress", "endpoints", "latest")
        }
        parts |= {"result": result.html, "problem": ""}
        is_final = info.state == "done" and result.is_current
        return Rendered(parts, is_final, news)

    def news(self, ref: RunRef) -> object:
        """What changes besides the store: computations that have ended."""
        found = self._site.results.last(ref.location)
        return found and (found.stamp, found.at)

    def explain(self, wrong: Exception) -> Rendered:
        """What the page says while a run cannot be read."""
        if isinstance(wrong, StoreError):
            said = f"This run cannot be read now: {redact(str(wrong))}"
        else:
            print(redact("".join(format_exception(wrong))), file=sys.stderr)
            said = "Parley could not draw this page. The terminal of the server shows the error."
        return Rendered({"problem": self._site.render("live_problem.html", said=said)})
