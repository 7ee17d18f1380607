"""Takes the screenshots of the docs: `python docs/pictures/screenshots.py`.

Plays a few small runs with bots, serves them, and opens the pages in Chromium (Debian's package, by
playwright). Needs the extras `test` and `web`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PICTURES = Path(__file__).resolve().parent
PARLEY = [sys.executable, "-m", "parley"]
GAME = ["-m", "bot/free-rider", "-m", "bot/reciprocator", "-m", "bot/random", "-m", "bot/altruist"]
INTERVIEWS = [
    *("-m", "strong=bot/candidate", "-m", "weak=bot/candidate"),
    *("-M", "strong.knowledge=0.9", "-M", "weak.knowledge=0.2"),
    *("--role", "interactor=bot/interactor", "--role", "evaluator=bot/evaluator"),
    *("--set", "verify=no", "--items", "20"),
]
SIZE = {"width": 1280, "height": 860}


def main() -> None:
    """Play, serve, and take all pictures."""
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "runs"
        call("run", "public_goods", *GAME, "--repeats", "10", "--name", "coins", store=store)
        call("run", "kieval", *INTERVIEWS, "--name", "interviews", store=store)
        call("report", "coins", "-o", str(store / "report.html"), store=store)
        call("annotate", "draw", "interviews", store=store)
        invited = call("annotate", "invite", "interviews", "--annotator", "Reader", store=store)
        secret = next(word for word in invited.split() if "/vote/" in word).partition("/vote/")[2]
        run = next(path.stem for path in store.glob("public_goods-*.parley"))
        with serve(store) as url, open_browser() as page:
            take(page, (store / "report.html").as_uri(), "report")
            take(page, f"{url}/", "runs")
            take(page, f"{url}/run/{run}/matches", "matches")
            take(page, f"{url}/run/{run}/match/1", "match")
            take(page, f"{url}/vote/{secret}", "vote")


def call(*words: str, store: Path) -> str:
    """What a command prints."""
    done = subprocess.run(
        [*PARLEY, *words], cwd=store.parent, capture_output=True, text=True, check=True
    )
    return done.stdout + done.stderr


@contextmanager
def serve(store: Path) -> Iterator[str]:
    """The address of a server for the store."""
    words = [*PARLEY, "view", "--port", "0"]
    with subprocess.Popen(words, cwd=store.parent, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        try:
            yield next(word for word in line.split() if word.startswith("http")).rstrip("/")
        finally:
            server.terminate()


@contextmanager
def open_browser() -> Iterator[Page]:
    """A page of Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        browser.close()


def take(page: Page, url: str, name: str) -> None:
    """Write one picture."""
    page.goto(url)
    while "computing" in page.inner_text("body"):  # the pages compute in the background
        page.wait_for_timeout(500)
        page.reload()
    page.screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
