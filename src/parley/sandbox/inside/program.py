"""The process of a program: it executes the program's code, then answers calls with values. It
knows no test and no verdict."""

from __future__ import annotations

import os
import sys
from types import CodeType, ModuleType
from typing import Any

from parley.sandbox.inside import confine
from parley.sandbox.inside.wire import Channel, Ended, pack, unpack

WORDS = 300  # characters of an error that are kept
MOST_OUTPUT = 1 << 20


def serve(channel: Channel, limits: dict[str, Any]) -> None:
    """Answer requests until the other side closes the connection."""
    confine.set_limit("CPU", limits["cpu"])
    # a module that can be found by its name, as dataclasses and type hints do
    module = sys.modules["program"] = ModuleType("program")
    namespace = vars(module)
    namespace["__builtins__"] = __builtins__
    kept: list[Any] = []

    def keep(value: Any) -> Any:
        kept.append(value)
        return {"r": len(kept) - 1, "of": type(value).__name__[:80]}

    def unpack_here(found: Any) -> Any:
        return unpack(found, lambda each: kept[each["r"]])

    def answer(message: dict[str, Any]) -> Any:
        if "code" in message:
            exec(compile_code(message["code"], "program.py"), namespace)
            return {
                "ok": [name for name in message.get("names", ()) if callable(namespace.get(name))]
            }
        if "script" in message:
            return {"ok": output_of(message["script"], message.get("stdin", ""))}
        if "inside" in message:
            return {"ok": run_tests(message["inside"], namespace)}
        thing = kept[message["r"]] if "r" in message else look_up(namespace, message["name"])
        if "act" in message:
            return {
                "ok": pack(ACTS[message["act"]](thing, *unpack_here(message.get("a", []))), keep)
            }
        arguments, named = unpack_here(message["a"]), unpack_here(message["k"])
        before = [
            pack(each, keep) if type(each) in (list, dict, set) else None for each in arguments
        ]
        value = pack(thing(*arguments, **named), keep)
        # What a function did to the lists, dicts and sets that it was given is seen outside, as it
        # would be in one process.
        after = [
            None if old is None else pack(each, keep)
            for each, old in zip(arguments, before, strict=True)
        ]
        changed = [
            [n, new] for n, (old, new) in enumerate(zip(before, after, strict=True)) if new != old
        ]
        return {"ok": value, "changed": changed} if changed else {"ok": value}

    while True:
        try:
            message = channel.receive()
        except Ended:
            os._exit(0)
        try:
            reply = answer(message)
        except BaseException as error:
            reply = {"error": type(error).__name__[:80], "words": words_of(error)}
        try:
            channel.send(reply)
        except (ValueError, RecursionError, TypeError) as error:
            channel.send(
                {"error": "ValueError", "words": f"the result cannot be sent: {str(error)[:WORDS]}"}
            )


def compile_code(code: str, name: str) -> CodeType:
    """Compile code as it is, without the `from __future__` imports of this file."""
    return compile(code, name, "exec", dont_inherit=True)


def words_of(error: BaseException) -> str:
    try:
        return str(error)[:WORDS]
    except BaseException:
        return "the error message cannot be read"


def look_up(namespace: dict[str, Any], name: str) -> Any:
    if name not in namespace:
        raise NameError(f"the program does not define {name}")
    return namespace[name]


# None of these tells the program what the outside compares with.
ACTS: dict[str, Any] = {
    "attribute": getattr,
    "set": setattr,
    "iterator": lambda thing: iter(thing) is thing,
    "iterate": lambda thing: list(thing),
    "next": lambda thing: next(thing),
    "length": len,
    "truth": bool,
    "text": str,
    "shown": repr,
    "item": lambda thing, key: thing[key],
}


def output_of(script: str, stdin: str) -> str:
    """Run a script as a main program with this input, and return its output."""
    given, printed = unnamed_file(), unnamed_file()
    os.write(given, stdin.encode())
    os.lseek(given, 0, os.SEEK_SET)
    os.dup2(given, 0)
    os.dup2(printed, 1)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    try:
        exec(
            compile_code(script, "program.py"),
            {"__name__": "__main__", "__builtins__": __builtins__},
        )
    except SystemExit as end:
        if end.code not in (None, 0):
            raise RuntimeError(f"the program exited with status {end.code!r}"[:WORDS]) from None
    sys.stdout.flush()
    found = os.pread(printed, MOST_OUTPUT + 1, 0)
    if len(found) > MOST_OUTPUT:
        raise ValueError(f"the program printed more than {MOST_OUTPUT} bytes")
    return found.decode("utf-8", "replace")


def unnamed_file() -> int:
    """An anonymous file, which cannot be opened by name."""
    place = f"{os.getcwd()}/.{os.urandom(8).hex()}"
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(place)
    return descriptor


def run_tests(tests: dict[str, Any], namespace: dict[str, Any]) -> list[str]:
    """Run tests in the program's own process, if they need more than plain data. The program may
    forge their results."""
    faults = []
    for text in (tests["setup"], *tests["tests"]):
        try:
            exec(compile_code(text, "test.py"), namespace)
            faults.append("")
        except BaseException as error:
            faults.append(f"{type(error).__name__}: {words_of(error)}")
    return faults
