"""Hostile programs, as root and as an ordinary user, warm and cold: none passes, none leaves
anything, none sees a key."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

import pytest

from parley.sandbox import process
from parley.sandbox.judges import Judges
from parley.sandbox.judging import run_trial
from parley.sandbox.kinds import Bare
from parley.sandbox.limits import Limits
from parley.sandbox.process import First
from parley.sandbox.talk import Leash
from parley.sandbox.trials import trial_of
from tests.hostile.drive import Ground
from tests.isolation import isolated

ROOT = Path(__file__).parents[2]
FAMILIES = ("forging", "exhaustion", "escape", "leak")
UID = 61_000
pytestmark = [isolated]


def driven(home, way, families, *, uid=None, slow=False):
    """What went wrong, by program."""
    home.chmod(0o755)
    if uid is not None:
        os.chown(home, uid, uid)
    start = (
        ["-m", "tests.hostile.drive"]
        if uid is None
        else [str(ROOT / "tests/hostile/user.py"), str(uid), "tests.hostile.drive"]
    )
    command = [sys.executable, *start, way, ",".join(families), *(["slow"] if slow else [])]
    environment = {
        **os.environ,
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture
def open_home():
    """A home that an ordinary user may enter, which pytest's own folders are not."""
    home = Path(f"/tmp/parley-test-home-{os.urandom(6).hex()}")
    home.mkdir()
    yield home
    shutil.rmtree(home)


def test_there_are_many_and_no_two_have_the_same_name():
    names = [
        name for family in FAMILIES for name in import_module(f"tests.hostile.{family}").ATTACKS
    ]
    assert len(names) == len(set(names)) >= 100


@pytest.mark.parametrize("family", FAMILIES)
def test_hostile_programs_warm(open_home, family):
    assert driven(open_home, "warm", [family]) == {}


@pytest.mark.skipif(os.getuid() != 0, reason="the tests run as an ordinary user already")
def test_hostile_programs_as_an_ordinary_user(open_home):
    assert driven(open_home, "warm", ["escape", "leak"], uid=UID) == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["warm", "cold", "flat"])
@pytest.mark.parametrize("who", ["self", "user"])
def test_all_hostile_programs(open_home, way, who):
    if who == "user" and os.getuid() != 0:
        pytest.skip("the tests run as an ordinary user already")
    assert (
        driven(open_home, way, FAMILIES, uid=UID + len(way) if who == "user" else None, slow=True)
        == {}
    )


@pytest.mark.parametrize(
    "name", ["planted_files", "their_names", "passwords", "groups_of_this_machine"]
)
def test_the_programs_bite_where_nothing_isolates_them(tmp_path, monkeypatch, name):
    """Without isolation the same programs are judged correct: what the other tests see is the
    isolation."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HOSTILE_KEY", "")
    attack = import_module("tests.hostile.leak").ATTACKS[name]
    with ExitStack() as undo:
        words = Ground(undo).words(True)
        assert verdict_without_isolation(attack.filled(**words), attack.tests).passed


def test_they_bite_where_the_filter_is_missing(monkeypatch):
    monkeypatch.setattr(process, "make_filter", lambda _: b"")
    for name in ("every_family", "files_in_memory", "rings"):
        attack = import_module("tests.hostile.escape").ATTACKS[name]
        verdict = verdict_without_isolation(attack.filled(), attack.tests)
        # some kernels have no rings for anybody
        assert verdict.passed or name == "rings", (name, verdict)


def verdict_without_isolation(code, tests):
    first = First(Bare(), Limits())
    return run_trial(
        first, trial_of({"code": code, "tests": tests, "names": ["answer"]}), Judges(first), Leash()
    )
