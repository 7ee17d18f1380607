"""What the text of a check shows of what it needs."""

import pytest

from parley import OSEntry, ShellScript, load_items
from parley.rules.check_needs import find_needs

PROTECTED = [
    '[ "$(cat /data/answer)" = 5 ]',
    "case $(stat -c %a /srv) in 2770|3770) ;; *) exit 1 ;; esac",
    "/usr/bin/diff a b",
    "f() { cat x; }; f",
    "function g { cat x; }\ng",
    "cat <<EOF\ngit log\nEOF\nls",
    "cat <<'EOF'\n$(git log)\nEOF\nls",
    "echo 'git log'",
    "# git log\nls",
    'echo "run git log"',
    "x='it'\"'\"'s'; ls",
    "for f in git make; do echo $f; done",
    "n=0; for i in 1 2; do n=$((n+1)); done; [ $n = 2 ]",
    '[ "$(cat /x)" -eq 3 ]',
    "for ((i=0;i<3;i++)); do echo $i; done",
    "a=(1 2 3); echo ${a[1]}",
    "awk -v n=\"$1\" '$1 == n {print}' f",
    "awk 'a || b' f",
    "sed -n '2p' f",
    "tar -xzf a -C b",
    "cat x 2>/dev/null >&2 | wc -l",
    "cat x &>/dev/null && true",
    "cmp -s a b || exit 1",
    "command -v npm",
    "type npm",
    "while read -r l; do echo $l; done < f",
    "trap 'rm -f x' EXIT; ls",
    "(cd /x; ls)",
    "time ls",
    "find . -name '*.x' -delete",
    "python3 - \"$1\" <<'E'\nprint(1)\nE",
    "perl -ne 'print if /x/' f",
    "test -f a -a -f b",
    "printf '%s\\n' \"$(cat a)\" | sort | uniq -c",
    "echo $((3 * 4))",
    "if [ -f a ]; then exit 0; else exit 1; fi",
    "ls -l /x | awk '{if ($1~/^-..s/) { exit 1; } else { exit 0; }}'",
    "git() { echo; }; git",
    "builtin echo x",
    "cat /srv/proc /srv/dev/fd /data/dev/stdin",
    "read -r a b; test -v a; printf -v a x",
    'printf "%s" "$1"',
]
PROCESSES = [
    "ps aux | grep x",
    "pgrep -x sleep",
    "cat /proc/$pid/cmdline",
    "[ -d /proc/1234 ]",
    "kill -0 $(cat pid)",
    "ls /proc | wc -l",
    "cd /proc/ && ls",
    "find '/proc' -maxdepth 1",
]
PROGRAMS = [
    "/srv/x.sh",
    "./x",
    "bash /srv/x",
    "python3 /srv/x.py",
    "mytool 3",
    '"$x" 3',
    "awk '{system($1)}' f",
    "awk '{print | \"sort\"}' f",
    "PATH=/x:$PATH ls",
    "LD_PRELOAD=x ls",
    "a && { b_tool; }",
    "g=git; $g log",
    "$(cat /x)",
    "`cat /x`",
]
COMMANDS = [
    "git -C /data status",
    "cd /x && make",
    "sqlite3 db 'select 1'",
    "x=$(git log)",
    'x="a $(git log) b"',
    "diff f <(git log)",
    "cat /proc/mounts",
    "cat /proc/self/status",
    "diff /data/answer <(echo 7)",
    "echo wrong > /dev/stderr",
    "cmp /data/answer /dev/fd/0",
    "df /data | grep tmpfs",
    "echo `git log`",
    "if git log; then exit 1; fi",
    "! make",
    "env -i HOME=/x git log",
    "timeout 5 make test",
    "sudo -u bob ls",
    "find /x -exec git -C {} log \\;",
    "ls | xargs -n 1 git add",
    "source ~/.bashrc",
    ". /root/x",
    "bash -lc 'ls'",
    "cat ~/.bashrc",
    "bash -c 'git log'",
    'bash -c "$1"',
    'eval "$1"',
    "python3 -c 'import os; os.system(\"git log\")'",
    "cat <<EOF\n$(git log)\nEOF\nls",
    "for f in $(git ls-files); do echo; done",
    "[[ $(cat /x) -eq 3 ]]",
    "(( $(cat /x) == 3 ))",
    "read n < /x; [[ $n -eq 3 ]]",
    "[[ $1 -eq 3 ]]",
    "x=$(cat a); y=$x; ((y))",
    "let x=$1",
    "n=$(ls | wc -l); (( n == 3 ))",
    'awk "/$1/" f',
    "echo 'unclosed",
    'case "$x" in\n a) git log ;;\n b) ls;;\nesac; ls',
    "su - bob -c id",
    "x=$(( $(cat f) + 1 ))",
    "crontab -l | grep x",
    "python3 - <<'E'\nimport subprocess\nsubprocess.run(['git','log'])\nE",
    "declare -i x=$1",
    "\\git log",
    "'git' log",
    "nohup git log &",
    "node x.js",
    "exec git log",
    "coproc git log",
    "until make; do sleep 1; done",
    "{ git log; }",
    '[ -n "$(git log)" ]',
    "x=${y:-$(git log)}",
    "cat < <(git log)",
    "ls|git apply",
    '[ -v "$1" ]',
    'test -v "$1"',
    'printf -v "$1" x',
    'read "$1" < x',
]
PROTECTED_PYTHON = [
    "import sys; sys.exit(int(sys.argv[1]) != 3)",
    "import sqlite3\nsqlite3.connect('x')",
    "import re\nre.compile('x')",
    "def main(): pass\nmain()",
]
PROCESSES_PYTHON = [
    "from subprocess import *\nrun('ps aux',shell=True)",
    "open('/proc/1/cmdline')",
    "import os\nos.listdir('/proc')",
    "import glob\nglob.glob('/proc/[0-9]*')",
    "import os\nos.killpg(1, 0)",
]
PROGRAMS_PYTHON = [
    "import subprocess as s\ns.run(sys.argv[1])",
    "import sys\nsys.path.insert(0,'/srv')\nimport mod",
    "import os; os.execvp('git',['git'])",
    "import os; os.environ['PATH'] = '/srv'",
    "from asyncio import *\ncreate_subprocess_exec('./x')",
]
COMMANDS_PYTHON = [
    "import subprocess, sys\nsubprocess.run(['git','log'])",
    "import os\nos.popen('make')",
    "eval(open('x').read())",
    "import pickle",
    "a = ; b",
]


def needs_of(code, language="bash"):
    return set(find_needs([(code, language)]))


@pytest.mark.parametrize("code", PROTECTED)
def test_a_check_that_reads_data_needs_nothing(code):
    assert needs_of(code) == set()


@pytest.mark.parametrize("code", PROCESSES)
def test_a_check_that_looks_at_processes_says_so(code):
    assert needs_of(code) == {"processes"}


@pytest.mark.parametrize("code", PROGRAMS)
def test_a_program_that_is_not_the_systems_may_be_the_models(code):
    assert needs_of(code) == {"programs"}


@pytest.mark.parametrize("code", COMMANDS)
def test_a_check_may_take_commands_from_files(code):
    assert needs_of(code) == {"commands"}


@pytest.mark.parametrize(
    ("code", "need"),
    [
        *((code, set()) for code in PROTECTED_PYTHON),
        *((code, {"processes"}) for code in PROCESSES_PYTHON),
        *((code, {"programs"}) for code in PROGRAMS_PYTHON),
        *((code, {"commands"}) for code in COMMANDS_PYTHON),
    ],
)
def test_a_check_in_python_is_read_too(code, need):
    assert needs_of(code, "python") == need


def test_the_first_reason_is_kept():
    found = find_needs([("ls; git log; make", "bash"), ("svn log", "bash")])
    assert found == {"commands": "starts git"}


def test_an_example_may_calculate_and_a_check_may_not():
    code = "n=$(cat /srv/n); echo $((n + 1))"
    assert set(find_needs([(code, "bash")])) == {"commands"}
    assert find_needs([], (code, "bash")) == {}
    assert set(find_needs([(code, "bash")], (code, "bash"))) == {"commands"}
    assert set(find_needs([], ("git log", "bash"))) == {"commands"}


def entry(*checks, **fields):
    return OSEntry("x", "Do it.", checks=tuple(ShellScript(each) for each in checks), **fields)


def test_an_item_says_what_its_checks_need():
    assert entry("test -e /srv/a").needs == ()
    assert entry("ps -e", "git log").needs == ("processes", "commands")
    example = OSEntry("x", "?", checks=(None, ShellScript("true")), example=ShellScript("ps -e"))
    assert example.needs == ("processes",)
    unused = OSEntry("x", "?", answer="1", example=ShellScript("ps -e"))
    assert unused.needs == ()


def test_an_item_may_say_more_and_never_less():
    assert entry("test -e /srv/a", needs=("programs",)).needs == ("programs",)
    assert entry("ps -e", needs=("commands",)).needs == ("processes", "commands")
    assert entry("ps -e", needs=()).needs == ("processes",)
    with pytest.raises(ValueError, match="processes, programs, commands, but it has 'network'"):
        entry("true", needs=("network",))


def test_only_bundled_tasks_on_processes_and_programs_are_marked():
    found = {each.id: each.needs for each in load_items("samples", OSEntry) if each.needs}
    assert found == {
        "processes-stop": ("processes",),
        "processes-start": ("processes",),
        "programs-double": ("programs",),
        "programs-backup": ("programs",),
        "programs-longest": ("programs",),
        "programs-mend": ("programs",),
    }


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "code", ["$((" * 20_000, "$(" * 20_000, "x=$((y+1)); " * 10_000, "case " * 10_000]
)
def test_no_script_keeps_the_reader_busy(code):
    assert needs_of(code) <= {"commands", "programs"}
