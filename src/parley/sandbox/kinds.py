"""The kinds of sandbox, each with the command that starts the first process inside."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import ClassVar, Protocol

from parley.errors import SandboxError
from parley.sandbox.limits import Limits

BOOT = (
    "import json,os,sys,types\n"
    "def take(n):\n"
    " b=b''\n"
    " while len(b)<n:\n"
    "  c=os.read(0,n-len(b))\n"
    "  if not c:os._exit(0)\n"
    "  b+=c\n"
    " return b\n"
    "sources,settings=json.loads(take(int.from_bytes(take(4),'big')))\n"
    "for name,text in sources:\n"
    " m=sys.modules[name]=types.ModuleType(name)\n"
    " m.__path__=[]\n"
    " exec(compile(text,name,'exec'),m.__dict__)\n"
    " above,_,last=name.rpartition('.')\n"
    " if above:setattr(sys.modules[above],last,m)\n"
    "m.main(settings)\n"
)
SETTINGS = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
TOP = ("lib", "lib64", "bin", "sbin")  # folders of programs and libraries beside /usr
PACKAGES = ("site-packages", "dist-packages")
SAMPLES = "datasets/samples"  # in an installation of Parley
REMEDY = (
    "install bubblewrap (on Debian and Ubuntu: apt-get install bubblewrap) and allow user "
    "namespaces, or use --sandbox docker or --sandbox podman, or add "
    "--unsafe-run-code-without-isolation to run model-written code without a sandbox"
)


class Kind(Protocol):
    """A kind of sandbox."""

    @property
    def name(self) -> str: ...

    @property
    def environment(self) -> Mapping[str, str]: ...  # of the command that starts it

    nested: bool  # whether one first process can make fresh namespaces for each program
    uid: int  # who the program is, where it starts as root; else 0
    reason: str  # why it cannot

    def command(self, limits: Limits) -> list[str]: ...


@dataclass
class Bubblewrap:
    """Namespaces of the kernel, made by bubblewrap: no network, nothing of this machine but
    programs to read."""

    name: ClassVar[str] = "bubblewrap"
    environment: ClassVar[Mapping[str, str]] = SETTINGS
    nested: bool = True
    uid: int = 0
    reason: str = ""

    def __post_init__(self) -> None:
        if os.getuid() == 0:
            self.uid = private_uid(Path("/proc/self/uid_map").read_text())

    def command(self, limits: Limits) -> list[str]:
        found = shutil.which("bwrap")
        if found is None:
            raise SandboxError(f"bubblewrap is not installed: {REMEDY}")
        parts = [
            found,
            "--unshare-pid",
            "--unshare-net",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
        ]
        # Ours is the first process inside: no program there can kill it, and nothing of bubblewrap
        # is left for others to collect.
        parts += ["--as-pid-1", "--hostname", "sandbox", "--new-session", "--clearenv"]
        if os.getuid() == 0:
            parts += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        else:
            parts += ["--unshare-user"]
        for place in system():
            parts += [*parents(place), "--ro-bind", place, place]
        for name in TOP:
            if os.path.islink(f"/{name}"):
                parts += ["--symlink", os.readlink(f"/{name}").lstrip("/"), f"/{name}"]
            elif os.path.isdir(f"/{name}"):
                parts += ["--ro-bind", f"/{name}", f"/{name}"]
        for place in package_folders():
            parts += ["--perms", "0755", "--tmpfs", place, "--remount-ro", place]
        parts += [
            "--perms",
            "0755",
            "--dir",
            "/etc",
            "--ro-bind-try",
            "/etc/ld.so.cache",
            "/etc/ld.so.cache",
        ]
        parts += [
            "--perms",
            "1777",
            "--size",
            str(limits.disk),
            "--tmpfs",
            "/tmp",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
        ]
        parts += [
            "--perms",
            "1777",
            "--size",
            str(1 << 20),
            "--tmpfs",
            "/dev/shm",
            "--perms",
            "0755",
            "--tmpfs",
            "/dev/pts",
        ]
        # terminals would be shared
        parts += ["--ro-bind", "/dev/null", "/dev/zero"]  # which could be mapped as shared memory
        parts += ["--remount-ro", "/dev/pts", "--remount-ro", "/dev", "--remount-ro", "/"]
        parts += ["--chdir", "/tmp"]
        for name, value in SETTINGS.items():
            parts += ["--setenv", name, value]
        return [*parts, python(), *FLAGS, "-c", BOOT]


@dataclass
class Container:
    """A container of docker or podman for each process: no network, no mounts, no rights."""

    name: str  # docker or podman
    # of the client, not of the container
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    nested: bool = False
    reason: str = "one for each program"
    uid: int = 0
    image: str = f"python:{sys.version_info[0]}.{sys.version_info[1]}-slim"

    def command(self, limits: Limits) -> list[str]:
        found = shutil.which(self.name)
        if found is None:
            raise SandboxError(f"{self.name} is not installed: {REMEDY}")
        parts = [found, "run", "--rm", "--interactive", "--pull", "missing", "--log-driver", "none"]
        parts += ["--network", "none", "--read-only", "--ipc", "private", "--shm-size", "1m"]
        parts += [
            "--user",
            "65534:65534",
            "--cap-drop",
            "ALL",
            "--security-opt",
            "no-new-privileges",
            "--hostname",
            "sandbox",
        ]
        parts += [
            "--tmpfs",
            f"/tmp:rw,nosuid,nodev,size={limits.disk},mode=1777",
            "--workdir",
            "/tmp",
            "--init=false",
        ]
        # beyond that the kernel ends it; the limit itself is watched from inside
        memory = str(limits.memory + (64 << 20))
        parts += [
            "--memory",
            memory,
            "--memory-swap",
            memory,
            "--pids-limit",
            str(limits.processes + 4),
            "--cpus",
            "1",
        ]
        for name, value in SETTINGS.items():
            parts += ["--env", f"{name}={value}"]
        return [*parts, self.image, "python3", *FLAGS, "-c", BOOT]


@dataclass
class Bare:
    """A process of this machine with limits but without isolation: only if the user asks for it
    explicitly."""

    name: ClassVar[str] = "none"
    environment: ClassVar[Mapping[str, str]] = SETTINGS
    nested: bool = False
    reason: str = "one for each program"
    uid: int = 0

    def command(self, limits: Limits) -> list[str]:
        return [python(), *FLAGS, "-c", BOOT]


FLAGS = ("-s", "-S", "-P")  # nothing of the user's packages; the environment is ours already


def python() -> str:
    """The base interpreter, not that of a virtual environment."""
    return f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"


def system() -> list[str]:
    """The folders that hold programs and libraries, and nothing else of where this interpreter
    lives."""
    prefixes = dict.fromkeys((sys.base_prefix, os.path.realpath(sys.base_prefix)))
    apart = [each for each in prefixes if each != "/usr" and not each.startswith("/usr/")]
    return [
        "/usr",
        *(
            f"{each}/{name}"
            for each in apart
            for name in ("bin", "lib", "lib64")
            if os.path.isdir(f"{each}/{name}")
        ),
    ]


@cache
def package_folders() -> tuple[str, ...]:
    """The folders of installed Python packages in what is bound, which are empty inside: an
    installation of Parley contains tests and reference programs."""
    places = [*system(), *(f"/{name}" for name in TOP if not os.path.islink(f"/{name}"))]
    # the one that runs is known also where its folder cannot be listed
    own = Path(__file__).resolve().parents[1]
    found = {packages_at(str(own.parent)) or packages_at(str(own))}
    for place in places:
        for folder, names, _ in os.walk(place):
            for name in names.copy():
                if hidden := packages_at(f"{folder}/{name}"):
                    found.add(hidden)
                    names.remove(name)
    bound = tuple(f"{place}/" for place in places)
    outermost: list[str] = []
    for place in sorted(each for each in found if each.startswith(bound)):
        if not any(place.startswith(f"{each}/") for each in outermost):
            outermost.append(place)
    return tuple(outermost)


def packages_at(folder: str) -> str:
    """The folder to hide if this one holds packages, or is one of Parley; empty if it is neither.

    Where Parley is a project's source, the whole project is hidden, with its tests.
    """
    place = Path(folder)
    if place.name in PACKAGES:
        return os.path.realpath(place)
    if place.name != "parley" or not (place / SAMPLES).is_dir():
        return ""
    project = place.parents[1]
    whole = place.parent.name == "src" and (project / "pyproject.toml").exists()
    return os.path.realpath(project if whole else place)


def parents(place: str) -> list[str]:
    """The folders above one, which bubblewrap would make for its owner only."""
    above = [str(each) for each in reversed(Path(place).parents)][1:]
    return [word for each in above for word in ("--perms", "0755", "--dir", each)]


def private_uid(mapped: str) -> int:
    """A random unused user ID, so that two runs do not share one."""
    ranges = [
        (int(first), int(count))
        for first, _, count in (line.split() for line in mapped.splitlines())
    ]
    first, count = max(ranges, key=lambda each: each[1])
    low, high = first + min(count // 2, 1 << 20), first + min(count, 1 << 31) - 2
    if high <= low:
        raise SandboxError(
            "programs must run as a different user than Parley, but this machine has no free "
            "user ID"
        )
    return random.SystemRandom().randint(low, high)


@cache
def sources(*modules: str) -> tuple[tuple[str, str], ...]:
    """What is sent inside: the texts of our own modules, in the order in which they need each
    other."""
    inside = resources.files("parley.sandbox.inside")
    texts = [
        (f"parley.sandbox.inside.{name}", (inside / f"{name}.py").read_text()) for name in modules
    ]
    return (("parley", ""), ("parley.sandbox", ""), ("parley.sandbox.inside", ""), *texts)
