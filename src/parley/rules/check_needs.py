"""What a check needs to find, as far as its text shows: running processes, programs that the model
wrote, or programs that take commands from files."""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Iterator, Sequence, Set
from functools import cache
from getopt import GetoptError, getopt, gnu_getopt
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Need = Literal["processes", "programs", "commands"]
NEEDS: tuple[Need, ...] = ("processes", "programs", "commands")

# Programs that look at processes.
WATCHERS = """
fuser htop jobs kill killall lsof netstat pgrep pidof pkill pmap ps pstree screen service ss
systemctl tmux top wait
"""
# Programs that take commands from files, or start a shell that reads a start-up file.
COMMANDED = """
. apt apt-get bundle cargo cmake cron crontab csh curl docker dpkg ed emacs ex expect fish gdb
git gpg hg java ksh less login make man mvn mysql nano ninja node npm nvim perldoc php pip pip3
psql rsync ruby runuser scp sftp source sqlite3 ssh su sudo svn tcsh tox vi view vim wget zsh
"""
# Programs that read /proc about the system.
OF_SYSTEM = "df findmnt ipcs lsblk lscpu mount mountpoint umount"
# Programs of every Linux system, which do what their arguments say and nothing else, and what bash
# brings.
PLAIN = """
: [ [[ alias arch b2sum base32 base64 basename break cat cd chgrp chmod chown chpasswd cksum cmp
comm continue cp csplit cut date dd declare diff diff3 dirname dirs du echo egrep exit expand
export expr factor faillog fallocate false fgrep fmt fold getconf getent getopt getopts
gpasswd grep groupadd groupdel groupmod groups gunzip gzip head hostid hostname iconv id install
join lastlog let link ln local locale logname ls mapfile md5sum mkdir mkfifo
mktemp mv namei nl nproc numfmt od passwd paste pathchk popd pr printenv printf
ptx pushd pwd read readarray readlink readonly realpath return rev rm rmdir sdiff seq set
sha1sum sha224sum sha256sum sha384sum sha512sum shift shopt shred shuf sleep sort split stat
stty sum sync tac tail tar tee test touch tr true truncate tsort tty type typeset ulimit umask
uname unexpand uniq unlink unset useradd userdel usermod users vdir wc whereis which who
whoami yes zcat zcmp zdiff zgrep
"""
# Programs that start the one that their arguments name, with their options as `getopt` reads them.
STARTERS = {
    "builtin": "", "command": "pvV", "coproc": "", "env": "i0u:C:", "exec": "cla:",
    "ionice": "c:n:t", "nice": "n:", "nohup": "", "setsid": "cfw", "stdbuf": "i:o:e:", "time": "p",
    "timeout": "k:s:v", "xargs": "0rtxn:I:L:P:d:s:a:E:",
}  # fmt: skip
# Programs whose arguments contain a program of their own.
FILTERS = {
    "awk": "F:v:f:", "gawk": "F:v:f:", "mawk": "F:v:f:", "perl": "nplaw0F:e:f:",
    "sed": "nErsuzie:f:l:",
}  # fmt: skip
# Whoever chooses the beginning of an argument of these can give them options that start programs.
WITH_OPTIONS_THAT_START = frozenset(("find", "sed", "sort", "split", "tar"))
SHELLS = frozenset(("bash", "dash", "sh"))
PYTHON = re.compile(r"python3?(?:\.\d+)?")
FOLDERS_OF_SYSTEM = frozenset(("", "/bin", "/sbin", "/usr/bin", "/usr/sbin"))
# Variables that decide which programs start, and what they read first.
STEERING = """
BASH_ENV CDPATH ENV LD_LIBRARY_PATH LD_PRELOAD PATH PERL5LIB PYTHONHOME PYTHONPATH PYTHONSTARTUP
"""
# /proc itself, or what may begin with the number of a process
OF_A_PROCESS = re.compile(r"""(?<![\w./-])/proc(?:/["']?[\d$*?{\[]|/?(?![\w./-]))""")
# Files that exist only where there is /proc.
BELOW_PROC = re.compile(r"(?<![\w./-])(?:/proc\b|/dev/(?:fd|stdin|stdout|stderr)\b)")
START_UP_FILE = re.compile(r"\.(?:bashrc|bash_profile|bash_login|bash_aliases|profile|zshrc)\b")
STARTS_IN_AWK = re.compile(r"\bsystem\s*\(|\|\s*getline|\|&?\s*[\"$]")
STARTS_IN_PERL = re.compile(r"\b(?:system|exec|qx|do|require|eval)\b|`|\|")
PYTHON_STARTS = """
Popen call check_call check_output create_subprocess_exec create_subprocess_shell getoutput
getstatusoutput popen run spawn system
"""
PYTHON_READS_CODE = """
eval exec compile __import__ pickle marshal shelve runpy importlib yaml imp code codeop dill
joblib ctypes cffi
"""


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
    scripts = [(*check, False) for check in checks] + ([(*example, True)] if example else [])
    for code, language, is_example in scripts:
        reasons = needs_of_python(code) if language == "python" else needs_of_bash(code, is_example)
        for each in reasons:
            found.setdefault(each.need, each.why)
    return {need: found[need] for need in NEEDS if need in found}


# ---- bash


class ShellWord(str):
    """A word of a command without its quotes. It is dynamic if something else stands in its place
    when it runs: a variable, the output of a command, names of files."""

    is_dynamic = begins_dynamic = False

    @classmethod
    def read(cls, node: Node, fixed: Set[str]) -> ShellWord:
        written = text_of(node)
        word = cls(without_quotes(node))
        is_pattern = node.type == "word" and re.search(r"[*?]|^~", written) is not None
        word.is_dynamic = is_pattern or any(each.type in EXPANSIONS for each in walk(node))
        begins = re.match(r'"?(?:\$\{?(\w+)|[$`])|[*?]', written)
        word.begins_dynamic = begins is not None and begins[1] not in fixed
        return word


ANYTHING = ShellWord("…")
ANYTHING.is_dynamic = ANYTHING.begins_dynamic = True
EXPANSIONS = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "process_substitution",
     "arithmetic_expansion")
)  # fmt: skip
REDIRECTIONS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))


@cache
def bash_parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def text_of(node: Node) -> str:
    return (node.text or b"").decode()


def walk(node: Node) -> Iterator[Node]:
    """A node and everything in it, in the order of the text."""
    waiting = [node]
    while waiting:
        yield (found := waiting.pop())
        waiting += reversed(found.children)


def without_quotes(node: Node) -> str:
    text = text_of(node)
    if node.type in ("command_name", "concatenation"):
        return "".join(map(without_quotes, node.children))
    if node.type == "raw_string":
        return text[1:-1]
    if node.type == "string":
        return re.sub(r'\\([$`"\\])', r"\1", text[1:-1])
    return re.sub(r"\\(.)", r"\1", text)


def needs_of_bash(code: str, may_calculate: bool = False) -> Iterator[Reason]:
    """What a script in bash needs. A program that is not known may be the model's."""
    if found := OF_A_PROCESS.search(code):
        yield Reason("processes", f"reads {found[0]}…")
    elif found := BELOW_PROC.search(code):
        yield Reason("commands", f"reads {found[0]}")
    if found := START_UP_FILE.search(code):
        yield Reason("commands", f"names the start-up file {found[0]}")
    root = bash_parser().parse(code.encode()).root_node
    if root.has_error:
        yield Reason("commands", "is not a script that Parley can read")
        return
    nodes = list(walk(root))
    functions = {
        text_of(name)
        for node in nodes
        if node.type == "function_definition" and (name := node.child_by_field_name("name"))
    }
    fixed = find_fixed_variables(nodes)
    for node in nodes:
        if node.type == "variable_assignment":
            variable = text_of(node.children[0])
            if variable in STEERING.split():
                yield Reason("programs", f"sets {variable}")
        elif node.type == "process_substitution":
            yield Reason("commands", f"reads /proc for {text_of(node)[:60]}")
        elif node.type == "command":
            words = [
                ShellWord.read(each, fixed)
                for each in node.named_children
                if each.type not in {"variable_assignment", *REDIRECTIONS}
            ]
            if words and words[0] not in functions:
                yield from needs_of_words(words, find_document(node))
    if not may_calculate:
        yield from needs_of_calculations(nodes, fixed)


def find_document(command: Node) -> str | None:
    """The here-document of a command; None if it has none, or one that is not fixed."""
    parent = command.parent
    for each in parent.children if parent is not None else ():
        if each.type == "heredoc_redirect":
            bodies = [part for part in each.children if part.type == "heredoc_body"]
            fixed = not any(part.type in EXPANSIONS for part in walk(each))
            return text_of(bodies[0]) if bodies and fixed else None
    return None


def needs_of_words(words: Sequence[ShellWord], document: str | None = None) -> Iterator[Reason]:
    """What a command needs whose words these are."""
    first, *rest = words
    folder, _, name = first.rpartition("/")
    if first.is_dynamic or folder not in FOLDERS_OF_SYSTEM:
        yield Reason("programs", f"starts {first[:60]}")
    elif name in WATCHERS.split():
        yield Reason("processes", f"starts {name}")
    elif name in COMMANDED.split():
        yield Reason("commands", f"starts {name}")
    elif name in OF_SYSTEM.split():
        yield Reason("commands", f"starts {name}, which reads /proc")
    elif name in WITH_OPTIONS_THAT_START and any(word.begins_dynamic for word in rest):
        yield Reason("commands", f"takes what it reads for options: {name}")
    elif takes_variable(name, rest) and any(word.is_dynamic for word in rest):
        yield Reason("commands", f"takes what it reads for the name of a variable: {name}")
    elif name in FILTERS:
        yield from needs_of_filter(name, rest)
    elif name in STARTERS:
        yield from needs_of_starter(name, rest)
    elif name == "find":
        yield from needs_of_find(rest)
    elif name in ("eval", "trap"):
        yield from needs_of_text(name, rest if name == "eval" else rest[:1])
    elif name in SHELLS or PYTHON.fullmatch(name):
        yield from needs_of_interpreter(name, rest, document)
    elif name not in PLAIN.split():
        yield Reason("programs", f"starts {name[:60]}, which may be the model's program")


def takes_variable(name: str, rest: Sequence[ShellWord]) -> bool:
    """Whether a command takes the name of a variable; bash runs commands that stand in a name."""
    return name in READERS or (name in ("printf", "test") and "-v" in rest)


def needs_of_text(name: str, words: Sequence[ShellWord]) -> Iterator[Reason]:
    """What a text needs that is run as a script."""
    if any(word.is_dynamic for word in words):
        yield Reason("commands", f"runs a text as commands: {name}")
    else:
        yield from needs_of_bash(" ".join(words))


def needs_of_interpreter(
    name: str, rest: Sequence[ShellWord], document: str | None
) -> Iterator[Reason]:
    """What `bash …` or `python3 …` needs."""
    is_shell = name in SHELLS
    unknown = Reason("commands", f"runs a text as commands: {name}")
    try:
        options, left = getopt([*rest], "c:eux" if is_shell else "c:m:BEIOSsu")
    except GetoptError:  # also `bash -l` and `bash -i`, which read start-up files
        yield unknown
        return
    given = dict(options)
    code: str | None = given.get("-c", document if left in ([], ["-"]) or left[0] == "-" else None)
    if "-m" in given:
        if given["-m"] != "json.tool":
            yield Reason("programs", f"starts the module {given['-m'][:40]}")
    elif code is None and left and left[0] != "-":
        yield Reason("programs", f"starts {left[0][:60]}")
    elif code is None or getattr(code, "is_dynamic", False):
        yield unknown
    else:
        yield from (needs_of_bash if is_shell else needs_of_python)(code)


def needs_of_filter(name: str, rest: Sequence[ShellWord]) -> Iterator[Reason]:
    """What awk, sed or perl needs: its arguments contain a program."""
    unknown = Reason("commands", f"puts what it reads into a program: {name}")
    try:
        options, left = gnu_getopt([*rest], FILTERS[name])
    except GetoptError:
        yield unknown
        return
    programs = [value for option, value in options if option == "-e"]
    if any(option == "-f" for option, _ in options) or (name == "perl" and not programs):
        yield Reason("programs", f"starts a program in a file: {name}")
        return
    programs = programs or left[:1]
    if any(word.is_dynamic for word in rest if word.startswith("-") or word in programs):
        yield unknown
    starts = {"perl": STARTS_IN_PERL}.get(name, STARTS_IN_AWK)
    if name != "sed" and any(starts.search(program) for program in programs):
        yield Reason("programs", f"starts a program: {name}")


def needs_of_find(rest: Sequence[ShellWord]) -> Iterator[Reason]:
    """What `find …` needs: it may start programs."""
    for at, word in enumerate(rest):
        if word in ("-exec", "-execdir", "-ok", "-okdir") and rest[at + 1 :]:
            started = rest[at + 1 :]
            ends = [n for n, each in enumerate(started) if each in (";", "+")]
            started = started[: ends[0]] if ends else started
            if any("{}" in each and each != "{}" for each in started):
                yield Reason("commands", "puts names of files into a text: find")
            yield from needs_of_words(started)


def needs_of_starter(name: str, rest: Sequence[ShellWord]) -> Iterator[Reason]:
    """What the program needs that another one starts."""
    try:
        found, left = getopt([*rest], STARTERS[name])
    except GetoptError:
        yield Reason("programs", f"starts {name} with unknown options")
        return
    options = {option for option, _ in found}
    if name == "command" and options & {"-v", "-V"}:
        return
    words = list(rest[len(rest) - len(left) :])
    if name == "timeout":
        words = words[1:]
    while name == "env" and words and (assigned := re.match(r"(\w+)=", words[0])):
        if assigned[1] in STEERING.split():
            yield Reason("programs", f"sets {assigned[1]}")
        words = words[1:]
    if name == "xargs":
        if "-I" in options:
            yield Reason("commands", "puts what it reads into a text: xargs")
        words.append(ANYTHING)
    if words:
        yield from needs_of_words(words)


# What calculates with its whole text.
CALCULATIONS = frozenset(("arithmetic_expansion", "subscript"))
COMPARES_NUMBERS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"))
READERS = frozenset(("getopts", "mapfile", "read", "readarray"))
IN_CALCULATION = re.compile(r"[A-Za-z_]\w*|\$[\d@*]|\$\((?!\()|`")


def needs_of_calculations(nodes: Sequence[Node], fixed: Set[str]) -> Iterator[Reason]:
    """Where bash calculates with a text, it runs commands that stand in it: `a[$(command)]`."""
    for node in nodes:
        calculated = text_of(node)
        if node.type == "c_style_for_statement":
            calculated = calculated.partition("))")[0].removeprefix("for")
        elif node.type in ("binary_expression", "unary_expression"):
            if not is_comparison(node):
                continue
        elif node.type == "expansion":
            found = re.match(r"\$\{!?\w+:(?![-=?+])(.*)\}\Z", calculated, re.DOTALL)
            calculated = found[1] if found else ""
        elif node.type == "declaration_command" or calculated.startswith("let "):
            if not re.match(r"\w+ -\w*i|let ", calculated):
                continue
        elif node.type not in CALCULATIONS and not (
            node.type == "compound_statement" and calculated.startswith("((")
        ):
            continue
        used = set(IN_CALCULATION.findall(re.sub(r"\$\{?#\w*\}?|\$\{?RANDOM\b", "", calculated)))
        if not used <= fixed | COMPARISON_NAMES:
            shown = " ".join(text_of(node).split())
            yield Reason("commands", f"calculates with what it reads: {shown[:60]}")
            return


COMPARISON_NAMES = frozenset(name[1:] for name in COMPARES_NUMBERS)


def is_comparison(node: Node) -> bool:
    """Whether this compares numbers in `[[ ]]`, or asks for a variable; `[ ]` does not calculate
    otherwise."""
    operators = [text_of(each) for each in node.children if each.type == "test_operator"]
    if "-v" in operators:
        return True
    compares = not COMPARES_NUMBERS.isdisjoint(operators)
    around: Node | None = node
    while compares and around is not None and around.type != "test_command":
        around = around.parent
    return compares and around is not None and text_of(around).startswith("[[")


def find_fixed_variables(nodes: Sequence[Node]) -> set[str]:
    """The variables that can only hold words of the script itself, or numbers."""
    fixed = {"HOME", "PWD"}
    loose: set[str] = set()
    for node in nodes:
        if node.type in ("variable_assignment", "for_statement"):
            values = [each for each in node.named_children if each.type not in NO_VALUES]
            is_fixed = all(map(is_literal, values)) and bool(values or node.type != "for_statement")
            (fixed if is_fixed else loose).add(text_of(node.named_children[0]))
        elif node.type == "command" and text_of(node).partition(" ")[0] in READERS:
            loose.update(text_of(each) for each in node.named_children)
    return fixed - loose


NO_VALUES = frozenset(("variable_name", "do_group", "comment"))


def is_literal(value: Node) -> bool:
    """Whether a value is a word of the script itself, or a number that is calculated (what it is
    calculated from is looked at by itself)."""
    if value.type == "arithmetic_expansion":
        return True
    if value.type == "word" and re.search(r"[*?]", text_of(value)):
        return False
    return value.type not in EXPANSIONS and all(map(is_literal, value.children))


# ---- Python


def needs_of_python(code: str) -> Iterator[Reason]:
    """What a script in Python needs. What it starts is read like a script in bash if the text says
    it; otherwise it may be the model's program."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # or another Python's syntax
        yield Reason("commands", "is not a script that Parley can read")
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
            for module in {each.partition(".")[0] for each in modules}:
                if module == "psutil":
                    yield Reason("processes", "imports psutil")
                elif module in PYTHON_READS_CODE.split():
                    yield Reason("commands", f"imports {module}")
                elif module in ("pexpect", "pty"):
                    yield Reason("programs", f"imports {module}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if OF_A_PROCESS.search(node.value):
                yield Reason("processes", "reads /proc")
            elif found := BELOW_PROC.search(node.value):
                yield Reason("commands", f"reads {found[0]}")
            if found := START_UP_FILE.search(node.value):
                yield Reason("commands", f"names the start-up file {found[0]}")
            if node.value in STEERING.split():
                yield Reason("programs", f"names the variable {node.value}")
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.path":
            yield Reason("programs", "changes where Python looks for modules")
        elif isinstance(node, ast.Call):
            yield from needs_of_call(node)


def needs_of_call(node: ast.Call) -> Iterator[Reason]:
    called = ast.unparse(node.func)
    name = called.rpartition(".")[2]
    if called in PYTHON_READS_CODE.split():
        yield Reason("commands", f"runs a text as a program: {called}")
    elif called in ("os.kill", "os.killpg"):
        yield Reason("processes", f"calls {called}")
    elif called.startswith(("os.exec", "os.spawn", "os.posix_spawn")):
        yield Reason("programs", f"calls {called}")
    elif name in PYTHON_STARTS.split():
        yield from needs_of_started_by_python(node)


def needs_of_started_by_python(node: ast.Call) -> Iterator[Reason]:
    """What a program needs that is started with a text, or with a list of words."""
    match node.args[:1]:
        case [ast.Constant(value=str(text))]:
            yield from needs_of_bash(text)
        case [ast.List(elts=words) | ast.Tuple(elts=words)] if words:
            values = [getattr(each, "value", None) for each in words]
            yield from needs_of_bash(
                " ".join(shlex.quote(each) if isinstance(each, str) else "$x" for each in values)
            )
        case _:
            yield Reason("programs", "starts what a variable names")
