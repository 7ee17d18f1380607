"""The filter on system calls: its program interpreted step by step for both machines, and live on
this one."""

import errno
import struct

import pytest

from parley.sandbox import seccomp
from parley.sandbox.seccomp import (
    ALLOW,
    FORBIDDEN,
    KILL,
    MACHINES,
    MISSING,
    NEWEST,
    NOT_IN_PROGRAMS,
    PRETEND,
    REFUSED,
    SETTING_LIMITS,
    make_filter,
)

MOST = 4096  # steps that a kernel takes


def verdict(machine, number, arguments=(), audit=None, role="program"):
    """What the kernel would do with a call: a small interpreter of the filter's language."""
    program = list(struct.iter_unpack("HBBI", make_filter(role, machine)))
    words = [*arguments, *[0] * (6 - len(arguments))]
    call = struct.pack(
        "<IIQ6Q",
        number & 0xFFFFFFFF,
        audit if audit is not None else MACHINES[machine][0],
        0,
        *words,
    )
    at, held = 0, 0
    while True:
        code, then, otherwise, value = program[at]
        at += 1
        if code == seccomp.LOAD:
            assert value % 4 == 0
            (held,) = struct.unpack_from("<I", call, value)
        elif code == seccomp.MASK:
            held &= value
        elif code == seccomp.RETURN:
            return value
        else:
            true = {
                seccomp.EQUAL: held == value,
                seccomp.ANY_BIT: bool(held & value),
                seccomp.FROM: held >= value,
            }[code]
            at += then if true else otherwise


@pytest.mark.parametrize("role", ["program", "judges", "shell"])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_program_that_ends(machine, role):
    program = list(struct.iter_unpack("HBBI", make_filter(role, machine)))
    assert 0 < len(program) < MOST
    assert program[-1][0] == seccomp.RETURN
    for at, (code, then, otherwise, _) in enumerate(program):
        if code in (seccomp.EQUAL, seccomp.ANY_BIT, seccomp.FROM):
            assert at + 1 + max(then, otherwise) < len(program)


@pytest.mark.parametrize("role", ["program", "judges", "shell"])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_refused_calls_are_refused_new_ones_do_not_exist_and_all_others_pass(machine, role):
    column = MACHINES[machine][1]
    tables = [REFUSED] if role == "shell" else [REFUSED, NOT_IN_PROGRAMS]
    refused = {numbers[column] for table in tables for numbers in table.values()} - {None}
    looked_into = {each[column] for each in seccomp.ABOUT_OTHERS.values()}
    for number in {*range(600), 0x3FFFFFFF} - (looked_into if role == "shell" else set()):
        # a stream of local sockets, no flags, a limit but that of time
        found = verdict(machine, number, (1, 1), role=role)
        if number in refused:
            assert found == FORBIDDEN, number
        elif number == MACHINES[machine][3] or number > NEWEST:
            assert found == MISSING, number
        else:
            assert found == ALLOW, number


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_orders_of_fcntl(machine):
    def answers(role):
        orders = {"signal": 10, "lock": 6, "wait for lock": 7, "own lock": 37, "lease": 1024}
        orders |= {"copy": 0, "flags": 4, "who has it": 5, "watch": 1026}
        number = seccomp.FCNTL[machine]
        return {
            name: verdict(machine, number, (3, order), role=role) for name, order in orders.items()
        }

    shell, program = answers("shell"), answers("program")
    assert set(shell.values()) == {ALLOW}
    assert {name for name, answer in program.items() if answer == ALLOW} == {
        "copy", "flags", "who has it",
    }  # fmt: skip
    assert program["lock"] == program["wait for lock"] == program["own lock"] == PRETEND
    assert program["signal"] == program["lease"] == program["watch"] == FORBIDDEN


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_nobody_changes_the_first_process_of_a_shell(machine):
    for name, numbers in seccomp.ABOUT_OTHERS.items():
        number, place = numbers[MACHINES[machine][1]], numbers[2]

        def answer(pid, first=0, number=number, place=place):
            return verdict(machine, number, (pid, 0) if place == 0 else (first, pid), role="shell")

        assert (answer(0), answer(77), answer(1)) == (ALLOW, ALLOW, FORBIDDEN), name
        if name == "setpriority":
            assert answer(0, first=2) == FORBIDDEN


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_no_number_is_given_twice(machine):
    both = [each for table in (REFUSED, NOT_IN_PROGRAMS) for each in table.values()]
    numbers = [
        each[MACHINES[machine][1]] for each in both if each[MACHINES[machine][1]] is not None
    ]
    assert len(numbers) == len(set(numbers))
    assert max(numbers) <= NEWEST


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_of_other_machines_end_the_program(machine):
    for audit in {each[0] for each in MACHINES.values()} - {MACHINES[machine][0]} | {
        0x40000003,
        0x40000028,
        0,
    }:
        assert verdict(machine, 0, audit=audit) == KILL
    for number in (0x40000000, 0x40000000 + 59, 0x40000000 + 520, -1, 0x7FFFFFFF):
        assert verdict(machine, number) == KILL


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_clone_makes_threads_and_processes_but_no_namespaces(machine):
    clone = MACHINES[machine][2]
    for fine in (17, 0x3D0F00, 0x1200011, 0x4111):
        assert verdict(machine, clone, (fine,)) == ALLOW
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, clone, (flag | 17,)) == FORBIDDEN, hex(flag)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_pairs_of_sockets_are_local_and_no_terminal_is_written_for(machine):
    *_, ioctl, socketpair = MACHINES[machine]
    assert [verdict(machine, socketpair, (family, 1)) for family in (1, 2, 16, 30)] == [
        ALLOW,
        *[FORBIDDEN] * 3,
    ]
    assert [verdict(machine, ioctl, (0, word)) for word in (0x5401, 0x5412, 0x541C)] == [
        ALLOW,
        FORBIDDEN,
        FORBIDDEN,
    ]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_pairs_of_sockets_have_no_addresses(machine):
    socketpair, closed_and_at_once = MACHINES[machine][-1], 0o2000000 | 0o4000
    for kind in range(1, 11):
        wanted = ALLOW if kind == 1 else FORBIDDEN
        for role in ("program", "judges"):
            assert verdict(machine, socketpair, (1, kind), role=role) == wanted
            assert verdict(machine, socketpair, (1, kind | closed_and_at_once), role=role) == wanted
        assert verdict(machine, socketpair, (1, kind), role="shell") == ALLOW


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_program_sets_no_time_and_nothing_for_others(machine):
    own, anybodys = SETTING_LIMITS[machine]
    time, stack, somewhere, high = 0, 3, 0x7FFF1234, 0x7FFF00000000
    for role in ("judges", "shell"):
        assert verdict(machine, own, (time, somewhere), role=role) == ALLOW
        assert verdict(machine, anybodys, (7, time, somewhere), role=role) == ALLOW
    assert verdict(machine, own, (time, somewhere)) == FORBIDDEN
    assert verdict(machine, own, (stack, somewhere)) == ALLOW
    for pid, which, new, wanted in (
        (0, time, 0, ALLOW), (7, time, 0, ALLOW), (0, stack, somewhere, ALLOW),
        (0, stack, high, ALLOW),
        (0, time, somewhere, FORBIDDEN), (0, time, high, FORBIDDEN),
        (7, stack, somewhere, FORBIDDEN),
        (7, stack, high, FORBIDDEN),
    ):  # fmt: skip
        assert verdict(machine, anybodys, (pid, which, new)) == wanted, (pid, which, new)


def test_the_words_of_refusal_are_errors():
    assert FORBIDDEN & 0xFFFF == errno.EPERM
    assert MISSING & 0xFFFF == errno.ENOSYS


def test_an_unknown_machine_has_no_filter():
    assert make_filter("program", "s390x") == b""
