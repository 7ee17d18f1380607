"""The commands of a bash script with their words, as far as the text shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LONGEST = 1000  # characters of a calculation
ENDS = frozenset("\n;&|()")
BLANKS = frozenset(" \t\r")
KEYWORDS = "if then elif else fi while until do done ! { } time coproc"
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=")


@dataclass(frozen=True)
class ShellWord:
    """A word without its quotes. It is dynamic if something else stands in its place when it runs:
    a variable, the output of a command, names of files."""

    text: str
    is_dynamic: bool
    begins_with_glob: bool = False


@dataclass
class Command:
    """A command, the variables that are set in front of it, and its here-document."""

    words: list[ShellWord] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    text: str = ""


@dataclass
class Script:
    """All commands of a script, also those inside others."""

    commands: list[Command] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    assignments: list[tuple[str, str]] = field(default_factory=list)  # and the text they are set to
    read: set[str] = field(default_factory=set)  # variables that are read from input
    arithmetic: list[str] = field(default_factory=list)
    is_whole: bool = True  # whether all quotes and brackets are closed


class NotWhole(Exception):
    """A quote or a bracket is not closed."""


def parse_script(code: str) -> Script:
    """Find the commands of a script."""
    script = Script()
    try:
        ScriptReader(code.replace("\\\n", ""), script).read_commands("")
    except (NotWhole, RecursionError):
        script.is_whole = False
    for command in script.commands:
        names = [word.text for word in command.words]
        if names[:1] in (["read"], ["mapfile"], ["readarray"], ["getopts"]):
            script.read |= set(names[1:])
        if names[:1] in (["local"], ["declare"], ["export"], ["readonly"], ["typeset"]):
            set_by = (ASSIGNMENT.match(name) for name in names[1:])
            script.assignments += [
                (each[1], each.string[each.end() :]) for each in set_by if each is not None
            ]
    return script


class ScriptReader:
    """Reads the text of a script from left to right."""

    def __init__(self, text: str, script: Script) -> None:
        self.text, self.script, self.at = text, script, 0
        self.documents: list[tuple[str, bool, Command]] = []  # that begin with the next line

    def peek(self, size: int = 1) -> str:
        return self.text[self.at : self.at + size]

    def read_commands(self, closing: str) -> None:
        """Read commands until a closing bracket, or the end."""
        command = Command()
        while self.at < len(self.text):
            char = self.peek()
            if char in BLANKS:
                self.at += 1
            elif char == "#":
                self.skip_line()
            elif char == closing:
                self.at += 1
                self.finish(command)
                return
            elif self.peek(2) == "((" and not command.words:
                self.at += 2
                self.script.arithmetic.append(self.read_arithmetic())
            elif char == "(" and len(command.words) == 1 and self.is_function():
                self.script.functions.add(command.words.pop().text)
            elif char == "(":
                self.at += 1
                self.read_commands(")")
            elif char in "<>" or self.peek(2) == "&>":
                self.read_redirection(command)
            elif char in ENDS:
                self.at += 1
                self.finish(command)
                command = Command()
                if char == "\n":
                    self.read_documents()
            else:
                self.read_next(command)
        self.finish(command)
        if closing:
            raise NotWhole

    def read_next(self, command: Command) -> None:
        """Read the next word of a command."""
        begin = self.at
        word = self.read_word()
        if command.words:
            command.words.append(word)
        elif word.text in KEYWORDS.split() and not word.is_dynamic:
            pass
        elif word.text in ("for", "select"):
            self.read_loop()
        elif word.text == "case":
            self.read_case()
        elif word.text == "function":
            self.skip_blanks()
            self.script.functions.add(self.read_word().text)
            if self.is_function():
                pass
        elif word.text == "[[":
            command.words += [word, *self.read_condition()]
        elif set_by := ASSIGNMENT.match(self.text[begin : self.at]):
            if self.peek() == "(":
                self.at += 1
                self.read_words(")")
            value = self.text[begin + set_by.end() : self.at]
            self.script.assignments.append((set_by[1], value))
            command.assigned.append(set_by[1])
        elif self.peek() in ("<", ">") and word.text.isdigit():
            pass  # the number of a descriptor
        else:
            command.words.append(word)

    def finish(self, command: Command) -> None:
        if command.words or command.assigned:
            self.script.commands.append(command)

    def is_function(self) -> bool:
        """Whether `()` follows, and skip it."""
        found = re.compile(r"[ \t]*\([ \t]*\)").match(self.text, self.at)
        if found:
            self.at = found.end()
        return found is not None

    def skip_line(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def skip_blanks(self, blanks: frozenset[str] = BLANKS) -> None:
        while self.peek() and self.peek() in blanks:
            self.at += 1

    # ---- parts of a command

    def read_redirection(self, command: Command) -> None:
        if self.peek(2) in ("<(", ">("):
            self.at += 2
            self.read_commands(")")
            command.words.append(ShellWord("/dev/fd/63", True))
            return
        begin = self.at
        while self.peek() and self.peek() in "<>&|":
            self.at += 1
        if (sign := self.text[begin : self.at]).startswith("<<") and sign != "<<<":
            self.at = begin + 2 + (self.text[begin + 2 : begin + 3] == "-")
            self.skip_blanks()
            start = self.at
            word = self.read_word()
            quoted = any(mark in self.text[start : self.at] for mark in "'\"\\")
            self.documents.append((word.text, quoted, command))
            return
        self.skip_blanks()
        if self.peek() in ("<", ">") and self.peek(2)[1:] == "(":
            self.read_redirection(Command())
        elif self.peek() and self.peek() not in ENDS:
            self.read_word()

    def read_documents(self) -> None:
        """Skip here-documents. Commands in those that are not quoted are read."""
        waiting, self.documents = self.documents, []
        for end, quoted, command in waiting:
            lines = []
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = stop + 1
                if line.lstrip("\t") == end:
                    break
                lines.append(line)
            command.text = "\n".join(lines)
            if not quoted:
                ScriptReader(f'"{command.text}"'.replace("'", "’"), self.script).read_word()
        self.at = min(self.at, len(self.text))

    def read_loop(self) -> None:
        """Read `for NAME in WORDS`, or `for ((…))`."""
        self.skip_blanks()
        if self.peek(2) == "((":
            self.at += 2
            text = self.read_arithmetic()
            self.script.arithmetic.append(text)
            for part in text.split(";"):
                if found := re.match(r"\s*(\w+)\s*=(.*)", part, re.DOTALL):
                    self.script.assignments.append((found[1], f"$(({found[2]}))"))
            return
        name = self.read_word().text
        self.skip_blanks(BLANKS | {"\n"})
        if self.peek(2) != "in":
            self.script.assignments.append((name, "$@"))
            return
        self.at += 2
        begin = self.at
        words = self.read_words("\n;")
        files = any(word.begins_with_glob or "*" in word.text for word in words)
        text = "$files" if files else self.text[begin : self.at - 1].strip()
        self.script.assignments.append((name, text))

    def read_words(self, closing: str) -> list[ShellWord]:
        """Read words until one of these characters."""
        words: list[ShellWord] = []
        while True:
            self.skip_blanks(BLANKS if "\n" in closing else BLANKS | {"\n"})
            if not self.peek():
                if "\n" in closing:
                    return words
                raise NotWhole
            if self.peek() in closing:
                self.at += 1
                return words
            if self.peek() in ENDS:
                self.at += 1
            elif self.peek() in "<>":
                self.read_redirection(Command())
            else:
                words.append(self.read_word())

    def read_case(self) -> None:
        """Read `case WORD in`, and skip each pattern."""
        self.skip_blanks()
        self.read_word()
        self.skip_blanks(BLANKS | {"\n"})
        if self.peek(2) != "in":
            raise NotWhole
        self.at += 2
        while True:
            self.skip_blanks(BLANKS | {"\n", ";", "&"})
            if self.peek(4) == "esac":
                self.at += 4
                return
            end = self.text.find(")", self.at + 1)
            if end < 0:
                raise NotWhole
            self.at = end + 1
            self.read_clause()

    def read_clause(self) -> None:
        """Read the commands of one pattern, up to `;;` or `esac`."""
        depth, begin = 0, self.at
        reader = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\bcase\b|\besac\b|;;&?|;&", re.DOTALL)
        for found in reader.finditer(self.text, self.at):
            if found[0] == "case":
                depth += 1
            elif found[0] == "esac" and depth:
                depth -= 1
            elif (found[0][:1] == ";" and not depth) or found[0] == "esac":
                self.at = found.start()
                ScriptReader(self.text[begin : self.at], self.script).read_commands("")
                return
        raise NotWhole

    def read_condition(self) -> list[ShellWord]:
        """Read what stands between `[[` and `]]`."""
        words: list[ShellWord] = []
        while True:
            self.skip_blanks(BLANKS | {"\n"})
            if not self.peek():
                raise NotWhole
            if self.peek() in ENDS or self.peek() in "<>":
                self.at += 1
                continue
            word = self.read_word("<>")
            if word.text == "]]":
                return words
            words.append(word)

    # ---- words

    def read_word(self, also: str = "<>") -> ShellWord:
        """Read one word, with the commands inside."""
        text, dynamic, glob = "", False, self.peek() in ("*", "?")
        begin = self.at
        while (char := self.peek()) and char not in BLANKS and char not in ENDS:
            if char in also:
                break
            if char == "\\":
                text += self.peek(2)[1:]
                self.at += 2
            elif char == "'":
                text += self.read_quoted()
            elif char == '"':
                inner, changes = self.read_double()
                text, dynamic = text + inner, dynamic or changes
            elif char == "$" and self.peek(2) == "$'":
                self.at += 1
                text += self.read_quoted(escapes=True)
            elif char in "$`":
                inner, changes = self.read_expansion()
                text, dynamic = text + inner, dynamic or changes
            else:
                dynamic = dynamic or char in "*?" or (char == "~" and self.at == begin)
                text += char
                self.at += 1
        if self.at == begin:  # something that begins no word
            self.at += 1
        return ShellWord(text, dynamic, glob)

    def read_quoted(self, escapes: bool = False) -> str:
        begin = self.at + 1
        end = begin
        while True:
            end = self.text.find("'", end)
            if end < 0:
                raise NotWhole
            before = self.text[begin:end]
            if not escapes or (len(before) - len(before.rstrip("\\"))) % 2 == 0:
                break
            end += 1
        self.at = end + 1
        return self.text[begin:end]

    def read_double(self) -> tuple[str, bool]:
        self.at += 1
        text, dynamic = "", False
        while (char := self.peek()) != '"':
            if not char:
                raise NotWhole
            if char == "\\":
                following = self.peek(2)[1:]
                text += following if following in '$`"\\' else f"\\{following}"
                self.at += 2
            elif char in "$`":
                inner, changes = self.read_expansion()
                text, dynamic = text + inner, dynamic or changes
            else:
                text += char
                self.at += 1
        self.at += 1
        return text, dynamic

    def read_expansion(self) -> tuple[str, bool]:
        """Read `$…` or a command in backticks: its text, and whether it is one."""
        begin = self.at
        if self.peek() == "`":
            end = re.compile(r"(?:\\.|[^`\\])*`", re.DOTALL).match(self.text, self.at + 1)
            if end is None:
                raise NotWhole
            inner = re.sub(r"\\([`\\$])", r"\1", end[0][:-1])
            ScriptReader(inner, self.script).read_commands("")
            self.at = end.end()
        elif self.peek(3) == "$((" and self.is_arithmetic():
            self.at += 3
            self.script.arithmetic.append(self.read_arithmetic())
        elif self.peek(2) == "$(":
            self.at += 2
            self.read_commands(")")
        elif self.peek(2) == "${":
            self.read_braces()
        elif found := re.compile(r"\$(?:\w+|[@*#?$!-])").match(self.text, self.at):
            self.at = found.end()
        else:
            self.at += 1
            return "$", False
        return self.text[begin : self.at], True

    def is_arithmetic(self) -> bool:
        """Whether `$((` opens a calculation, and not a command in brackets."""
        depth = 0
        for place in range(self.at + 1, min(len(self.text), self.at + LONGEST)):
            depth += {"(": 1, ")": -1}.get(self.text[place], 0)
            if depth == 0:
                return self.text[place - 1] == ")" and self.text[place - 2 : place] != "()"
        return True

    def read_arithmetic(self) -> str:
        """Read a calculation up to `))`, with the commands inside."""
        begin, depth = self.at, 0
        while char := self.peek():
            if char in "$`":
                self.read_expansion()
                continue
            if char == ")" and depth == 0:
                text = self.text[begin : self.at]
                self.at += 2
                return text
            depth += {"(": 1, ")": -1}.get(char, 0)
            self.at += 1
        raise NotWhole

    def read_braces(self) -> None:
        """Read `${…}`."""
        self.at += 2
        while (char := self.peek()) != "}":
            if not char:
                raise NotWhole
            if char == "\\":
                self.at += 2
            elif char == "'":
                self.read_quoted()
            elif char == '"':
                self.read_double()
            elif char in "$`":
                self.read_expansion()
            else:
                self.at += 1
        self.at += 1
