"""Judge a program: its tests run in one sandbox, the program in another, and only calls and values
pass between them."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from parley.sandbox.judges import Judges
from parley.sandbox.process import First
from parley.sandbox.talk import End, Gone, Late, Leash, Talk
from parley.sandbox.trials import Guarantee, Trial
from parley.tables import plural

MOST_TOLD = 64 << 20  # maximum number of bytes in all answers of a program


@dataclass(frozen=True)
class Verdict:
    """The result of judging a program."""

    faults: tuple[str, ...]  # one per test; empty if it passed
    guarantee: Guarantee = "values"
    end: str = ""  # why the program was stopped: timeout, memory, died
    cpu: float = 0.0  # CPU seconds of the program

    @property
    def passed(self) -> bool:
        return not any(self.faults)

    def as_data(self) -> dict[str, Any]:
        found = {"passed": self.passed, "faults": list(self.faults), "guarantee": self.guarantee}
        return {**found, "end": self.end, "cpu": round(self.cpu, 3)}


class Doubtful(Exception):
    """The machine may be at fault: the program is run once more. Then the verdict counts, if there
    is one."""

    def __init__(self, reason: str, verdict: Verdict | None = None) -> None:
        super().__init__(reason)
        self.verdict = verdict


def run_trial(first: First, trial: Trial, judges: Judges, leash: Leash) -> Verdict:
    """Run a program's trial to its end, or until its leash is pulled."""
    if trial.cases:
        return judge_by_output(first, trial, leash)
    if trial.inside:
        return judge_inside(first, trial, leash)
    return judge_by_values(first, trial, judges, leash)


def judge_by_values(first: First, trial: Trial, judges: Judges, leash: Leash) -> Verdict:
    """Tests outside, calls in, values out."""
    with first.process("program") as program, judges.connect(trial.problem) as judge:
        leash.attach(program, judge.frames)
        ends = time.monotonic() + first.limits.wall
        try:
            judge.frames.send(encode(trial.code), ends)
            while True:
                said = judge.frames.receive(ends)
                if not said.startswith(b'{"ask": '):
                    break
                try:
                    program.send(said[8:-1], ends)
                    judge.frames.send(program.receive(ends), ends)
                except Gone:
                    return judge_early_end(program.finish(by_itself=True), first, trial)
                if program.received > MOST_TOLD:
                    return make_failure(trial, "the program returns too much", "died")
        except Late:
            end = program.finish()
            verdict = make_failure(trial, "no answer in time", "timeout", end.cpu)
            raise Doubtful("no answer in time", verdict) from None
        except Gone:
            # Nothing but what the program returned can have brought it there, if it happens again.
            verdict = make_failure(trial, "the test crashes on what the program returns", "died")
            raise Doubtful(
                f"the process that runs the tests ended ({judge.finish().end})", verdict
            ) from None
        cpu = program.finish().cpu
    return parse_verdict(said, trial, cpu)


def make_failure(trial: Trial, fault: str, end: str = "", cpu: float = 0.0) -> Verdict:
    """The verdict on a program that fails all tests for one reason."""
    return Verdict((fault,) * trial.count, trial.guarantee, end, cpu)


def parse_verdict(said: bytes, trial: Trial, cpu: float) -> Verdict:
    """Parse the verdict of a judge."""
    try:
        found = json.loads(said)
        faults, not_data = tuple(clean_text(fault) for fault in found["faults"]), found["not_data"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Doubtful("the process that runs the tests returned no result") from None
    if len(faults) != trial.count:
        raise Doubtful(
            f"the process that runs the tests reported {len(faults)} results for "
            f"{plural(trial.count, 'test')}"
        )
    # Without a reference, nobody knows whether a right program would do without such objects.
    unknown = trial.untried and not_data is True and any(faults)
    return Verdict(faults, "none" if unknown else trial.guarantee, cpu=cpu)


def judge_inside(first: First, trial: Trial, leash: Leash) -> Verdict:
    """Run the tests in the program's own process, where it can forge their result. The record says
    so."""
    count = trial.count
    tests = {"setup": f"{trial.prelude}\n{trial.setup}", "tests": trial.tests}
    with first.process("program") as program:
        leash.attach(program)
        ends = time.monotonic() + first.limits.wall
        faults = ask_program(program, {"code": trial.code}, ends, first, trial)
        if isinstance(faults, Verdict):
            return faults
        if "error" in faults:
            return make_failure(trial, describe_fault(faults))
        faults = ask_program(program, {"inside": tests}, ends, first, trial)
        if isinstance(faults, Verdict):
            return faults
        found = faults.get("ok")
        if not isinstance(found, list) or len(found) != count + 1:
            return make_failure(
                trial, "the program's process did not report its test results", "died"
            )
        if found[0]:
            return make_failure(trial, clean_text(found[0]))
        faults_of_tests = tuple(clean_text(each) for each in found[1:])
        return Verdict(faults_of_tests, trial.guarantee, cpu=program.finish().cpu)


def judge_by_output(first: First, trial: Trial, leash: Leash) -> Verdict:
    """Run the program once for each case: it reads its input, and its output is compared here."""
    faults: list[str] = []
    cpu = 0.0
    for given, wanted in trial.cases:
        with first.process("program") as program:
            leash.attach(program)
            ends = time.monotonic() + first.limits.wall
            found = ask_program(program, {"script": trial.code, "stdin": given}, ends, first, trial)
            if isinstance(found, Verdict):
                return Verdict(
                    (*faults, *found.faults[len(faults) :]), "values", found.end, cpu + found.cpu
                )
            cpu += program.finish().cpu
        if "error" in found:
            faults.append(describe_fault(found))
        else:
            same = isinstance(found.get("ok"), str) and lines(found["ok"]) == lines(wanted)
            faults.append("" if same else "wrong output")
    return Verdict(tuple(faults), cpu=cpu)


def ask_program(
    program: Talk, message: Mapping[str, Any], ends: float, first: First, trial: Trial
) -> dict[str, Any] | Verdict:
    """A program's answer, or the verdict if it does not answer."""
    try:
        program.send(encode(message), ends)
        reply = json.loads(program.receive(ends))
    except Late:
        end = program.finish()
        verdict = make_failure(trial, "no answer in time", "timeout", end.cpu)
        raise Doubtful("no answer in time", verdict) from None
    except (Gone, ValueError, RecursionError):
        return judge_early_end(program.finish(by_itself=True), first, trial)
    return (
        reply if isinstance(reply, dict) else {"error": "ValueError", "words": "malformed answer"}
    )


def judge_early_end(end: End, first: First, trial: Trial) -> Verdict:
    """The verdict on a program that ended early, if the program itself was the cause."""
    limits = first.limits
    killed = end.end == f"signal {signal.SIGKILL:d}"
    memory = make_failure(
        trial, f"used more than {limits.memory >> 20} MB of memory", "memory", end.cpu
    )
    if end.end == "memory" or (killed and end.peak > limits.memory):
        return memory
    # a busy machine reports CPU time a little late
    if end.end == "cpu" or (killed and end.cpu >= 0.8 * limits.cpu):
        return make_failure(trial, f"used more than {limits.cpu} s of CPU time", "timeout", end.cpu)
    how = "closed its connection" if end.end == "not wanted" else f"exited ({end.end})"
    died = make_failure(trial, f"the program {how}", "died", end.cpu)
    if not killed and not end.end.startswith("unable"):
        return died
    if first.short_of_memory():
        raise Doubtful("a program was killed because its sandbox was short of memory", memory)
    # If it ends the same way again, the program is the cause, unless the machine is short of
    # memory.
    raise Doubtful(
        f"a program was killed from outside ({end.end})",
        None if first.machine_short_of_memory() else died,
    )


def describe_fault(reply: Mapping[str, Any]) -> str:
    return clean_text(f"{str(reply.get('error'))[:80]}: {str(reply.get('words', ''))[:300]}")


def clean_text(text: Any) -> str:
    """Text of a program that can be stored and shown: without lone surrogates and control
    characters."""
    return "".join(
        each if each.isprintable() or each in "\n\t" else "\ufffd" for each in str(text)[:400]
    )


def lines(text: str) -> list[str]:
    """The lines of an output, without white space at the ends of lines and of the text."""
    return [line.rstrip() for line in text.rstrip().replace("\r\n", "\n").split("\n")]


def encode(message: Any) -> bytes:
    return json.dumps(message).encode()
