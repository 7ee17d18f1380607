"""A program is judged: its tests run in one sandbox, the program in another, and only calls and values pass between them."""

from __future__ import annotations

import ast
import builtins
import json
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from parley.errors import TaskError
from parley.sandbox.judges import Judges
from parley.sandbox.process import End, First, Gone, Late, Talk

MOST_TOLD = 64 << 20  # bytes that a program may answer in all
EVALUATES = {"eval", "exec", "compile", "__import__", "loads"}
KEYS = {"kind", "code", "tests", "names", "setup", "prelude", "cases", "inside"}
Guarantee = Literal["values", "inside"]


@dataclass(frozen=True)
class Trial:
    """A program and how it is tried: by tests that call what it defines, or by what it prints for what it reads."""

    code: str
    tests: tuple[str, ...] = ()  # Python; each is one test
    names: Mapping[str, str] = field(default_factory=dict)  # what tests call it: what the program calls it
    setup: str = ""  # run before the tests, after the program
    prelude: str = ""  # what tests know besides, and no program can replace
    cases: tuple[tuple[str, str], ...] = ()  # standard input, and the standard output that is wanted
    inside: bool = False  # tests that hand functions over run in the program's process, where it can forge the outcome


@dataclass(frozen=True)
class Verdict:
    """What came of a program."""

    faults: tuple[str, ...]  # one a test, empty where it passed
    guarantee: Guarantee = "values"
    end: str = ""  # why it could not go on: timeout, memory, died
    cpu: float = 0.0  # seconds of the program

    @property
    def passed(self) -> bool:
        return not any(self.faults)

    def as_data(self) -> dict[str, Any]:
        found = {"passed": self.passed, "faults": list(self.faults), "guarantee": self.guarantee}
        return {**found, "end": self.end, "cpu": round(self.cpu, 3)}


class Doubtful(Exception):
    """It may have been the machine: the program is tried once more, alone. Then the verdict counts, if there is one."""

    def __init__(self, reason: str, verdict: Verdict | None = None) -> None:
        super().__init__(reason)
        self.verdict = verdict


def trial_of(program: Mapping[str, Any]) -> Trial:
    """What a task asks to be run; its mistakes are its author's."""
    if unknown := set(program) - KEYS:
        raise TaskError(f"a program to run has no {', '.join(sorted(unknown))}; it has {', '.join(sorted(KEYS))}")
    code, tests, cases = program.get("code"), program.get("tests", ()), program.get("cases", ())
    if not isinstance(code, str) or bool(tests) == bool(cases):
        raise TaskError("a program to run needs `code`, and either `tests` or `cases` with at least one of them")
    setup, prelude = str(program.get("setup", "")), str(program.get("prelude", ""))
    names = program.get("names")
    for text in (setup, prelude, *tests):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError) as wrong:
            raise TaskError(f"a test is no Python: {wrong} in {text[:80]!r}") from None
    if names is None:
        names = called_in([setup, *tests], prelude)
    named = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
    pairs = tuple((str(given), str(wanted)) for given, wanted in cases)
    return Trial(code, tuple(tests), named, setup, prelude, pairs, bool(program.get("inside")))


def called_in(tests: Iterable[str], prelude: str) -> list[str]:
    """The names that tests use and nobody but the program can define."""
    used: set[str] = set()
    known = set(dir(builtins))
    for text in (prelude, *tests):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else known).add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                known.add(node.name)
            elif isinstance(node, ast.arg):
                known.add(node.arg)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                known.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                known.add(node.name)
    return sorted(used - known)


def judged(first: First, trial: Trial, judges: Judges) -> Verdict:
    """Run a program's trial to its end."""
    if trial.cases:
        return by_output(first, trial)
    if trial.inside:
        return from_inside(first, trial)
    verdict = by_values(first, trial, judges)
    return from_inside(first, trial) if verdict is None else verdict


def by_values(first: First, trial: Trial, judges: Judges) -> Verdict | None:
    """Tests outside, calls in, values out. None where a test hands over what is no value."""
    problem = {"tests": trial.tests, "names": trial.names, "setup": trial.setup, "prelude": trial.prelude}
    key = blake2b(encoded(problem), digest_size=16).digest()
    ends = time.monotonic() + first.limits.wall
    with first.process("program") as program, judges.sitting(key) as judge:
        try:
            judge.send(encoded({**problem, "code": trial.code}), ends)
            while True:
                said = judge.receive(ends)
                if not said.startswith(b'{"ask": '):
                    break
                try:
                    program.send(said[8:-1], ends)
                    judge.send(program.receive(ends), ends)
                except Gone:
                    return stopped(program.ended(by_itself=True), first, trial)
                if program.received > MOST_TOLD:
                    return Verdict(("the program answers without end",) * len(trial.tests), end="died")
        except Late:
            end = program.ended()
            verdict = Verdict(("no answer in time",) * len(trial.tests), end="timeout", cpu=end.cpu)
            raise Doubtful("no answer in time", verdict) from None
        except Gone:
            # Nothing but what the program returned can have brought it there, if it happens again.
            verdict = Verdict(("the test breaks off on what the program returns",) * len(trial.tests), end="died")
            raise Doubtful(f"the process that runs the tests ended ({judge.ended().end})", verdict) from None
        found = json.loads(said)
        if found["uncrossable"]:
            return None
        faults = tuple(str(fault) for fault in found["faults"])
        if len(faults) != len(trial.tests):
            raise Doubtful(f"the judge spoke of {len(faults)} tests, where there are {len(trial.tests)}")
        guarantee: Guarantee = "inside" if evaluates(trial) else "values"
        return Verdict(faults, guarantee, cpu=program.ended().cpu)


def evaluates(trial: Trial) -> bool:
    """Whether tests run text as code: if it comes from the program, the program can forge what they find."""
    for text in (trial.prelude, trial.setup, *trial.tests):
        for node in ast.walk(ast.parse(text)):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if name in EVALUATES:
                return True
    return False


def from_inside(first: First, trial: Trial) -> Verdict:
    """Tests in the program's own process: for those that hand over functions. The record says so."""
    ends = time.monotonic() + first.limits.wall
    count = len(trial.tests)
    aliases = "\n".join(f"{name} = {called}" for name, called in trial.names.items() if name != called)
    tests = {"setup": f"{trial.prelude}\n{aliases}\n{trial.setup}", "tests": trial.tests}
    with first.process("program") as program:
        faults = asked(program, {"code": trial.code}, ends, first, trial)
        if isinstance(faults, Verdict):
            return faults
        if "error" in faults:
            return Verdict((fault_in(faults),) * count, "inside")
        faults = asked(program, {"inside": tests}, ends, first, trial)
        if isinstance(faults, Verdict):
            return faults
        found = faults.get("ok")
        if not isinstance(found, list) or len(found) != count + 1:
            return Verdict(("the process of the program did not report on its tests",) * count, "inside", "died")
        if found[0]:
            return Verdict((str(found[0]),) * count, "inside")
        return Verdict(tuple(str(each)[:400] for each in found[1:]), "inside", cpu=program.ended().cpu)


def by_output(first: First, trial: Trial) -> Verdict:
    """A script for each case: it gets its input, and what it prints is compared here."""
    faults: list[str] = []
    cpu = 0.0
    for given, wanted in trial.cases:
        ends = time.monotonic() + first.limits.wall
        with first.process("program") as program:
            found = asked(program, {"script": trial.code, "stdin": given}, ends, first, trial)
            if isinstance(found, Verdict):
                return Verdict((*faults, *found.faults[len(faults) :]), "values", found.end, cpu + found.cpu)
            cpu += program.ended().cpu
        if "error" in found:
            faults.append(fault_in(found))
        else:
            same = isinstance(found.get("ok"), str) and lines(found["ok"]) == lines(wanted)
            faults.append("" if same else "another output")
    return Verdict(tuple(faults), cpu=cpu)


def asked(program: Talk, message: Mapping[str, Any], ends: float, first: First, trial: Trial) -> dict[str, Any] | Verdict:
    """A program's answer, or the verdict where none comes."""
    count = len(trial.tests or trial.cases)
    guarantee: Guarantee = "inside" if trial.tests else "values"
    try:
        program.send(encoded(message), ends)
        reply = json.loads(program.receive(ends))
    except Late:
        end = program.ended()
        verdict = Verdict(("no answer in time",) * count, guarantee, "timeout", end.cpu)
        raise Doubtful("no answer in time", verdict) from None
    except (Gone, ValueError, RecursionError):
        return stopped(program.ended(by_itself=True), first, trial, guarantee)
    return reply if isinstance(reply, dict) else {"error": "ValueError", "words": "an answer without form"}


def stopped(end: End, first: First, trial: Trial, guarantee: Guarantee = "values") -> Verdict:
    """The verdict on a program that has ended before its time, if it was its own doing."""
    count, limits = len(trial.tests or trial.cases), first.limits
    killed = end.end == f"signal {signal.SIGKILL:d}"
    if end.end == "memory" or (killed and end.peak > limits.memory // 2):
        return Verdict((f"more than {limits.memory >> 20} MB of memory",) * count, guarantee, "memory", end.cpu)
    if killed and end.cpu >= limits.cpu - 0.5:
        return Verdict((f"more than {limits.cpu} s on the processor",) * count, guarantee, "timeout", end.cpu)
    died = Verdict((f"the program ended itself ({end.end})",) * count, guarantee, "died", end.cpu)
    if end.end.startswith("unable") or (killed and first.kind.nested):  # the first process of a namespace cannot kill itself
        raise Doubtful(f"a program was ended from outside ({end.end})")
    if killed:
        raise Doubtful(f"a program was killed ({end.end})", died)
    return died


def fault_in(reply: Mapping[str, Any]) -> str:
    return f"{str(reply.get('error'))[:80]}: {str(reply.get('words', ''))[:300]}"


def lines(text: str) -> list[str]:
    """What is printed, without regard to space at the ends of lines and of the text."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()
