"""The page of a run, without a browser: addresses, computing in the background, events."""

import asyncio
import json
import re
import sqlite3
import threading
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from markupsafe import Markup

import parley
from parley.store import open_store
from parley.web import following
from parley.web.app import make_app, make_site
from parley.web.listening import make_server, open_address
from parley.web.run_result import read_result, render_so_far


def id_of(folder):
    return next(path.stem for path in folder.glob("*.parley"))


@pytest.mark.parametrize("id", ["none", "..%2F..%2Fetc%2Fpasswd", "%00", "last", "x" * 3000])
@pytest.mark.parametrize("end", ["", "/events"])
def test_a_bad_address_gets_a_plain_answer(visit, folder, id, end):
    answer = visit(folder).get(f"/run/{id}{end}")
    assert answer.status_code == 404
    assert "Not found" in answer.text


def test_a_file_that_vanished_gets_a_plain_answer(visit, folder):
    client, id = visit(folder), id_of(folder)
    assert client.get(f"/run/{id}").status_code == 200
    (folder / f"{id}.parley").unlink()
    answer = client.get(f"/run/{id}")
    assert answer.status_code == 404
    assert "moved or deleted" in answer.text


def test_a_damaged_file_says_what_is_wrong(visit, folder):
    path = folder / f"{id_of(folder)}.parley"
    path.write_bytes(b"no run")
    answer = visit(folder).get(f"/run/{path.stem}")
    assert answer.status_code == 503
    assert "cannot be read as a run" in answer.text


def test_a_result_is_computed_once_for_each_state_and_the_page_does_not_wait(
    visit, folder, monkeypatch
):
    go_on, computed = threading.Event(), []

    def slow(ref):
        computed.append(ref.id)
        go_on.wait(30)
        return Markup("<p>the result</p>")

    monkeypatch.setattr("parley.web.run_result.render_ended", slow)
    monkeypatch.setattr("parley.web.live_run_page.PATIENCE", 0.01)
    client, address = visit(folder), f"/run/{id_of(folder)}"
    for _ in range(2):
        text = client.get(address).text
        assert "Parley computes the result of 3 matches" in text
        assert "data-events" in text  # the page learns when the result is there
        assert f'href="{address}/matches"' in text
    go_on.set()
    monkeypatch.setattr("parley.web.live_run_page.PATIENCE", 30)
    for _ in range(2):
        text = client.get(address).text
        assert "the result" in text
        assert "data-events" not in text
    assert len(computed) == 1


def test_an_error_in_a_computation_is_said_without_its_traceback(
    visit, folder, monkeypatch, capsys
):
    def broken(ref):
        raise RuntimeError("secret detail")

    monkeypatch.setattr("parley.web.run_result.render_ended", broken)
    monkeypatch.setattr("parley.web.live_run_page.PATIENCE", 30)
    text = visit(folder).get(f"/run/{id_of(folder)}").text
    assert "The result could not be computed" in text
    assert "secret detail" not in text
    assert "secret detail" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("silent", "shown", "hidden"),
    [
        (1, "<span>45 calls a minute</span>", "no reply for"),
        (61, "no reply for 1 min 1 s", "calls a minute</span>"),
    ],
)
def test_a_running_run_shows_how_fast_replies_come(
    visit, folder, pretend_to_run, monkeypatch, silent, shown, hidden
):
    id = pretend_to_run(folder)
    with sqlite3.connect(folder / f"{id}.parley") as connection:
        connection.execute("UPDATE calls SET at = 1000")
    connection.close()
    monkeypatch.setattr("parley.web.live_run.time", SimpleNamespace(time=lambda: 1000 + silent))
    text = visit(folder).get(f"/run/{id}").text
    assert shown in text
    assert hidden not in text


def test_a_running_run_shows_progress_endpoints_and_latest_matches(visit, folder, pretend_to_run):
    id = pretend_to_run(folder)
    with sqlite3.connect(folder / f"{id}.parley") as connection:
        health = '{"ann": {"refused": 31, "waiting": 0}, "bob": {"refused": 0, "waiting": 2}}'
        connection.execute("UPDATE runs SET health = ?", (health,))
    connection.close()
    text = visit(folder).get(f"/run/{id}").text
    assert "<td>31</td>" in text
    assert "down: 2 calls waiting" in text
    assert "● running" in text
    assert "2 of 3 matches" in text
    assert "1 in flight" in text
    assert "Endpoints" in text
    assert f'href="/run/{id}/match/3"' in text
    assert "round 5 …" in text


def test_a_run_that_is_played_is_not_to_be_resumed(folder, pretend_to_run):
    pretend_to_run(folder)
    ref = open_store(folder).find("last")
    text = render_so_far(ref)
    assert "running: 2 of 3 matches; the run is being played" in text
    assert "resume" not in text
    # a result outside of the pages cannot know, so it names the command
    assert "resume it with" in " ".join(read_result(ref)[0].cautions())


def test_a_silent_run_with_a_person_waits_for_the_person(visit, folder, pretend_to_run):
    id = pretend_to_run(folder)
    with sqlite3.connect(folder / f"{id}.parley") as connection:
        connection.execute("UPDATE calls SET at = 1.0")
    connection.close()
    client = visit(folder)
    assert "If the run is no longer being played" in client.get(f"/run/{id}").text
    with sqlite3.connect(folder / f"{id}.parley") as connection:
        (config,) = connection.execute("SELECT config FROM runs").fetchone()
        changed = json.loads(config)
        next(iter(changed["models"].values()))["model"] = "human/web"
        connection.execute("UPDATE runs SET config = ?", (json.dumps(changed),))
    connection.close()
    text = client.get(f"/run/{id}").text
    assert "waits for a person: no reply for" in text
    assert "If the run is no longer being played" not in text


def test_a_run_that_waits_for_a_batch_names_it(visit, folder, pretend_to_run):
    id = pretend_to_run(folder)
    with sqlite3.connect(folder / f"{id}.parley") as connection:
        (config,) = connection.execute("SELECT config FROM runs").fetchone()
        alias = next(iter(json.loads(config)["models"]))
        connection.execute("UPDATE calls SET at = 1.0")
        connection.execute(
            "INSERT INTO batches (number, uid, alias, state, provider_id, requests, began) "
            "VALUES (1, 'u', ?, 'sent', 'b', 3, 1.0)",
            (alias,),
        )
    connection.close()
    text = visit(folder).get(f"/run/{id}").text
    assert f"waiting for batch 1 of {alias} (3 requests) for " in text
    assert "If the run is no longer being played" not in text


def test_a_run_whose_process_was_killed_is_not_shown_as_running(visit, folder, pretend_to_run):
    from parley.store.owner import Owner, process_id

    dead = Owner.of(process_id())._replace(pid="1", began="0")
    id = pretend_to_run(folder, ":".join(dead))
    text = visit(folder).get(f"/run/{id}").text
    assert "❙❙ stopped" in text
    assert "the process was killed or crashed" in text
    assert "parley resume" in text


# Events.


@asynccontextmanager
async def serving(folder):
    """A real server of a store, in this loop: its address and its site."""
    address = open_address("127.0.0.1", 0)
    site = make_site(open_store(folder))
    server = make_server(make_app(site, address.safety))
    task = asyncio.create_task(server.serve(sockets=[address.socket]))
    try:
        yield address.url, site, server
    finally:
        server.should_exit = True
        await task


class EventReader:
    """A browser that follows a run: the status of the answer, and the events as they come."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, url, id):
        host = url.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        writer.write(f"GET /run/{id}/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        found = cls(reader, writer)
        found.head = (await reader.readuntil(b"\r\n\r\n")).decode()
        return found

    async def next_chunk(self):
        """The next piece of the stream; empty at its end."""
        size = int(await self._reader.readline(), 16)
        return (await self._reader.readexactly(size + 2))[:-2].decode()

    async def parts(self):
        """The parts of the next event."""
        while chunk := await self.next_chunk():
            found = re.search(r"^event: parts\ndata: (.*)$", chunk, re.MULTILINE)
            if found:
                return {name: html for name, (_, html) in json.loads(found[1]).items()}
        raise AssertionError("the stream has ended")

    async def part(self, name):
        """The next text of a part."""
        while name not in (parts := await self.parts()):
            pass
        return parts[name]

    async def rest(self):
        """All that comes until the stream ends."""
        found = ""
        while chunk := await self.next_chunk():
            found += chunk
        self.close()
        return found

    def close(self):
        self._writer.close()


def run_in_loop(work):
    asyncio.run(asyncio.wait_for(work, 60))


def test_readers_of_one_run_share_a_watcher_and_get_what_changes(
    folder, pretend_to_run, monkeypatch
):
    id = pretend_to_run(folder)
    monkeypatch.setattr(following, "EVERY", 0.01)
    path = folder / f"{id}.parley"

    async def follow():
        async with serving(folder) as (url, site, _):
            watches, watch = [], site.store.watch
            site.store.watch = lambda ref: watches.append(ref) or watch(ref)
            both = [await EventReader.open(url, id) for _ in range(2)]
            assert "content-type: text/event-stream" in both[0].head
            for reader in both:
                assert "2 of 3 matches" in await reader.part("progress")
            with sqlite3.connect(path) as connection:
                connection.execute("UPDATE matches SET state = 'done' WHERE number = 3")
            connection.close()
            for reader in both:
                while "progress" not in (parts := await reader.parts()):
                    assert "state" not in parts  # it has not changed
                assert "3 of 3 matches" in parts["progress"]
            assert len(watches) == 1
            path.unlink()
            for reader in both:
                assert "there is no file" in await reader.part("problem")
                reader.close()

    run_in_loop(follow())


def test_a_stream_ends_with_the_run(folder):
    async def follow():
        async with serving(folder) as (url, _, _):
            text = await (await EventReader.open(url, id_of(folder))).rest()
            assert "How it was played" in text
            assert text.endswith("event: end\ndata: \n\n")

    run_in_loop(follow())


def test_streams_are_bounded_and_end_when_the_server_stops(folder, pretend_to_run, monkeypatch):
    id = pretend_to_run(folder)
    monkeypatch.setattr(following, "MOST_STREAMS", 1)
    monkeypatch.setattr("parley.web.listening.GRACE_SECONDS", 600)

    async def follow():
        async with serving(folder) as (url, _, server):
            reader = await EventReader.open(url, id)
            await reader.parts()
            full = await EventReader.open(url, id)
            assert " 503 " in full.head
            assert "retry-after" in full.head
            full.close()
            server.should_exit = True
            assert "event: end" not in await reader.rest()

    run_in_loop(follow())


def test_nobody_watches_a_run_that_nobody_reads(folder, pretend_to_run, monkeypatch):
    id = pretend_to_run(folder)
    monkeypatch.setattr(following, "EVERY", 0.01)

    async def follow():
        async with serving(folder) as (url, site, _):
            left, watch = asyncio.Event(), site.store.watch
            loop = asyncio.get_running_loop()

            class Watch:
                def __init__(self, ref):
                    self._inner = watch(ref)

                def has_changed(self):
                    return self._inner.has_changed()

                def close(self):
                    loop.call_soon_threadsafe(left.set)
                    self._inner.close()

            site.store.watch = Watch
            reader = await EventReader.open(url, id)
            await reader.parts()
            assert len(site.live._followers) == 1
            reader.close()
            await left.wait()
            assert not site.live._followers

    run_in_loop(follow())


def test_a_secret_in_the_name_of_a_run_is_not_in_the_title(visit, tmp_path, monkeypatch):
    bots = dict.fromkeys(("ann", "bob", "cy"), "bot/random")
    key = "kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"
    run = parley.run("public_goods", bots, repeats=1, store=tmp_path, name=f"with {key}\u202e")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    text = visit(tmp_path).get(f"/run/{run.ref.id}").text
    assert "<title>Public goods: with " in text
    assert key not in text
    assert "\u202e" not in text
