"""The pages of a store in a database."""

import asyncio
import re
import time

import parley
from parley.store import find_run, open_store
from parley.web import following, live_run_page
from tests.cli.test_cli import parley as call_command
from tests.web.conftest import BOTS
from tests.web.test_match_list_page import run as run  # a fixture
from tests.web.test_run_page import EventReader, run_in_loop, serving


def test_every_page_works_on_a_database(visit, postgres_url):
    secret = postgres_url.replace("parley@", "parley:planted@")
    ref = parley.run("public_goods", models=BOTS, repeats=3, store=secret, name="Three").ref
    with visit(secret) as client:
        seen = [
            client.get(address)
            for address in (
                "/",
                f"/run/{ref.id}",
                f"/run/{ref.id}/matches?order=score&metric=payoff",
                f"/run/{ref.id}/match/2",
            )
        ]
    assert [page.status_code for page in seen] == [200] * 4
    assert "Three" in seen[0].text
    assert len(re.findall(r"/match/\d", seen[2].text)) >= 3
    assert not any("planted" in page.text for page in seen)


PAGES = (
    "",
    "/matches",
    "/matches?order=score&metric=bleu&down=1",
    "/matches?order=seconds",
    "/matches?order=tokens&down=1",
    "/matches?model=weak&role=translator&low=1",
    "/matches?violations=1",
    "/matches?apart=0.5",
    "/match/1",
    "/match/7?seat=translator",
    "/match/99",
)


def test_a_run_that_was_moved_has_the_same_pages(run, visit, postgres_url, monkeypatch):
    """A run file and a database: each page is the same, letter by letter."""
    monkeypatch.setattr(live_run_page, "PATIENCE", 60)  # pages with the result, however slow
    store = open_store(postgres_url)
    there = store.import_run(run.path, lambda how: None)
    with visit(run.path.parent) as one, visit(postgres_url) as two:
        for page in PAGES:
            before, after = (client.get(f"/run/{there.id}{page}") for client in (one, two))
            status = 404 if page == "/match/99" else 200
            assert before.status_code == after.status_code == status, page
            # the command that names the store
            moved = after.text.replace(there.location, run.ref.location)
            assert moved == before.text, page


def test_a_report_of_a_run_in_a_database(played, postgres_url, tmp_path):
    one = find_run(played)
    two = open_store(postgres_url).import_run(played, lambda how: None)
    pages = []
    for ref in (one, two):
        call_command("report", ref.location, "-o", "report.html", cwd=tmp_path)
        pages.append((tmp_path / "report.html").read_text().replace(ref.location, "RUN"))
    assert pages[0] == pages[1]


def test_a_browser_follows_a_run_to_its_end(place, monkeypatch):
    monkeypatch.setattr(following, "EVERY", 0.01)

    async def follow():
        gate = asyncio.Event()

        async def wait(view):
            await gate.wait()
            return '{"reason": "", "coins": 3}'

        models = dict.fromkeys(("ann", "bob"), wait)
        store, deadline = open_store(place), time.monotonic() + 30
        before = set(store.refs())
        playing = asyncio.create_task(
            parley.run_async("public_goods", models=models, repeats=2, store=place)
        )
        while not (found := set(await asyncio.to_thread(store.refs)) - before):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
        (ref,) = found
        async with serving(place) as (url, _, _):
            reader = await EventReader.open(url, ref.id)
            while "0 of 2 matches" not in await reader.part("progress"):
                pass  # a run is on record before its matches are
            gate.set()
            result = await playing
            text = await reader.rest()
        assert result.data["run"]["matches"]["done"] == 2
        assert "2 of 2 matches" in text
        assert "How it was played" in text
        assert text.endswith("event: end\ndata: \n\n")

    run_in_loop(follow())
