"""The watcher of confined processes, in this process: whom it waits for, and what it says of
them."""

import json
import os
import select
import signal
import socket

from parley.sandbox.inside import zygote
from parley.sandbox.inside.zygote import Room, WatchedProcess


def test_nobody_waits_for_one_who_takes_long_to_go(monkeypatch):
    monkeypatch.setattr(zygote, "kill", lambda pid: None)  # as if there were much to give back
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    status, watcher = socket.socketpair()
    with status, watcher:
        room, watched = (
            Room({"nested": True, "limits": {"memory": 1 << 40, "cpu": 100}}),
            WatchedProcess(pid, watcher.detach(), "program"),
        )
        for descriptor in (watched.handle, watched.status):
            room.by_descriptor[descriptor] = watched
            room.poll.register(descriptor, select.POLLIN)
        room.finish(watched, "memory")
        room.finish(watched, "not wanted")
        watched.looked -= 10
        room.look()  # it is being ended: nothing more is asked of it
        assert room.by_descriptor == {watched.handle: watched}
        os.kill(pid, signal.SIGKILL)
        assert room.poll.poll(10_000) == [(watched.handle, select.POLLIN)]
        room.finish(watched, "not wanted")
        assert room.by_descriptor == {}
        assert json.loads(status.recv(4096))["end"] == "memory"
        assert status.recv(1) == b""


def test_one_who_ended_by_himself_is_said_to_have():
    for code, wanted in ((3, "status 3"), (-9, "signal 9")):
        pid = os.fork()
        if pid == 0:
            os.kill(os.getpid(), signal.SIGKILL) if code < 0 else os._exit(code)
        status, watcher = socket.socketpair()
        with status, watcher:
            watched = WatchedProcess(pid, watcher.detach(), "program")
            room = Room({"nested": True, "limits": {}})
            room.by_descriptor[watched.handle] = watched
            room.poll.register(watched.handle, select.POLLIN)
            assert room.poll.poll(10_000)
            room.finish(watched, "not wanted")
            assert json.loads(status.recv(4096))["end"] == wanted
