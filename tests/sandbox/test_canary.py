"""The canary: every breach of the isolation is seen before the first program, refused, and
named."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from parley.errors import SandboxError
from parley.sandbox import canary, executor, process
from parley.sandbox.kinds import Bare, Bubblewrap, parents
from parley.sandbox.limits import Limits
from parley.sandbox.process import First
from tests.hostile.user import closed_above
from tests.isolation import isolated

pytestmark = [isolated]


@dataclass
class Broken(Bubblewrap):
    """A sandbox with a hole in it."""

    without: tuple[str, ...] = ()
    early: tuple[str, ...] = ()  # options that come first, and last
    late: tuple[str, ...] = ()

    def command(self, limits):
        parts = [each for each in super().command(limits) if each not in self.without]
        if "/" in self.early:  # its own links are there already
            links = [at for at, each in enumerate(parts) if each == "--symlink"]
            parts = [
                each
                for at, each in enumerate(parts)
                if not any(at in range(link, link + 3) for link in links)
            ]
        at = parts.index("--chdir")
        return [parts[0], *self.early, *parts[1:at], *self.late, *parts[at:]]


def whole_machine():
    """All files, with a way to the interpreter where it lies in a closed home."""
    closed = closed_above(Path(sys.base_prefix).resolve())
    return (
        "--ro-bind",
        "/",
        "/",
        *(() if closed is None else ("--perms", "0755", "--tmpfs", str(closed))),
    )


def refusal(kind):
    first = First(kind, Limits())
    try:
        with pytest.raises(SandboxError) as caught:
            canary.prove_isolation(first)
    finally:
        first.close()
    assert "No model-written code was run" in str(caught.value)
    return str(caught.value)


def test_a_sound_sandbox_is_proved():
    for nested in (True, False):
        first = First(Bubblewrap(nested=nested), Limits())
        canary.prove_isolation(first)
        first.close()


def test_the_network(monkeypatch):
    monkeypatch.setattr(process, "make_filter", lambda _: b"")
    said = refusal(Broken(nested=False, without=("--unshare-net",)))
    assert "programs can reach the network" in said
    assert "programs can reach sockets of this machine" in said
    assert "system calls are not filtered" in said


def test_a_filter_that_is_missing(monkeypatch):
    monkeypatch.setattr(process, "make_filter", lambda _: b"")
    said = refusal(Bubblewrap())
    assert "system calls are not filtered" in said
    assert "the network" not in said


def test_all_files_of_this_machine():
    said = refusal(Broken(nested=False, early=whole_machine()))
    assert "/, " in said
    assert "of this machine" in said


@pytest.mark.parametrize("place", ["/etc", "/var", "/home"])
def test_a_folder_of_this_machine(place):
    assert f"programs can see {place} of this machine" in refusal(
        Broken(nested=False, early=("--ro-bind", place, place))
    )


def test_where_we_stand_and_our_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    tmp_path.chmod(0o755)
    said = refusal(
        Broken(
            nested=False,
            late=(*parents(str(tmp_path))[4:], "--ro-bind", str(tmp_path), str(tmp_path)),
        )
    )
    assert f"{tmp_path}, {tmp_path}/home of this machine" in said


def test_a_system_that_can_be_written():
    said = refusal(Broken(nested=False, late=("--perms", "0777", "--tmpfs", "/etc")))
    assert "programs can write files in /etc" in said


def test_the_environment(monkeypatch):
    monkeypatch.setattr(Broken, "environment", {"HOSTILE_KEY": "1", "PATH": "/usr/bin"})
    said = refusal(Broken(nested=False, without=("--clearenv",)))
    assert "programs can see HOSTILE_KEY in the environment" in said


def test_other_processes(monkeypatch):
    broken = Broken(nested=False, without=("--unshare-pid", "--as-pid-1"))
    assert "programs can see other processes" in refusal(broken)


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user has no rights of root")
def test_root(monkeypatch):
    broken = Broken(nested=False)
    broken.uid = 0
    assert "programs run as root" in refusal(broken)


def break_sandbox(monkeypatch, guard, instead):
    """Take a guard out of what runs in the sandbox."""
    assert any(guard in text for _, text in process.SOURCES)
    sources = [(name, text.replace(guard, instead)) for name, text in process.SOURCES]
    monkeypatch.setattr(process, "SOURCES", sources)


def test_rights_that_can_be_gained(monkeypatch):
    """Bubblewrap forbids that by itself, so it is tried without."""
    break_sandbox(monkeypatch, 'control(NO_NEW_RIGHTS, 1, "no new rights")', "pass")
    monkeypatch.setattr(process, "make_filter", lambda _: b"")
    assert "programs can gain privileges" in refusal(Bare())


def test_memory_without_limit(monkeypatch):
    break_sandbox(monkeypatch, '"AS": "space", ', "")
    assert "memory is not limited" in refusal(Bubblewrap())


def test_rights_of_root(monkeypatch):
    break_sandbox(monkeypatch, "check_result(LIBC.capset", "(lambda *_: None)(LIBC.capget")
    assert "programs have root capabilities" in refusal(Bubblewrap())


def test_no_program_runs_after_a_breach(monkeypatch):
    monkeypatch.setattr(
        executor,
        "start_first",
        lambda choice, limits, group: First(
            Broken(nested=False, early=whole_machine()), limits, group
        ),
    )
    monkeypatch.setattr(executor, "run_trial", lambda *_: pytest.fail("a program ran"))
    sandbox = executor.Sandbox(jobs=1)
    with pytest.raises(SandboxError, match="does not isolate programs"):
        asyncio.run(sandbox.execute({"code": "", "tests": ["assert 1"]}))
    sandbox.close()


def test_one_that_does_not_answer_is_refused(monkeypatch):
    monkeypatch.setattr(canary, "CODE", "import os\nos._exit(0)")
    first = First(Bubblewrap(), Limits())
    with pytest.raises(SandboxError, match="could not be tested"):
        canary.prove_isolation(first)
    first.close()
