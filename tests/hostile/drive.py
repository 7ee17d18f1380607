"""Run hostile programs in one kind of sandbox and say what went wrong, as JSON; a process of its
own, with planted keys.

    python -m tests.hostile.drive WAY FAMILY[,FAMILY] [slow]

WAY is warm, cold or flat (a sandbox for each program, without namespaces inside namespaces).
"""

import asyncio
import json
import os
import re
import socket
import sys
import time
from contextlib import ExitStack
from glob import glob
from importlib import import_module
from pathlib import Path

from parley.sandbox import executor
from parley.sandbox.kinds import Bubblewrap, system
from parley.sandbox.limits import MB, Limits
from tests.hostile import TESTS, Attack

PLACES = (
    "/",
    "/tmp",
    "/dev/shm",
    "/var/tmp",
    "/etc",
    "/usr",
    "/dev",
    "/home",
    "/root",
    os.getcwd(),
    str(Path.home()),
)
LIMITS = {"cpu": 2, "memory": 300 * MB}
# Where a program shares its namespaces with what watches it, it can end that: it harms nobody but
# itself.
FLAT = {
    "kills_everybody": "",
    "kills_the_watcher": "",
    "hangs_up": "the program",
    "fork_bomb_that_grows": "",
}

UNBOUNDED = {"names"}  # bubblewrap cannot bound the number of files


def processes(uid: int, name: str = "") -> dict[int, str]:
    """Living processes of a user."""
    found = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                status = dict(
                    line.split(":\t", 1)
                    for line in (each / "status").read_text().splitlines()
                    if ":\t" in line
                )
            except (OSError, ValueError):
                continue
            if status["Uid"].split()[0] == str(uid) and name in status["Name"]:
                found[int(each.name)] = f"{status['Name']} {status['State']}"
    return found


class Ground:
    """This machine as the programs may not find it: keys lie about, and somebody listens."""

    def __init__(self, undo: ExitStack) -> None:
        self.hex = os.urandom(8).hex()
        key = f"sk-planted-{self.hex}"
        os.environ["HOSTILE_KEY"] = key
        self.places = []
        folders = ("/tmp", "/dev/shm", "/var/tmp", "/opt", "/srv", "/home", "/root", "/etc")
        named = [
            (os.getcwd(), ".env"),
            (str(Path.home()), ".parley-planted"),
            *((each, f"planted-{self.hex}") for each in folders),
        ]
        for folder, name in named:
            for mode in (0o644, 0o600):
                place = Path(folder, name if mode == 0o644 else f"{name}-closed")
                try:
                    place.write_text(key)
                except OSError:
                    continue
                undo.callback(place.unlink)
                place.chmod(mode)
                self.places.append(str(place))
        self.server = undo.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.local = undo.enter_context(socket.socket(socket.AF_UNIX))
        self.abstract = f"parley-hostile-{self.hex}"
        self.local.bind(f"\0{self.abstract}")
        self.local.listen()
        for each in (self.server, self.local):
            each.setblocking(False)

    def words(self, flat: bool) -> dict[str, object]:
        parts = [part for place in system() for part in Path(place).parts]
        # of the sandbox's own root
        parts += ["usr", "lib", "lib64", "bin", "sbin", "etc", "tmp", "proc", "dev"]
        return {
            "port": self.server.getsockname()[1], "abstract": self.abstract, "places": self.places,
            "hex": self.hex,
            "home": Path.home(), "cwd": os.getcwd(), "system": system(), "parts": parts,
            "watchers": (1,) if flat else (), "others": int(flat),
        }  # fmt: skip

    def reached(self) -> list[str]:
        found = []
        for each in (self.server, self.local):
            try:
                each.accept()
                found.append("a connection came out")
            except BlockingIOError:
                pass
        return found


def left_files() -> list[str]:
    return [
        f"left {each}"
        for place in PLACES
        for each in glob(f"{place}/parley-hostile*") + glob(f"{place}/parley-canary")
    ]


async def tried(
    sandbox: executor.Sandbox, attack: Attack, words: dict[str, object]
) -> tuple[dict, str]:
    if attack.before:
        before = Attack(attack.before).filled(**words)
        assert (await sandbox.execute({"code": before, "tests": TESTS, "names": ["answer"]}))[
            "passed"
        ]
    code = attack.filled(**words)
    found = await sandbox.execute(
        {"code": code, "tests": attack.tests, "names": ["answer"], "prelude": attack.prelude}
    )
    return found, code


async def driven(way: str, families: list[str], slow: bool) -> dict[str, list[str]]:
    problems: dict[str, list[str]] = {}
    if way == "flat":
        executor.start_first = lambda choice, limits, group: executor.start_and_try(
            Bubblewrap(nested=False), limits, group
        )
    descriptors = len(os.listdir("/proc/self/fd"))
    with ExitStack() as undo:
        ground = Ground(undo)
        usual = executor.Sandbox(limits=Limits(**LIMITS, wall=15.0), warm=way == "warm", jobs=1)
        short = executor.Sandbox(limits=Limits(**LIMITS, wall=1.5), warm=way == "warm", jobs=1)
        uids = {sandbox.open().uid or os.getuid() for sandbox in (usual, short)}
        for name, attack in [
            item
            for family in families
            for item in import_module(f"tests.hostile.{family}").ATTACKS.items()
        ]:
            if (attack.slow and not slow) or (way == "flat" and name in UNBOUNDED):
                continue
            began = time.monotonic()
            sandbox = short if attack.fault == "no answer in time" else usual
            wrong = []
            try:
                found, _ = await tried(sandbox, attack, ground.words(way == "flat"))
                fault = FLAT.get(name, attack.fault) if way == "flat" else attack.fault
                if found["passed"] or not all(found["faults"]):
                    wrong.append("it passed")
                elif fault and (
                    not found["faults"][0].startswith(fault) or found["end"] != attack.end
                ):
                    wrong.append(
                        f"it failed in another way: {found['faults'][0]!r}, {found['end']!r}"
                    )
                json.dumps(found, ensure_ascii=False).encode()
                if re.search("[\ud800-\udfff\x1b]", json.dumps(found, ensure_ascii=False)):
                    wrong.append("its words cannot be shown")
            except Exception as error:
                wrong.append(f"{type(error).__name__}: {error}")
            wrong += (
                [f"left {each}" for uid in uids for each in processes(uid, "hostile").values()]
                + ground.reached()
                + left_files()
            )
            if wrong:
                problems[name] = wrong
            print(f"{time.monotonic() - began:6.2f} {name} {found}", file=sys.stderr)
        for sandbox in (usual, short):
            sandbox.close()
        for _ in range(50):  # what bubblewrap was is collected by the first process of this machine
            living = [
                each for uid in uids for pid, each in processes(uid).items() if pid != os.getpid()
            ]
            if not living:
                break
            await asyncio.sleep(0.05)
        else:
            problems["afterwards"] = living
    if len(os.listdir("/proc/self/fd")) > descriptors + 4:  # an event loop has its own
        problems["descriptors"] = [
            os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")[:-1]
        ]
    return problems


if __name__ == "__main__":
    way, families, *rest = sys.argv[1:]
    print(json.dumps(asyncio.run(driven(way, families.split(","), "slow" in rest))))
