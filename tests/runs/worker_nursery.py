"""Worker processes for tests: `parley worker` with a short lease, killed or stopped at will.

A server imports Parley once and forks for each worker, because starting Python takes longer than
most tests. It ends with the tests, and its workers with it.
    python -m tests.runs.worker_nursery     reads requests in JSON, one a line
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0  # seconds; the machine may be busy
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class WorkerProcess:
    """One `parley worker`."""

    def __init__(self, nursery, pid, log):
        self._nursery, self.pid, self.log, self._code = nursery, pid, log, None

    @property
    def said(self):
        return self.log.read_text()

    def send(self, signum):
        if self.code is None:
            os.kill(self.pid, signum)

    def kill(self):
        self.send(signal.SIGKILL)
        return self.wait()

    @property
    def code(self):
        """Its exit code; negative if a signal has ended it, None while it runs."""
        if self._code is None:
            self._code = self._nursery.ask({"poll": self.pid})
        return self._code

    @property
    def is_stopped(self):
        """Whether SIGSTOP has stopped it."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def wait(self, patience=PATIENCE):
        wait_until(lambda: self.code is not None, patience, lambda: self.said)
        return self.code


class WorkerNursery:
    def __init__(self, folder):
        self._folder, self._workers, self._started = folder, [], 0
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.runs.worker_nursery"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def ask(self, request):
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def start(self, store, *words, env=None, **settings):
        """Start `parley worker --store STORE WORDS`; `settings` go to `change_settings`."""
        self._started += 1
        log = self._folder / f"worker-{self._started}.log"
        request = {
            "words": ["parley", "worker", "--store", store, *map(str, words)],
            "env": {**os.environ, **(env or {})},
            "log": str(log),
            "settings": settings,
        }
        self._workers.append(WorkerProcess(self, self.ask(request), log))
        return self._workers[-1]

    def end_all(self):
        for worker in self._workers:
            if worker.code is None:
                worker.kill()
        self._workers = []

    def close(self):
        self.end_all()
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait()


@contextmanager
def worker_nursery(folder):
    nursery = WorkerNursery(folder)
    try:
        yield nursery
    finally:
        nursery.close()


def wait_until(condition, patience=PATIENCE, describe=lambda: ""):
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, describe()
        time.sleep(0.02)


def change_settings(lease=None, beat=0.2, shares_loopback=False, at=None, signum=None):
    """Shorten times, and send this process a signal at one moment. `shares_loopback`: addresses on
    this machine count as if they were elsewhere."""
    from parley.runs import player, seats, worker
    from parley.store.postgres import database_sharing, steady_connection, worker_session

    worker.HEARTBEAT = beat
    player.HEARTBEAT = 1.0
    if lease is not None:
        worker.LEASE = worker_session.LEASE = database_sharing.LEASE = lease
        idle = f"{int(lease * 600)}ms"
        steady_connection.LONGEST_IDLE = f"idle_in_transaction_session_timeout = '{idle}'"
    if shares_loopback:
        seats.is_on_this_machine = lambda participant: False
    if at:
        MOMENTS[at](lambda: os.kill(os.getpid(), signum))


def in_commit(strike):
    """In the transaction of a commit with replies, when nothing of it is written yet."""
    from parley.store.postgres import worker_journal

    apply_group, strikes = worker_journal.apply_group, [strike]

    def apply(connection, run, group, *rest):
        if group.inserts.get("calls") and strikes:
            strikes.pop()()
        apply_group(connection, run, group, *rest)

    worker_journal.apply_group = apply


def in_lease(strike):
    """In the transaction that leases matches."""
    from parley.store.postgres import worker_session
    from parley.store.postgres.worker_session import PostgresWorker

    queries_on, lease, strikes = worker_session.queries_on, PostgresWorker._lease_matches, []

    def lease_once(self, connection, most):
        strikes.append(strike)
        PostgresWorker._lease_matches = lease
        return lease(self, connection, most)

    def queries(connection, run):
        if strikes:
            strikes.pop()()
        return queries_on(connection, run)

    PostgresWorker._lease_matches = lease_once
    worker_session.queries_on = queries


def in_plan(strike):
    """When the first matches are on record, but not counted."""
    from parley.store.postgres.worker_journal import WorkerJournal

    acknowledged = WorkerJournal.acknowledged

    def add(self):
        future = acknowledged(self)
        if self._group.inserts.get("matches"):
            future.add_done_callback(lambda _: strike())
        return future

    WorkerJournal.acknowledged = add


def after_plan(strike):
    """When matches are planned, and this worker has leased none of them."""
    from parley.store.postgres.worker_journal import WorkerJournal
    from parley.store.postgres.worker_session import PostgresWorker

    add_matches = WorkerJournal.add_matches

    async def add(self, specs):
        await add_matches(self, specs)
        strike()

    async def lease_matches(self, most):
        return []

    WorkerJournal.add_matches = add
    PostgresWorker.lease = lease_matches


MOMENTS = {
    "in a commit": in_commit,
    "in a lease": in_lease,
    "in a plan": in_plan,
    "after a plan": after_plan,
}


def serve():
    """Fork for each request; in the child, returns what it has to do."""
    known = {}
    for line in sys.stdin:
        request = json.loads(line)
        if (pid := request.get("poll")) is None:
            if not (answer := os.fork()):
                return request
        else:
            if known.get(pid) is None:
                found, status = os.waitpid(pid, os.WNOHANG)
                known[pid] = os.waitstatus_to_exitcode(status) if found else None
            answer = known[pid]
        print(json.dumps(answer), flush=True)
    return None


def become_worker(words, env, log, settings):
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    os.setsid()
    for number, name in enumerate([os.devnull, log, log]):
        opened = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = words
    change_settings(**settings)
    from parley.cli import main

    main()


if __name__ == "__main__":
    from tests.forked import load_parley

    load_parley()
    if asked := serve():
        become_worker(**asked)
