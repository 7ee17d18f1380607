"""House rules: the order of rooms, public names, a fast start, nothing of the cast in a view."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import parley
from parley.rules.pool import View

SRC = Path(parley.__file__).parent
# A module imports only from its own room and from the rooms before it.
ORDER = [
    "errors", "options", "tables", "activity", "downloads", "rules", "masking", "match",
    "statistics", "sandbox", "tasks",
    "datasets", "providers", "memory", "participants", "plans", "store", "money", "config", "runs",
    "results", "audit", "report", "annotation", "export", "analysis of tasks", "testing", "web",
    "api", "cli",
]  # fmt: skip
TOP = {
    "__init__", "__main__", "activity", "api", "downloads", "errors", "money", "options",
    "tables",
}  # fmt: skip
ROOMS = set(ORDER) - TOP - {"analysis of tasks"}
# of a task's folder; every other file of it is analysis
RULE_SIDE = {"rule", "bots", "scoring"}
PURE = {
    "__future__", "array", "ast", "bisect", "builtins", "collections", "dataclasses", "decimal",
    "difflib", "enum", "fractions", "functools", "getopt", "hashlib", "inspect", "itertools",
    "json", "math", "operator", "random", "re", "shlex",
    "statistics", "string", "sys", "textwrap", "types", "typing", "unicodedata", "warnings",
}  # fmt: skip


@cache
def modules():
    """Every module of the package by its name without `parley.`, with its file."""
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


@cache
def imports(path):
    """Every module that a file imports, also inside functions; those of the package with
    `parley.`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write imports out in full"
            within = node.module.removeprefix("parley").lstrip(".")
            for alias in node.names if node.module.split(".")[0] == "parley" else ():
                full = f"{within}.{alias.name}".lstrip(".")
                home = parley._HOME.get(alias.name) if not within else None
                found.add(f"parley.{home or full}" if home or full in modules() else node.module)
            if node.module.split(".")[0] != "parley":
                found.add(node.module)
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith("import_module")
            and isinstance(node.args[0], ast.Constant)
        ):
            found.add(node.args[0].value)
    return frozenset(found)


def own_imports(name):
    """The modules of the package that a module imports, without `parley.`."""
    return {
        each.removeprefix("parley.")
        for each in imports(modules()[name])
        if each.startswith("parley.")
    }


def room(name):
    """Where a module stands in the order."""
    first, *rest = name.split(".")
    if first == "tasks" and len(rest) > 1:
        folder, file = rest[:2]
        shared = file.endswith("_analysis")
        analysis = shared if folder == "_common" else file not in RULE_SIDE
        return "analysis of tasks" if analysis else first
    return "cli" if first == "__main__" else first


def test_a_module_imports_only_from_its_own_room_and_from_rooms_before_it():
    """Also inside functions, where an import is made late."""
    place = {name: number for number, name in enumerate(ORDER)}
    names = set(modules()) - {"__init__"}
    assert not {name for name in names if room(name) not in place}, "no room of the house"
    found = {
        (name, other)
        for name in names
        for other in own_imports(name)
        if place[room(other)] > place[room(name)]
    }
    assert not found


# Folders inside rooms; adding one is a change of the design.
FOLDERS = {
    "sandbox/inside", "tasks/code_review", "tasks/kieval", "tasks/os_tasks", "tasks/public_goods",
    "tasks/qa", "tasks/translation", "tasks/word_guessing", "tasks/_common",
    "datasets/benchmarks",
    "datasets/formats", "memory/retrievers", "rules/items", "runs/launchers",
    "store/reader", "store/sqlite", "store/postgres", "results/parts",
}  # fmt: skip


def test_rooms_have_folders_only_where_they_are_listed():
    found = {path.parent.relative_to(SRC) for path in modules().values()}
    assert {folder.as_posix() for folder in found if len(folder.parts) > 1} <= FOLDERS


def test_a_rooms_init_hands_on_nothing_from_other_modules():
    """It holds protocols. What it imports it uses: handing on would load whole rooms."""
    for name, path in modules().items():
        if path.stem != "__init__" or name in ("__init__", "testing", "cli"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        taken = {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.module.startswith("parley")
            for alias in node.names
        }
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if name.startswith("tasks."):  # the class of a task is found in its folder
            taken = {each for each in taken if each.islower()}
        assert taken <= used, f"{name} hands on {taken - used}"


def test_the_top_of_the_package_is_the_tree_and_nothing_else():
    files = {path.stem for path in SRC.glob("*.py")}
    folders = {path.name for path in SRC.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert files <= TOP
    assert folders <= ROOMS
    assert {path.name for path in SRC.iterdir() if path.is_file() and path.suffix != ".py"} == {
        "py.typed"
    }


def test_nobody_outside_a_task_imports_it():
    """Tasks are found by name; what several of them share is open to datasets and config, and to
    participants, who make forms of their readers."""
    shared_with = ("tasks", "datasets", "participants", "config")
    for name in modules():
        for other in own_imports(name):
            if other.startswith("tasks._common"):
                assert name.split(".")[0] in shared_with, name
            elif other.startswith("tasks."):
                assert name.split(".")[:2] == other.split(".")[:2], f"{name} imports {other}"


def test_results_are_computed_from_the_record_alone():
    """Directly or through others, nothing that plays, configures or serves is imported."""
    reached, waiting = set(), [name for name in modules() if name.startswith("results")]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [other for other in own_imports(name) if other in modules()]
    rooms = {name.split(".")[0] for name in reached}
    later = {"config", "runs", "providers", "participants", "tasks", "report"}
    assert not rooms & later, sorted(reached)


def test_importing_all_tasks_imports_no_analysis():
    code = (
        "import sys\nfrom parley.config.task_catalogue import task_class, task_names\n"
        "for name in task_names(): task_class(name)\n"
        "print([name for name in sys.modules if name.startswith('parley.results')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_rules_and_statistics_are_pure():
    """No clock, file, network or event loop, and nothing of Parley but the base and themselves."""
    for name, path in modules().items():
        first = name.split(".")[0]
        if first in ("rules", "statistics"):
            own = {other.split(".")[0] for other in own_imports(name)}
            assert own <= {first, "errors", "options", "tables"}, f"{name} imports {own}"
            others = {other.split(".")[0] for other in imports(path)} - {"parley"}
            libraries = {
                "rules": {
                    "orjson", "fastjsonschema", "json_repair", "tree_sitter", "tree_sitter_bash",
                },
                "statistics": {"numpy"},
            }[first]  # fmt: skip
            assert others <= PURE | libraries, f"{name} imports {others - PURE}"


def test_a_match_touches_no_file_and_no_network():
    for name, path in modules().items():
        if name.split(".")[0] == "match":
            own = {other.split(".")[0] for other in own_imports(name)}
            base = {"errors", "options", "tables"}
            assert own <= {"match", "masking", "rules", *base}, f"{name} imports {own}"
            others = {other.split(".")[0] for other in imports(path)} - {"parley"}
            assert others <= PURE | {
                "asyncio",
                "contextlib",
                "contextvars",
                "orjson",
                "threading",
                "time",
            }, f"{name} imports {others - PURE}"


REGISTRIES = {"tasks", "providers", "participants"}


def test_underscores_mark_helpers_in_folders_whose_files_users_name():
    """There, every file without one is a task, a provider, a kind of participant or a
    retriever."""
    for name, path in modules().items():
        helper = path.stem.startswith("_") and path.stem not in ("__init__", "__main__")
        named = name.split(".")[0] in REGISTRIES or name.startswith("memory.retrievers.")
        assert not helper or named, name
    for name in modules():
        if len(parts := name.split(".")) == 2 and parts[0] == "participants":
            code = (SRC / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
            assert parts[1].startswith("_") or "def make(" in code, name


def test_the_rule_side_of_tasks_is_pure():
    for name, path in modules().items():
        if name.startswith("tasks.") and room(name) == "tasks":
            own = own_imports(name)
            folder = ".".join(name.split(".")[:2])
            assert all(
                other.startswith(("rules.", "tasks._common", folder, "errors")) for other in own
            ), f"{name} imports {own}"
            others = {other.split(".")[0] for other in imports(path)} - {"parley"}
            assert others <= PURE | {"orjson", "rapidfuzz", "sacrebleu"}, (
                f"{name} imports {others - PURE}"
            )


def test_the_public_names_are_these():
    assert sorted(parley.__all__) == [
        "Amount",
        "Bar",
        "Bars",
        "BotView",
        "Box",
        "Boxes",
        "Choice",
        "Code",
        "Demonstrations",
        "Ended",
        "ExactAnswer",
        "Example",
        "Fields",
        "Forfeit",
        "HeatMap",
        "Intervals",
        "Items",
        "LetterChoice",
        "Lines",
        "Metric",
        "Note",
        "OSEntry",
        "Paragraph",
        "ParleyError",
        "Part",
        "Point",
        "Problem",
        "ProgressEvent",
        "Prompt",
        "Question",
        "Reader",
        "RecordEnded",
        "Referee",
        "ReplyText",
        "Result",
        "Role",
        "RunScores",
        "Scores",
        "Screening",
        "Seat",
        "Series",
        "Share",
        "ShellScript",
        "Style",
        "Table",
        "Task",
        "TaskError",
        "Text",
        "UsageError",
        "View",
        "Vote",
        "Votes",
        "Word",
        "WordList",
        "WordPair",
        "WriterEditorPrompts",
        "ask_judges",
        "compute_overlap",
        "corpus_score",
        "load_items",
        "play_writer_and_editor",
        "quote_conversation",
        "rejudge",
        "resume",
        "run",
        "run_async",
    ]
    for name in parley.__all__:
        assert getattr(parley, name) is not None
    with pytest.raises(AttributeError):
        parley.nothing  # noqa: B018


def test_every_exception_stands_in_the_drawn_tree():
    from parley import errors

    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert name in errors.__doc__


def test_a_view_has_no_place_for_the_cast():
    shown = {
        "attempt",
        "bot_knowledge",
        "digest",
        "examples",
        "expect",
        "free",
        "round",
        "sampling_seed",
        "seat",
        "told",
    }
    assert set(View.__slots__) <= {"_length", "_turns", *shown}


def cpu(code):
    """CPU seconds of a fresh interpreter, the least of several."""
    program = (
        f"import resource, sys\n{code}\nu = resource.getrusage(resource.RUSAGE_SELF)\n"
        f"print('CPU', u.ru_utime + u.ru_stime)"
    )

    def once():
        out = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        return float(out.rsplit("CPU", 1)[1])

    return min(once() for _ in range(5))


def test_help_and_import_are_cheap():
    """In starts of a bare interpreter, which are 0.01 to 0.02 s where the bounds are 0.1 and
    0.15 s of CPU."""
    bare = cpu("pass")
    assert cpu("import parley") < 0.1 + 3 * bare
    help = "from parley.cli import command\ncommand(['--help'], standalone_mode=False)"
    assert cpu(help) < 0.15 + 3 * bare


def test_nothing_heavy_is_imported_at_the_start():
    heavy = [
        "aiohttp",
        "rich",
        "yaml",
        "scipy",
        "numpy",
        "pandas",
        "polars",
        "fastjsonschema",
        "asyncio",
        "sqlite3",
        "uvloop",
    ]
    heavy += ["sacrebleu", "lxml", "rapidfuzz"]
    code = f"import sys, parley.cli\nprint([name for name in {heavy!r} if name in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == "[]"


def test_sql_stands_only_in_the_store_and_a_cache():
    statement = re.compile(r"\b(SELECT .* FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|PRAGMA) ")
    for name, path in modules().items():
        if name.startswith(("store.sqlite", "sandbox", "memory.embedding_cache")):
            continue
        assert "sqlite3" not in imports(path), name
        if name.startswith("store."):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not statement.search(node.value), f"{name}: {node.value[:60]}"


def test_only_the_store_imports_its_driver():
    """A store is opened by `open_store`, and votes by `open_votes`."""
    for name in modules():
        if name.split(".")[0] != "store":
            assert not {
                other
                for other in own_imports(name)
                if other.startswith(("store.sqlite", "store.postgres"))
            }, name


# Module names that may occur twice: the same thing in every task's folder or registry, a command
# that carries the name of what it calls, two things that users name (a plan, a retriever, a part),
# and, in the store, its tables, its types and what a run has.
TWICE = {
    "rule", "bots", "scoring", "analysis", "annotation", "report", "audit", "rejudge",
    "_registry", "judges", "fixed", "evolve", "view", "worker", "hf", "tables", "run", "matches",
    "batches", "people", "scores", "usage", "messages", "types",
}  # fmt: skip


def test_a_module_name_stands_for_one_thing():
    names = [path.stem for path in modules().values() if path.stem != "__init__"]
    assert {name for name in names if names.count(name) > 1} <= TWICE


# Classes that are defined in several modules; none may be added. Every module of a provider defines
# `Provider`; the sandbox's inner side is a program of its own.
SHARED_CLASSES = {
    "Ended",
    "Problem",
    "Provider",
}


def test_a_class_name_stands_for_one_thing():
    found = {}
    for name, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                found.setdefault(node.name, []).append(name)
    twice = {
        name
        for name, places in found.items()
        if len(places) > 1 and not all(place.startswith("sandbox") for place in places)
    }
    assert twice <= SHARED_CLASSES, "one name for two things"


def literals(path):
    """The string literals of a file that are not docstrings, with their lines. An f-string is one
    text, with `{}` for each value in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def messages_about_the_docs():
    """Every text of the package that may name a page, with the place where it is written."""
    for path in SRC.rglob("*.py"):
        found = literals(path) if "docs" in path.read_text(encoding="utf-8") else ()
        yield from ((f"{path.relative_to(SRC)}:{line}", text) for line, text in found)
    for path in SRC.rglob("*.schema.json"):
        yield str(path.relative_to(SRC)), path.read_text(encoding="utf-8").replace('\\"', '"')


def titles_of_the_docs():
    for page in (SRC.parents[1] / "docs").rglob("*.md"):
        title = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert title, f"{page} has no title"
        yield title[1]


def test_messages_name_pages_of_the_docs_by_their_titles():
    """An installed package has no docs folder, so a message cannot name a file in it."""
    titles = set(titles_of_the_docs())
    for where, text in messages_about_the_docs():
        assert not re.search(r"docs/[\w/-]+\.md", text), f"{where} names a file of the repository"
        for title in re.findall(r'docs page "([^"]+)"', text):
            assert title in titles, f"{where}: docs/ has no page with the title {title!r}"
