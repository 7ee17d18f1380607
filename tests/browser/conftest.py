"""A real browser for tests of pages, and what every page must satisfy."""

import asyncio
import shutil
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from parley.store import open_store
from parley.web.app import make_app, make_site
from parley.web.listening import make_server, open_address

AXE = Path(sys.prefix) / "axe/package/axe.min.js"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


SMALLEST = 11  # pixels on the screen
# the texts whose letters are smaller, in drawings as they are scaled on the page
SMALL_LETTERS = """least => {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode, own = text.parentElement;
        if (!text.data.trim() || !own.getClientRects().length) continue;
        if (['TITLE', 'DESC', 'STYLE', 'SCRIPT'].includes(own.tagName.toUpperCase())) continue;
        const at = own instanceof SVGElement ? own.getScreenCTM() : null;
        const scale = at ? Math.hypot(at.a, at.b) : 1;
        const size = parseFloat(getComputedStyle(own).fontSize) * scale;
        if (size < least) found.push([text.data.slice(0, 40), size]);
    }
    return found.slice(0, 9);
}"""


@pytest.fixture(scope="module")
def browser():
    """One Chromium for all tests of a file. While it is open, an event loop runs in this thread,
    which would disturb the tests of other files."""
    program = shutil.which("chromium")
    assert program, "chromium is missing: run `make browser`"
    assert AXE.is_file(), "axe-core is missing: run `make browser`"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield opened
        opened.close()


class Visit:
    """A page in the browser, with all that went wrong on it."""

    def __init__(self, page, own):
        self.page, self.own = page, own
        self.console, self.outside, self.failed = [], [], []
        page.on("console", self._said)
        page.on("pageerror", lambda wrong: self.console.append(str(wrong)))
        page.on("request", self._asked)

    def _said(self, message):
        if message.type in ("error", "warning"):
            self.console.append(message.text)

    def _asked(self, request):
        if not request.url.startswith((self.own, "data:", "about:")):
            self.outside.append(request.url)

    def check(self):
        """No console error, no request to elsewhere, no sideways scroll, no tiny letters, nothing
        that axe finds."""
        self.page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
        wide = self.page.evaluate(
            "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide[0] <= wide[1], f"the page scrolls sideways: {wide}"
        small = self.page.evaluate(SMALL_LETTERS, SMALLEST)
        assert not small, f"letters below {SMALLEST} pixels: {small}"
        # not as a script of the page, whose policy forbids it
        self.page.evaluate(AXE.read_text(encoding="utf-8") + ";undefined")
        found = self.page.evaluate("async () => (await axe.run()).violations")
        told = [
            f"{each['id']} ({each['impact']}): {[node['html'][:200] for node in each['nodes']][:5]}"
            for each in found
        ]
        assert not told, "\n".join(told)
        assert not self.console, self.console
        assert not self.outside, self.outside


@pytest.fixture
def open_page(browser):
    """`open_page(url, width=1280, theme="light", media="screen", script=True)` opens a page;
    a file's path is a url, too. It returns a `Visit`, whose `page` is Playwright's."""
    contexts = []

    def opened(url, width=1280, theme="light", media="screen", script=True, status=200):
        url = Path(url).resolve().as_uri() if not str(url).startswith("http") else url
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            java_script_enabled=script,
            reduced_motion="reduce",
        )
        contexts.append(context)
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.emulate_media(media=media, color_scheme=theme)
        own = url if url.startswith("file:") else "/".join(url.split("/")[:3])
        visit = Visit(page, own)
        answer = page.goto(url)
        if url.startswith("http"):
            assert answer.status == status, answer.text()[:500]
        return visit

    yield opened
    for context in contexts:
        context.close()


def press(page, key):
    """Press a key once the page listens to keys, which is when its script has run."""
    page.wait_for_load_state("load")
    page.keyboard.press(key)


@contextmanager
def serving(folder, pages=None):
    """The pages of a store on a free port of loopback, in a thread; the address."""
    address = open_address("127.0.0.1", 0)
    app = make_app(make_site(open_store(folder)), address.safety, pages)
    server = make_server(app, takes_signals=False)
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[address.socket])), daemon=True
    )
    thread.start()
    try:
        yield address.url
    finally:
        server.should_exit = True
        thread.join(20)
        address.socket.close()


@pytest.fixture
def serve():
    """`serve(folder)`: a context manager with the address of a server of that store."""
    return serving
