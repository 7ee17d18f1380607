"""What a check needs to find, as far as its text shows: running processes, programs that the model
wrote, or programs that take commands from files."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from parley.rules.shell_words import Command, Script, ShellWord, parse_script

Need = Literal["processes", "programs", "commands"]
NEEDS: tuple[Need, ...] = ("processes", "programs", "commands")

# Programs that look at processes.
WATCHERS = """
fuser htop jobs kill killall lsof netstat pgrep pidof pkill pmap ps pstree screen service ss
systemctl tmux top wait
"""
# Programs that take commands from files, or start a shell that reads a start-up file.
COMMANDED = """
apt apt-get bundle cargo cmake cron crontab csh curl docker dpkg ed emacs ex expect fish gdb git
gpg hg java ksh less login make man mvn mysql nano ninja node npm nvim perldoc php pip pip3 psql
rsync ruby runuser scp sftp sqlite3 ssh su sudo svn tcsh tox vi view vim wget zsh
"""
LOGIN = re.compile(r"-[a-z]*[il][a-z]*")
SHELLS = frozenset(("bash", "dash", "sh"))
PYTHON = re.compile(r"python3?(?:\.\d+)?")
# Programs of every Linux system, which do what their arguments say and nothing else, and what bash
# brings.
PLAIN = """
: [ [[ alias arch b2sum base32 base64 basename break cat cd chgrp chmod chown
chpasswd cksum cmp comm continue cp csplit cut date dd declare df diff diff3 dirname dirs
du echo egrep exit expand export expr factor faillog fallocate false fgrep findmnt fmt fold
getconf getent getopt getopts gpasswd grep groupadd groupdel groupmod groups gunzip gzip
head hostid hostname iconv id install ipcs join lastlog let link ln local
locale logname ls lsblk lscpu mapfile mawk md5sum mkdir mkfifo mktemp mount mountpoint mv
namei nl nproc numfmt od passwd paste pathchk popd pr printenv printf ptx pushd pwd read readarray
readlink readonly realpath return rev rm rmdir sdiff seq set sha1sum sha224sum sha256sum sha384sum
sha512sum shift shopt shred shuf sleep sort split stat stty sum sync tac tail tar
tee test touch tr true truncate tsort tty type typeset ulimit umask umount uname unexpand uniq
unlink unset useradd userdel usermod users vdir wc whereis which who whoami yes
zcat zcmp zdiff zgrep
"""
# Programs that start the one that their arguments name.
STARTERS = """
builtin chrt command env exec ionice nice nohup setsid stdbuf taskset time timeout
"""
AMOUNT = re.compile(r"[\da-f.x]+[smhd]?")
WITH_VALUE = frozenset(("-u", "-n", "-k", "-s", "-S", "-I", "-L", "-P", "-d", "-a", "-E", "-C"))
FOLDERS_OF_SYSTEM = frozenset(("/bin", "/sbin", "/usr/bin", "/usr/sbin"))
# Variables that decide which programs start, and what they read first.
STEERING = """
BASH_ENV CDPATH ENV LD_LIBRARY_PATH LD_PRELOAD PATH PERL5LIB PYTHONHOME PYTHONPATH PYTHONSTARTUP
"""
OF_A_PROCESS = re.compile(r"/proc/[\"']?[\d$*?{\[]")
START_UP_FILE = re.compile(r"\.(?:bashrc|bash_profile|bash_login|bash_aliases|profile|zshrc)\b")
COMPARES_NUMBERS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"))
STARTS_IN_AWK = re.compile(r"\bsystem\s*\(|\|\s*getline|\|&?\s*[\"\w]|[\"\w]\s*\|\s*getline")
STARTS_IN_PERL = re.compile(r"\b(?:system|exec|qx|do|require|eval)\b|`|\|")
# Output that can only be a number.
NUMBER = re.compile(
    r"\|\s*wc(?:\s+-[lwcm]+)?\s*\Z|\|\s*grep\s+-c\b[^|]*\Z|\A\s*stat\s+(?:-c|--format=?)\s*"
    r"[\"']?%[asugh][\"']?\s[^|;&]*\Z|\A\s*(?:nproc|seq\s[\d\s]+|date\s+\+%\w)\s*\Z"
)
NAME = re.compile(r"[A-Za-z_]\w*")
PYTHON_STARTS = """
Popen call check_call check_output getoutput getstatusoutput popen run spawn system
"""
PYTHON_READS_CODE = frozenset(
    ("eval", "exec", "compile", "__import__", "pickle", "marshal", "shelve", "runpy", "importlib",
     "yaml", "imp", "code", "codeop", "dill", "joblib", "ctypes", "cffi")
)  # fmt: skip


class Reason(NamedTuple):
    """What a check needs, and what in its text says so."""

    need: Need
    why: str


def find_needs(
    checks: Sequence[tuple[str, str]], example: tuple[str, str] | None = None
) -> dict[Need, str]:
    """What checks need, each with the first reason. A script is its code and its language.

    The example may calculate with what it reads: it says what is right, and whoever can change what
    it reads decides that anyway.
    """
    found: dict[Need, str] = {}
    for code, language in (*checks, *([example] if example else [])):
        of_example = (code, language) == example
        reasons = needs_of_python(code) if language == "python" else needs_of_bash(code, of_example)
        for each in reasons:
            found.setdefault(each.need, each.why)
    return {need: found[need] for need in NEEDS if need in found}


# ---- bash


def needs_of_bash(code: str, may_calculate: bool = False) -> Iterator[Reason]:
    """What a script in bash needs. A program that is not known may be the model's."""
    if found := OF_A_PROCESS.search(code):
        yield Reason("processes", f"reads {found[0]}…")
    if found := START_UP_FILE.search(code):
        yield Reason("commands", f"names the start-up file {found[0]}")
    script = parse_script(code)
    if not script.is_whole:
        yield Reason("commands", "is not a whole script of bash")
    for command in script.commands:
        yield from needs_of_command(command, script)
    if not may_calculate:
        yield from needs_of_arithmetic(script)


def needs_of_arithmetic(script: Script) -> Iterator[Reason]:
    """Where bash calculates with a text, it runs commands that stand in it: `a[$(command)]`."""
    numbers = find_numbers(script)
    texts = [f"(({text}))" for text in script.arithmetic if not is_numeric(text, numbers)]
    for command in script.commands:
        name, *rest = [word.text for word in command.words] or [""]
        if name == "[[" and COMPARES_NUMBERS.intersection(rest):
            dynamic = [word.text for word in command.words if word.is_dynamic]
            texts += [f"[[ {text} … ]]" for text in dynamic if not is_numeric(text, numbers)]
        elif name == "let" or (
            name in ("declare", "local", "typeset") and rest and re.match(r"-\w*i", rest[0])
        ):
            texts.append(" ".join([name, *rest]))
    if texts:
        shown = " ".join(texts[0].split())
        yield Reason("commands", f"calculates with what it reads: {shown[:60]}")


def needs_of_command(command: Command, script: Script) -> Iterator[Reason]:
    for name in command.assigned:
        if name in STEERING.split():
            yield Reason("programs", f"sets {name}")
    if command.words:
        yield from needs_of_words(command.words, script, command.text)


def needs_of_words(words: Sequence[ShellWord], script: Script, given: str = "") -> Iterator[Reason]:
    """What a command needs whose words these are, and `given` its here-document."""
    first, rest = words[0], words[1:]
    folder, _, name = first.text.rpartition("/")
    if first.is_dynamic:
        yield Reason("programs", f"starts what a variable names: {first.text[:40]}")
    elif "/" in first.text and folder not in FOLDERS_OF_SYSTEM:
        yield Reason("programs", f"starts {first.text[:60]}")
    elif name in script.functions:
        return
    elif name in WATCHERS.split():
        yield Reason("processes", f"starts {name}")
    elif name in COMMANDED.split():
        yield Reason("commands", f"starts {name}")
    elif name in (".", "source"):
        yield Reason("commands", f"reads commands from {rest[0].text[:40] if rest else 'a file'}")
    elif name in SHELLS:
        yield from needs_of_shell(name, rest, given)
    elif name in ("eval", "trap"):
        yield from needs_of_text(name, rest if name == "eval" else rest[:1])
    elif PYTHON.fullmatch(name):
        yield from needs_of_interpreter(name, rest, given)
    elif name in ("perl", "awk", "gawk", "mawk", "sed"):
        yield from needs_of_filter(name, rest)
    elif name == "find":
        yield from needs_of_find(rest, script)
    elif name in STARTERS.split() or name == "xargs":
        yield from needs_of_started(name, rest, script)
    elif name not in PLAIN.split():
        yield Reason("programs", f"starts {name[:60]}, which may be the model's program")
    elif name == "tar" and any(word.begins_with_glob for word in rest):
        yield Reason("commands", "takes names of files for options: tar")


def needs_of_shell(name: str, rest: Sequence[ShellWord], given: str) -> Iterator[Reason]:
    """What `bash …` needs."""
    for at, word in enumerate(rest):
        if word.text == "-" or word.text == "-s":
            break
        if word.text in ("--login", "--rcfile", "--init-file") or LOGIN.fullmatch(word.text):
            yield Reason("commands", f"starts a shell that reads start-up files: {name}")
        if re.fullmatch(r"-\w*c", word.text):
            yield from needs_of_text(name, rest[at + 1 : at + 2])
            return
        if not word.text.startswith("-"):
            yield Reason("programs", f"starts {word.text[:60]}")
            return
    if given:
        yield from needs_of_bash(given)
    else:
        yield Reason("commands", f"starts a shell that reads commands: {name}")


def needs_of_text(name: str, words: Sequence[ShellWord]) -> Iterator[Reason]:
    """What a text needs that is run as a script."""
    if any(word.is_dynamic for word in words):
        yield Reason("commands", f"runs a text as commands: {name}")
    else:
        yield from needs_of_bash(" ".join(word.text for word in words))


def needs_of_interpreter(name: str, rest: Sequence[ShellWord], given: str) -> Iterator[Reason]:
    """What `python3 …` needs."""
    for at, word in enumerate(rest):
        following = rest[at + 1] if at + 1 < len(rest) else ShellWord("", False)
        if re.fullmatch(r"-\w*c", word.text):
            if following.is_dynamic:
                yield Reason("commands", f"runs a text as commands: {name} -c")
            else:
                yield from needs_of_python(following.text)
            return
        if word.text == "-m":
            if following.text != "json.tool":
                yield Reason("programs", f"starts the module {following.text[:40]}")
            return
        if word.text == "-":
            break
        if not word.text.startswith("-"):
            yield Reason("programs", f"starts {word.text[:60]}")
            return
    if given:
        yield from needs_of_python(given)
    else:
        yield Reason("commands", f"reads commands: {name}")


def needs_of_filter(name: str, rest: Sequence[ShellWord]) -> Iterator[Reason]:
    """What awk, sed or perl needs: their first argument is a program."""
    program: ShellWord | None = None
    words = iter(rest)
    for word in words:
        if name in ("sed", "perl") and re.fullmatch(r"-\w*e|--expression", word.text):
            program = next(words, None)
        elif word.text in ("-f", "--file"):
            yield Reason("programs", f"starts a program in a file: {name}")
            return
        elif word.text in ("-F", "-v", "-l"):
            next(words, None)
            continue
        elif word.text.startswith("-") and word.text != "-":
            continue
        else:
            program = word
            if name == "perl":
                yield Reason("programs", f"starts {word.text[:60]}")
                return
        break
    if program is None:
        return
    if program.is_dynamic:
        yield Reason("commands", f"puts what it reads into a program: {name}")
    starts = {"perl": STARTS_IN_PERL, "sed": None}.get(name, STARTS_IN_AWK)
    if starts and starts.search(re.sub(r"\|\|", "", program.text)):
        yield Reason("programs", f"starts a program: {name}")
    if name == "sed" and any(word.begins_with_glob for word in rest):
        yield Reason("commands", "takes names of files for options: sed")


def needs_of_find(rest: Sequence[ShellWord], script: Script) -> Iterator[Reason]:
    """What `find …` needs: it may start programs."""
    if rest and rest[0].begins_with_glob:
        yield Reason("commands", "takes names of files for options: find")
    for at, word in enumerate(rest):
        if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            started = [*rest[at + 1 :]]
            ends = [n for n, each in enumerate(started) if each.text in (";", "+")]
            if started:
                yield from needs_of_words(started[: ends[0]] if ends else started, script)


def needs_of_started(name: str, rest: Sequence[ShellWord], script: Script) -> Iterator[Reason]:
    """What the program needs that another one starts."""
    if name == "command" and rest and rest[0].text in ("-v", "-V"):
        return
    words = list(rest)
    while words:
        text = words[0].text
        if text.startswith("-"):
            if (name == "xargs" and text == "-n") or text in WITH_VALUE:
                words = words[1:]
        elif assigned := re.match(r"(\w+)=", text):
            if assigned[1] in STEERING.split():
                yield Reason("programs", f"sets {assigned[1]}")
        elif not (
            name in ("timeout", "taskset", "chrt") and re.fullmatch(r"[\da-f.x]+[smhd]?", text)
        ):
            yield from needs_of_words(words, script)
            return
        words = words[1:]


def find_numbers(script: Script) -> frozenset[str]:
    """The variables of a script that can only hold numbers, or words of the script itself."""
    safe = frozenset(name for name, _ in script.assignments) - script.read
    while True:
        unsafe = {
            name
            for name, text in script.assignments
            if name in safe and not is_numeric(text, safe, plain=True)
        }
        if not unsafe:
            return safe
        safe -= unsafe


def is_numeric(text: str, numbers: frozenset[str], plain: bool = False) -> bool:
    """Whether a text of a script can only become a number; with `plain`, or is a word as it is
    written."""
    text = text.strip("\"'")
    if plain and not re.search(r"[$`]", text):
        return True
    substituted = re.match(r"\$\((?!\()(.*)\)\Z", text, re.DOTALL) or re.match(
        r"`(.*)`\Z", text, re.DOTALL
    )
    if substituted:
        return NUMBER.search(substituted[1]) is not None
    inner = re.match(r"\$\(\((.*)\)\)\Z", text, re.DOTALL)
    if inner:
        text = inner[1]
    if "$(" in text or "`" in text or "[" in text:
        return False
    rest = re.sub(r"\$\{?#\w*\}?|\$[?#$]|\$\{?(RANDOM|SECONDS|UID|PPID|BASHPID)\}?", "", text)
    if re.search(r"\$\{?[\d@*]", rest):
        return False
    named = NAME.findall(re.sub(r"0x[\da-fA-F]+", "", rest))
    return all(name in numbers or name == "RANDOM" for name in named)


# ---- Python


def needs_of_python(code: str) -> Iterator[Reason]:
    """What a script in Python needs. What it starts is read like a script in bash if the text says
    it; otherwise it may be the model's program."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
            for module in {each.partition(".")[0] for each in modules}:
                if module == "psutil":
                    yield Reason("processes", "imports psutil")
                elif module in PYTHON_READS_CODE:
                    yield Reason("commands", f"imports {module}")
                elif module in ("pexpect", "pty"):
                    yield Reason("programs", f"imports {module}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.match(r"/proc/(?:\d|\Z)", node.value):
                yield Reason("processes", "reads /proc")
            if found := START_UP_FILE.search(node.value):
                yield Reason("commands", f"names the start-up file {found[0]}")
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.path", "os.environ"):
            if ast.unparse(node) == "sys.path":
                yield Reason("programs", "changes where Python looks for modules")
        elif isinstance(node, ast.Call):
            yield from needs_of_call(node)


def needs_of_call(node: ast.Call) -> Iterator[Reason]:
    called = ast.unparse(node.func)
    name = called.rpartition(".")[2]
    if called in PYTHON_READS_CODE:
        yield Reason("commands", f"runs a text as a program: {called}")
    elif called == "os.kill":
        yield Reason("processes", "calls os.kill")
    elif called.startswith(("os.exec", "os.spawn", "os.posix_spawn")):
        yield Reason("programs", f"calls {called}")
    elif name in PYTHON_STARTS.split():
        yield from needs_of_started_by_python(node)


def needs_of_started_by_python(node: ast.Call) -> Iterator[Reason]:
    first = node.args[0] if node.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield from needs_of_bash(first.value)
        return
    words: list[ShellWord] = []
    for each in first.elts if isinstance(first, ast.List | ast.Tuple) else ():
        is_text = isinstance(each, ast.Constant) and isinstance(each.value, str)
        words.append(ShellWord(str(each.value) if is_text else "…", not is_text))  # type: ignore[attr-defined]
    if words:
        yield from needs_of_words(words, Script())
    else:
        yield Reason("programs", "starts what a variable names")
