"""Commands that are printed for the user work as they stand, however `parley` was called."""

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from parley.cli import invocation
from parley.cli.invocation import command_name, words_to_repeat

SOURCES = str(Path(__file__).parents[2] / "src")


@pytest.mark.parametrize(
    ("called", "found", "typed"),
    [
        ("parley", None, "parley"),
        ("/usr/bin/parley", "/usr/bin/parley", "parley"),
        (".venv/bin/parley", None, ".venv/bin/parley"),
        (".venv/bin/parley", "/usr/bin/parley", ".venv/bin/parley"),
        ("my tools/parley", None, "'my tools/parley'"),
    ],
)
def test_the_command_is_named_as_it_can_be_typed_again(monkeypatch, called, found, typed):
    monkeypatch.setattr(sys, "argv", [called, "demo"])
    monkeypatch.setattr(invocation.shutil, "which", lambda name: found)
    assert command_name() == typed


def test_a_module_is_named_with_its_python(monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(Path(SOURCES) / "parley" / "__main__.py")])
    monkeypatch.setattr(sys, "executable", "/opt/x/bin/python3")
    monkeypatch.setattr(invocation.shutil, "which", lambda name: "/usr/bin/python3")
    assert command_name() == "/opt/x/bin/python3 -m parley"


def test_the_last_line_of_the_demo_works_as_printed_and_says_why_a_match_was_lost(tmp_path):
    script = tmp_path / "tools" / "parley"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom parley.cli import main\nmain()\n")
    script.chmod(0o755)
    env = {**os.environ, "PYTHONPATH": SOURCES}

    def typed(line):
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done

    lines = typed("tools/parley demo --bots-only").stderr.splitlines()
    assert re.match(r"parley: see why altruist scored only \d\d\.\d\d in match \d+: ", lines[-2])
    shown = typed(lines[-2].rpartition(": ")[2]).stdout
    assert "so I give it everything I have" in shown
    assert "I get my share of the pool whether I pay or not" in shown
    assert re.search(r"Player \d  altruist +\d\d\.\d\d\n", shown)
    assert not re.search(r"\d\.\d{3}", shown)  # numbers that nobody can read at a glance
    for line in lines[-5:-2]:
        if not line.endswith(" view"):  # which serves until it is stopped
            typed(line.rpartition(": ")[2])
    assert Path(lines[-1].rpartition(": ")[2]).is_file()


def test_a_run_says_what_to_look_at_next(tmp_path):
    """In a pipe on stderr, so that stdout has data only."""
    models = ("-m", "bot/altruist", "-m", "bot/free-rider", "--repeats", "1")
    line = [sys.executable, "-m", "parley", "run", "public_goods", *models]
    env = {**os.environ, "PYTHONPATH": SOURCES, "TERM": "dumb"}
    outer, inner = pty.openpty()
    with subprocess.Popen(line, cwd=tmp_path, env=env, stdin=inner, stdout=inner, stderr=inner):
        os.close(inner)
        shown = b""
        with suppress(OSError):  # how Linux says that nobody writes any more
            while more := os.read(outer, 4096):
                shown += more
    os.close(outer)
    for words in ("show last --part pairs", "show last --matches", "report last -o report.html"):
        assert f"-m parley {words}" in shown.decode()
    piped = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert "--part pairs" in piped.stderr
    assert "--part pairs" not in piped.stdout


def test_what_was_allowed_is_typed_again(monkeypatch):
    words = ["parley", "run", "x.yaml", "--allow-host", "a b", "--yes", "--allow-env=NAME"]
    monkeypatch.setattr(sys, "argv", words)
    assert words_to_repeat() == ["--allow-host", "'a b'", "--allow-env=NAME"]
