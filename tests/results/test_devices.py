"""The time that devices of this machine worked, by model."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

import parley
from parley.match.protocol import DeviceSetup, DeviceUse, Reply, Usage
from parley.store import find_run, read_run
from parley.store.sqlite.run_file import SqliteReader
from parley.store.sqlite.run_writer import open_run_file
from tests.store.test_journal import call, ended, fresh, spec

GPU = DeviceSetup("NVIDIA H200", "gpu", "generate on a GPU", "bfloat16", "paged kernel")
FIRST = "(SELECT MIN(id) FROM calls WHERE device IS NOT NULL)"
PAYS = '{"coins": 5}'
CPU = DeviceSetup("CPU", "cpu", "generate", "float32", "sdpa")


def on_device(setup, seconds, after=0):
    """A participant that uses a device from a call on."""
    calls = []

    def reply(view):
        calls.append(1)
        used = DeviceUse(setup, seconds) if len(calls) > after else None
        return Reply(PAYS, usage=Usage(30, 0, 10), device=used)

    return reply


def play(store, **models):
    return parley.run("public_goods", models=models, repeats=2, rounds=2, seed=1, store=store)


def test_times_add_up_by_model_and_device(tmp_path):
    result = play(tmp_path, a=on_device(GPU, 0.5), b=on_device(CPU, 0.25), c="bot/altruist")
    a, b = result.data["devices"]
    assert (a["alias"], a["device"], a["calls"], a["seconds"]) == ("a", "NVIDIA H200", 4, 2.0)
    assert a["gpu_hours"] == pytest.approx(2 / 3600)
    assert (a["tokens_in_per_second"], a["tokens_out_per_second"]) == (60, 20)
    assert (b["alias"], b["seconds"], b["gpu_hours"]) == ("b", 1.0, None)
    assert a["untimed_calls"] == b["untimed_calls"] == 0
    text = "\n".join(table.render() for table in result.tables("devices"))
    assert "generate on a GPU" in text
    page = result.report(tmp_path / "page.html", audit=False).read_text(encoding="utf-8")
    assert "GPU hours" in page
    assert "How models were run" in page


def test_a_session_that_continues_a_run_adds_to_the_times(tmp_path):
    path = tmp_path / "r.parley"

    async def play_twice():
        journal = await fresh(path)
        await journal.add_matches([spec()])
        await journal.lease(spec(1)).append(call(1, device=DeviceUse(GPU, 0.5)))
        await journal.close()
        journal = await open_run_file(path)
        record = journal.lease(spec(1))
        await record.append(call(2, device=DeviceUse(GPU, 0.25)))
        await record.append(call(3, device=DeviceUse(CPU, 0.125)))
        await journal.finish(1, ended())
        await journal.set_state("done", None, "")
        await journal.close()

    asyncio.run(play_twice())
    with SqliteReader(path) as reader:
        gpu, cpu = reader.usage.device_times()
        assert not list(reader.snapshot.find_changes())
    assert (gpu.setup, gpu.calls, gpu.seconds) == (GPU, 2, 0.75)
    assert (cpu.setup, cpu.calls, cpu.seconds) == (CPU, 1, 0.125)


def test_a_call_without_a_known_time_is_not_counted_as_no_time(tmp_path):
    result = play(tmp_path, a=on_device(GPU, 0.5, after=1), b="bot/altruist", c="bot/altruist")
    [row] = result.data["devices"]
    assert (row["calls"], row["untimed_calls"], row["seconds"]) == (3, 1, 1.5)
    assert row["tokens_out_per_second"] == 20
    [table, _] = result.tables("devices")
    assert "a: the device and the time of 1 more call are unknown" in table.note


def test_a_run_without_devices_has_no_such_part(tmp_path):
    result = play(tmp_path, a="bot/altruist", b="bot/altruist", c="bot/altruist")
    assert result.data["devices"] == []


@pytest.mark.parametrize(
    "change",
    [
        f"UPDATE calls SET device_seconds = 9 WHERE id = {FIRST}",
        f"UPDATE calls SET device = NULL, device_seconds = NULL WHERE id = {FIRST}",
        "UPDATE devices SET setup = replace(setup, 'H200', 'H100')",
    ],
)
def test_an_audit_finds_changed_times(tmp_path, change):
    play(tmp_path, a=on_device(GPU, 0.5), b="bot/altruist", c="bot/altruist")
    [path] = tmp_path.glob("*.parley")
    with read_run(find_run(path)) as reader:
        assert not list(reader.snapshot.find_changes())
    with closing(sqlite3.connect(path)) as file, file:
        assert file.execute(change).rowcount == 1
    with read_run(find_run(path)) as reader:
        assert list(reader.snapshot.find_changes())
