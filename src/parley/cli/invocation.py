"""How this command was called, so that the user can copy the commands that it prints."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def command_name() -> str:
    """What to type for this command: `parley` if the shell finds this same program, or else the
    path or the `python -m parley` that the user typed."""
    called = sys.argv[0]
    if Path(called).name == "__main__.py":
        return f"{name_program(sys.executable)} -m parley"
    return name_program(called)


ALLOWING = ("--allow-host", "--allow-path", "--allow-env")


def find_flags(*flags: str) -> list[str]:
    """These flags of this command, with their values."""
    words, found = sys.argv[1:], []
    for number, word in enumerate(words):
        if word.partition("=")[0] in flags:
            found += [word] if "=" in word else words[number : number + 2]
    return found


def words_to_repeat() -> list[str]:
    """The flags of this command that a command for the same run needs again, quoted for the
    shell."""
    return [shlex.quote(word) for word in find_flags(*ALLOWING, "--workers")]


def name_program(called: str) -> str:
    """The name of a program if the shell finds it by that name, or else its path."""
    found = shutil.which(Path(called).name)
    if not os.path.dirname(called) or (found and is_same_file(found, called)):
        return Path(called).name
    return shlex.quote(called)


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths are the same. Links are not followed, because the python of a virtual
    environment is one."""
    return os.path.abspath(one) == os.path.abspath(other)
