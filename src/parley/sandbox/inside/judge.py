"""The judge process: it runs a problem's tests, and asks the program, which runs in another
process, for values."""

from __future__ import annotations

import builtins
import os
import socket
from contextlib import suppress
from typing import Any, ClassVar

from parley.sandbox.inside import confine
from parley.sandbox.inside.program import compile_code
from parley.sandbox.inside.wire import Channel, Ended, pack, unpack

WORDS = 300


# What an object of the program does not do for a test: the answer would be the program's own claim.
REFUSED = """
__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __contains__ __hash__ __getitem__ __setattr__
__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__
__rfloordiv__ __mod__ __rmod__ __divmod__ __rdivmod__ __pow__ __rpow__ __matmul__ __rmatmul__
__and__ __rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ __rlshift__ __rshift__ __rrshift__
__neg__ __pos__ __abs__ __invert__ __int__ __float__ __complex__ __index__ __round__
__enter__ __exit__ __aenter__ __aexit__ __await__ __aiter__ __anext__
"""


class NotData(Exception):
    """A test uses an object where only plain data is allowed, because it comes from the program or
    is handed to it."""

    raised: ClassVar[list[str]] = []  # also those that a test has swallowed

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.raised.append(reason)


class BadAnswer(Exception):
    """What the program's process sends is not what was asked for: the program has forged it."""


class Program:
    """The program as its tests see it: the tests call functions and get values back."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel

    def ask(self, message: dict[str, Any]) -> Any:
        try:
            self.channel.send({"ask": message})
            reply = self.channel.receive()
        except Ended:
            os._exit(0)  # nobody waits for these tests any more
        except Exception as wrong:
            raise BadAnswer(f"the program's answer is not data: {type(wrong).__name__}") from None
        if not isinstance(reply, dict) or not ("ok" in reply or "error" in reply):
            raise BadAnswer("the program's answer is malformed")
        if "error" in reply:
            raise error_of(str(reply["error"]), str(reply.get("words", "")))
        return reply

    def value(self, message: dict[str, Any]) -> Any:
        return self.unpack(self.ask(message)["ok"])

    def unpack(self, found: Any) -> Any:
        try:
            return unpack(found, lambda each: Remote(self, int(each["r"]), str(each.get("of"))))
        # whatever it is, it must not reach a test: a StopIteration would end its loops
        except Exception as wrong:
            raise BadAnswer(
                f"the program's answer is not a value: {type(wrong).__name__}"
            ) from None

    def pack(self, value: Any) -> Any:
        """Pack an argument as data. An object that came from the program may go back to it; no
        other object can be sent."""
        return pack(value, pack_object)

    def call(self, what: dict[str, Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        sent = {
            "a": [self.pack(each) for each in arguments],
            "k": {"d": [[k, self.pack(v)] for k, v in named.items()]},
        }
        reply = self.ask({**what, **sent})
        try:
            news = [(arguments[number], new) for number, new in reply.get("changed", ())]
        except Exception:
            raise BadAnswer("the program reports changes of arguments that do not exist") from None
        for old, new in news:
            copy_changes(old, self.unpack(new))
        return self.unpack(reply["ok"])


class Function:
    """A name that the program defines. If it is a class, its instances can be used as objects;
    if it is a function, it should return plain data. The problem says which it is, not the
    program."""

    def __init__(self, program: Program, name: str, is_class: bool) -> None:
        self._program, self._name, self._is_class = program, name, is_class

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        value = self._program.call({"name": self._name}, arguments, named)
        if type(value) is Remote and self._is_class:
            return Made(self._program, *identity_of(value))
        if type(value) is Remote and identity_of(value)[1] == "coroutine":
            raise NotData(f"{self._name} is asynchronous, but a coroutine is not plain data")
        return value

    def __instancecheck__(self, thing: Any) -> bool:
        raise NotData(f"a test asks for the type of an object, which only {self._name} knows")

    def __getattr__(self, name: str) -> Any:
        return self._program.value({"name": self._name, "act": "attribute", "a": [name]})


class Remote:
    """An object that a function returned and that is not plain data. It can be called, iterated
    over and passed back.

    It does not answer questions that would tell the program what a test expects, and does not
    pretend to be plain data: an object whose `startswith` is always true is not a string.
    """

    __slots__ = ("_items", "_of", "_program", "_r")

    def __init__(self, program: Program, r: int, of: str) -> None:
        for name, value in (("_program", program), ("_r", r), ("_of", of), ("_items", None)):
            object.__setattr__(self, name, value)

    def _act(self, act: str, *arguments: Any) -> Any:
        return self._program.value(
            {"r": self._r, "act": act, "a": [pack(each, pack_object) for each in arguments]}
        )

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        sent = (
            [pack(each, pack_object) for each in arguments],
            [[k, pack(v, pack_object)] for k, v in named.items()],
        )
        return self._program.value({"r": self._r, "a": sent[0], "k": {"d": sent[1]}})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if any(hasattr(kind, name) for kind in DATA):
            self._refuse()
        return self._act("attribute", name)

    def __iter__(self) -> Any:
        if self._act("iterator") is True:
            return self
        if self._items is None:
            found = self._act("iterate")
            if type(found) is not list:
                raise BadAnswer("the program's object does not yield a list of values")
            object.__setattr__(self, "_items", found)  # one look for all
        return iter(self._items)

    def __next__(self) -> Any:
        try:
            return self._act("next")
        except RuntimeError as wrong:
            if str(wrong).startswith("StopIteration"):
                raise StopIteration from None
            raise

    def __bool__(self) -> bool:
        return self._act("truth") is True

    def _refuse(self, *_: Any) -> Any:
        raise NotData(
            f"the program returned a {self._of}, which is not plain data, but a test needs plain "
            "data"
        )


for operation in REFUSED.split():
    setattr(Remote, operation, Remote._refuse)


class Made(Remote):
    """An instance of one of the program's classes, with its own attributes, methods and items.
    Objects that it contains can be used in the same way."""

    __slots__ = ()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._program.call({"r": self._r}, arguments, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        value = self._act("attribute", name)
        return Made(self._program, *identity_of(value)) if type(value) is Remote else value

    def __setattr__(self, name: str, value: Any) -> None:
        self._act("set", name, value)

    def __len__(self) -> int:
        found = self._act("length")
        if type(found) is not int or found < 0:
            raise BadAnswer("the length of the program's object is not a number")
        return found

    def __getitem__(self, key: Any) -> Any:
        return self._act("item", key)

    def __str__(self) -> str:
        return self._text("text")

    def __repr__(self) -> str:
        return self._text("shown")

    def _text(self, act: str) -> str:
        found = self._act(act)
        if type(found) is not str:
            raise BadAnswer(f"the program's {self._of} cannot be converted to text")
        return found

    # It is compared with nothing but None: the program's own claim would not count.
    def __eq__(self, other: object) -> bool:
        return other is not None and bool(self._refuse())

    def __ne__(self, other: object) -> bool:
        return other is None or bool(self._refuse())

    __hash__ = Remote._refuse


DATA = (str, bytes, list, tuple, dict, set, int, float, range)


def identity_of(remote: Remote) -> tuple[int, str]:
    return object.__getattribute__(remote, "_r"), object.__getattribute__(remote, "_of")


def pack_object(value: Any) -> Any:
    """An argument that is not plain data."""
    if isinstance(value, Remote):
        return {"r": identity_of(value)[0]}
    raise NotData(f"the tests hand over a {type(value).__name__}, which is not plain data")


def copy_changes(old: Any, new: Any) -> None:
    """A list, dict or set with the changes that the program made to it."""
    if type(old) is list and type(new) is list:
        old[:] = new
    elif type(old) in (dict, set) and type(new) is type(old):
        old.clear()
        old.update(new)


def error_of(name: str, words: str) -> Exception:
    """The program's exception, raised again for the tests. `StopIteration` and the like are
    replaced, because they would end a loop in a test early."""
    kind = getattr(builtins, name, None)
    usual = (
        isinstance(kind, type)
        and issubclass(kind, Exception)
        and not issubclass(kind, StopIteration | StopAsyncIteration)
    )
    if usual:
        try:
            return kind(words)  # type: ignore[misc, no-any-return]
        except TypeError:  # some want more than words
            pass
    return RuntimeError(f"{name}: {words}")


class Problem:
    """The tests of a problem, ready to run."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.prelude = compile_code(told["prelude"], "prelude.py")
        self.setup = compile_code(told["setup"], "setup.py")
        self.tests = [compile_code(text, "test.py") for text in told["tests"]]
        self.names: list[str] = told["names"]
        self.classes: list[str] = told["classes"]


def serve_problem(channel: Channel, limits: dict[str, Any]) -> None:
    """Serve one problem: for each program, a new process receives the code over its own socket."""
    # the processes of one problem cannot read each other
    confine.control(confine.DUMPABLE, 0, "not dumpable")
    problem = Problem(channel.receive())
    os.close(channel.write)
    control = socket.socket(fileno=channel.read)
    while True:
        data, found, *_ = socket.recv_fds(control, 1, 1)
        if not data:
            os._exit(0)
        if os.fork() == 0:
            try:
                confine.set_limit("CPU", limits["cpu"])
                control.close()
                judge(problem, Channel(found[0], found[0]))
            finally:
                os._exit(0)
        os.close(found[0])
        # those before have ended by now, or will be seen next time
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def judge_once(channel: Channel, limits: dict[str, Any]) -> None:
    """Receive a problem and then one program."""
    confine.set_limit("CPU", limits["cpu"])
    judge(Problem(channel.receive()), channel)


def judge(problem: Problem, channel: Channel) -> None:
    """Run a problem's tests against a program, and return the fault of each test."""
    code = channel.receive()
    program = Program(channel)
    namespace: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
    faults: list[str] = []
    try:
        exec(problem.prelude, namespace)
        defined = program.ask({"code": code, "names": problem.names})["ok"]
        # what cannot be read is seen when it is called
        defined = defined if isinstance(defined, list) else problem.names
        namespace.update(
            {
                name: Function(program, name, name in problem.classes)
                for name in problem.names
                if name in defined
            }
        )
        # what the program lacks is not there, also if Python has something of that name
        own = dict(vars(builtins))
        for name in problem.names:
            if name not in defined:
                own.pop(name, None)
        namespace["__builtins__"] = own
        exec(problem.setup, namespace)
    except BaseException as error:
        faults = [describe_error(error)] * len(problem.tests)
    for test in problem.tests[len(faults) :]:
        try:
            exec(test, namespace)
            faults.append("")
        except BaseException as error:
            faults.append(describe_error(error))
    channel.send({"faults": faults, "not_data": bool(NotData.raised)})


def describe_error(error: BaseException) -> str:
    try:
        words = str(error)[:WORDS]
    except BaseException:
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
