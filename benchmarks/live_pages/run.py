"""What 50 readers of one live page cost the process that plays the run.

    python benchmarks/live_pages/run.py

Each round plays the same run twice: once while `parley view` runs and nobody reads, once while 50
clients follow the run's page. The order alternates. It prints the CPU time of the playing process
in each round, the medians, their ratio, and the CPU time of the server.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BAR = 1.1
MODEL = "python/waiting_player:play"


def start(*words: object) -> subprocess.Popen[str]:
    """A `parley` command in its own process."""
    command = [sys.executable, "-m", "parley", *map(str, words)]
    paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def cpu_of(process: subprocess.Popen[str]) -> float:
    """The CPU time of a process that runs, in seconds."""
    facts = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")


class Readers:
    """Clients that follow the page of a run, and how much they were sent."""

    def __init__(self, count: int, port: int, id: str) -> None:
        self.count, self.port, self.id = count, port, id
        self.events = 0

    async def read(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.count):
                group.create_task(self._follow())

    async def _follow(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(
            f"GET /run/{self.id}/events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode()
        )
        while data := await reader.read(65_536):
            self.events += data.count(b"event: parts")
            if b"event: end" in data or data.endswith(b"0\r\n\r\n"):
                break
        writer.close()


def play_once(matches: int, readers: int) -> tuple[float, float, int]:
    """CPU seconds of the process that plays and of the server, and the events sent."""
    with tempfile.TemporaryDirectory() as folder:
        server = start("view", "--store", folder, "--port", 0)
        line = server.stderr.readline() if server.stderr else ""
        port = int(line.split("http://127.0.0.1:")[1].split("/")[0])
        before = cpu_of(server)
        models = [word for alias in ("a", "b", "c") for word in ("-m", f"{alias}={MODEL}")]
        run = start("run", "public_goods", *models, "--repeats", matches, "--store", folder)
        following = Readers(readers, port, "")
        if readers:
            while not (found := [*Path(folder).glob("*.parley")]):
                time.sleep(0.01)
            following.id = found[0].stem
            asyncio.run(following.read())
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        if run.returncode:
            raise SystemExit(run.stderr.read() if run.stderr else "the run has failed")
        spent = cpu_of(server) - before
        server.kill()
        server.wait()
        return usage.ru_utime + usage.ru_stime, spent, following.events


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--matches", type=int, default=300)
    parser.add_argument("--readers", type=int, default=50)
    given = parser.parse_args()
    alone, watched, served = [], [], []
    for number in range(given.rounds):
        order = (0, given.readers) if number % 2 == 0 else (given.readers, 0)
        for readers in order:
            cpu, server, events = play_once(given.matches, readers)
            (watched if readers else alone).append(cpu)
            if readers:
                served.append(server)
            load = os.getloadavg()[0]
            print(
                f"round {number + 1}, {readers} readers: writer {cpu:.2f} s of CPU, server "
                f"{server:.2f} s, {events} events, load {load:.1f}",
                flush=True,
            )
    one, other = statistics.median(alone), statistics.median(watched)
    print(
        f"median of {given.rounds}: {one:.2f} s alone, {other:.2f} s with {given.readers} readers"
    )
    print(f"ratio {other / one:.3f}; median CPU of the server {statistics.median(served):.2f} s")
    if other > BAR * one:
        raise SystemExit(f"the ratio must be at most {BAR}")


if __name__ == "__main__":
    main()
