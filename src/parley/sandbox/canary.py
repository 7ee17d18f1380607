"""A live proof before the first program of a run: code inside looks for everything that it must not
reach."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from parley.errors import SandboxError
from parley.sandbox import seccomp
from parley.sandbox.kinds import SETTINGS, package_folders
from parley.sandbox.process import First
from parley.sandbox.talk import Gone, Late

SECONDS = 15.0
PRIVATE = (
    "/",
    "/boot",
    "/etc",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/run",
    "/srv",
    "/sys",
    "/tmp",
    "/var",
    "/dev/shm",
)
HARMLESS = {*SETTINGS, "PWD", "SHLVL", "LC_CTYPE", "HOSTNAME", "_"}
CODE = """
import ctypes, os, resource, socket

def attempt(act):
    try:
        act()
        return True
    except BaseException:
        return False

def variables():
    found = set(os.environ)
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    found |= {each.partition(b"=")[0].decode() for each in file.read().split(bytes(1)) if each}
            except OSError:
                pass
    return sorted(found)

def connect(family, address):
    with socket.socket(family) as here:
        here.settimeout(2)
        here.connect(address)

def write(place):
    open(place, "x").close()
    os.unlink(place)

def identity(place):
    try:
        found = os.stat(place)
        return [found.st_dev, found.st_ino]
    except OSError:
        return None

def rights():
    libc, held = ctypes.CDLL(None), (ctypes.c_uint32 * 6)()
    libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), held)
    return any(held), libc.prctl(39, 0, 0, 0, 0) != 1, libc.prctl(21, 0, 0, 0, 0)

def seen(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True

def look(port, abstract, places, unwritten):
    held, gain, mode = rights()
    return {
        "network": attempt(lambda: connect(socket.AF_INET, ("127.0.0.1", port))),
        "sockets": attempt(lambda: connect(socket.AF_UNIX, chr(0) + abstract)),
        "places": [identity(place) for place in places],
        "written": [place for place in unwritten if attempt(lambda: write(place + "/parley-canary"))],
        "variables": variables(),
        "uid": os.getuid(),
        "rights": held,
        "gain": gain,
        "filter": mode,
        "processes": sum(seen(pid) for pid in range(1, 1000)),
        "space": resource.getrlimit(resource.RLIMIT_AS)[0],
    }
"""  # noqa: E501


def prove_isolation(first: First) -> None:
    """Refuse a sandbox in which programs can reach anything that they should not."""
    places = sorted({*PRIVATE, *package_folders(), str(Path.home()), os.getcwd()})
    abstract = f"parley-canary-{os.urandom(8).hex()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0{abstract}")
        local.listen()
        found = look_from_inside(
            first,
            [server.getsockname()[1], abstract, places, ["/", "/usr", "/etc", "/dev", "/proc"]],
        )
    seen = [
        place
        for place, there in zip(places, found["places"], strict=True)
        if there and there == identity(place)
    ]
    exposed = sorted(set(found["variables"]) - HARMLESS)
    breaches = {
        "programs can reach the network": found["network"],
        "programs can reach sockets of this machine": found["sockets"],
        f"programs can see {', '.join(seen)} of this machine": seen,
        f"programs can write files in {', '.join(found['written'])}": found["written"],
        "programs run as root": found["uid"] == 0 and os.getuid() == 0,
        "programs have root capabilities": found["rights"],
        "programs can gain privileges": found["gain"],
        "system calls are not filtered": seccomp.knows_machine() and found["filter"] != 2,
        "programs can see other processes": found["processes"] > 4,
        "memory is not limited": found["space"] != first.limits.space,
        f"programs can see {', '.join(exposed)} in the environment": exposed,
    }
    if reached := [what for what, found_so in breaches.items() if found_so]:
        raise SandboxError(
            f"the sandbox ({first.kind.name}) does not isolate programs: {'; '.join(reached)}. "
            "No model-written code was run"
        )


def identity(place: str) -> list[int] | None:
    """A folder as the kernel knows it, wherever it is bound."""
    try:
        found = os.stat(place)
    except OSError:
        return None
    return [found.st_dev, found.st_ino]


def look_from_inside(first: First, arguments: list[Any]) -> dict[str, Any]:
    ends = time.monotonic() + SECONDS
    call = {"name": "look", "a": arguments, "k": {"d": []}}
    with first.process("program") as program:
        try:
            for message in ({"code": CODE}, call):
                program.send(json.dumps(message).encode(), ends)
                reply = json.loads(program.receive(ends))
                if "ok" not in reply:
                    break
        except (Gone, Late):
            reply = {"error": "no answer", "words": program.finish(by_itself=True).end}
    if "ok" not in reply:
        raise SandboxError(
            f"the sandbox ({first.kind.name}) could not be tested: "
            f"{reply['error']}: {reply['words']}"
        )
    return dict(reply["ok"]["d"])
