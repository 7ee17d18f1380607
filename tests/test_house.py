"""House rules: layers, public names, a fast start, nothing of the cast in a view."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import parley
from parley.pool import View

SRC = Path(parley.__file__).parent
# A module imports only from its own block or the blocks above it.
BLOCKS = [
    ["errors", "material", "parameters", "parsing", "task", "sight", "expect", "pool", "referee", "works", "writing",
     "cooperation", "numerals", "announcements", "answers", "descriptions", "scoring", "tasks"],
    ["packaged", "weights", "providers", "participants", "memory", "sandbox"],
    ["anonymity", "record", "effects", "seating", "match"],
    ["store", "plan", "items", "datasets", "config", "catalogue", "definitions", "marked", "aliases", "experiment", "prepared",
     "pace", "places", "crew", "ledger", "programs", "runs", "world", "simulation", "prices", "costs", "budget", "endings",
     "guessing", "forecast", "statistics", "transcript", "audit", "tables", "signature", "findings", "rounds", "panel", "corpus",
     "courses", "parts", "result", "eventloop", "door", "unfinished", "recorded", "rejudging", "verdicts", "outcomes",
     "crosstables", "experiment_file", "selection", "verification", "measures", "spoken", "replaying", "balance", "topics",
     "word_guesses", "external", "pairs", "legible", "annotation", "interviews"],
    ["report", "web", "export", "cli", "testing", "__main__"],
]  # fmt: skip
LEVEL = {name: level for level, names in enumerate(BLOCKS) for name in names}
PURE = {"__future__", "ast", "collections", "dataclasses", "difflib", "enum", "fractions", "functools", "hashlib", "inspect"} | {
    "itertools", "json", "math", "random", "re", "statistics", "string", "sys", "textwrap", "types", "typing", "unicodedata"
}  # fmt: skip


def modules():
    for path in sorted(SRC.rglob("*.py")):
        yield ".".join(path.relative_to(SRC).with_suffix("").parts), path


def imports(path):
    """Every module that a file imports, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: write imports out in full"
            if node.module == "parley":
                yield from (
                    f"parley.{a.name}" if (SRC / a.name).exists() or (SRC / f"{a.name}.py").exists() else "parley"
                    for a in node.names
                )
            else:
                yield node.module


@pytest.mark.parametrize(
    ("name", "path"), [(n, p) for n, p in modules() if n != "__init__"], ids=lambda x: x if isinstance(x, str) else ""
)
def test_a_module_imports_only_from_its_own_block_or_above(name, path):
    top = name.split(".")[0]
    assert top in LEVEL, f"{top} has no block: say in which layer it belongs"
    for found in imports(path):
        parts = found.split(".")
        if parts[0] == "parley" and len(parts) > 1:
            assert LEVEL[parts[1]] <= LEVEL[top], f"{name} (layer {LEVEL[top]}) imports {found} (layer {LEVEL[parts[1]]})"


@pytest.mark.parametrize("path", sorted((SRC / "tasks").glob("[!_]*.py")), ids=lambda p: p.stem)
def test_tasks_import_only_parley_scoring_and_what_has_no_effects(path):
    for found in imports(path):
        assert (
            found in ("parley", "parley.scoring", "parley.writing", "parley.answers", "parley.descriptions")
            or found.startswith("parley.scoring.")
            or found.split(".")[0] in PURE
        ), found


@pytest.mark.parametrize(
    "path", sorted([*(SRC / "statistics").glob("*.py"), *(SRC / "scoring").glob("*.py")]), ids=lambda p: p.stem
)
def test_statistics_and_scoring_stand_alone(path):
    for found in imports(path):
        inside = found.startswith(("parley.statistics", "parley.scoring", "parley.errors"))
        assert inside or not found.startswith("parley"), found


def test_the_rule_layer_touches_no_clock_file_or_network():
    for name in BLOCKS[0][:-2]:
        found = {module.split(".")[0] for module in imports(SRC / f"{name}.py")}
        assert found <= PURE | {"parley", "orjson", "fastjsonschema", "json_repair"}, f"{name} imports {found}"


def test_the_public_names_are_these():
    assert sorted(parley.__all__) == [
        "Amount", "Choice", "Code", "Demonstrations", "Example", "Fields", "Forfeit", "Metric", "Paragraph", "ParleyError",
        "Problem", "Prompt", "Question", "Reader", "RecordEnded", "Referee", "Result", "Role", "Said", "Scores", "Seat", "Sight",
        "Task", "TaskError", "Text", "UsageError", "Vetting", "View", "Word", "WordList", "WordPair", "rejudge", "resume", "run",
        "run_async",
    ]  # fmt: skip
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
    shown = {"attempt", "digest", "draw", "examples", "expect", "privy", "round", "seat"}
    assert set(View.__slots__) == {"_length", "_turns", *shown}


def cpu(code):
    """CPU seconds of a fresh interpreter, the least of several."""
    program = f"import resource, sys\n{code}\nu = resource.getrusage(resource.RUSAGE_SELF)\nprint('CPU', u.ru_utime + u.ru_stime)"

    def once():
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        return float(out.rsplit("CPU", 1)[1])

    return min(once() for _ in range(5))


def test_help_and_import_are_cheap():
    assert cpu("import parley") < 0.5
    assert (
        cpu("from click.testing import CliRunner\nfrom parley.cli import command\ncommand(['--help'], standalone_mode=False)")
        < 0.2
    )


def test_nothing_heavy_is_imported_at_the_start():
    heavy = ["aiohttp", "rich", "yaml", "scipy", "numpy", "pandas", "polars", "fastjsonschema", "asyncio", "sqlite3", "uvloop"]
    heavy += ["sacrebleu", "lxml", "rapidfuzz"]
    code = f"import sys, parley.cli\nprint([name for name in {heavy!r} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


WORDS_NOT_USED = ("manager", "handler", "helper", "utils", "engine", "agent")


@pytest.mark.parametrize(("name", "path"), list(modules()), ids=lambda x: x if isinstance(x, str) else "")
def test_names_keep_to_the_glossary(name, path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            assert not any(word in node.name.lower() for word in WORDS_NOT_USED), f"{name}: {node.name}"
            assert not node.name.startswith("get_") or node.name == "get_command", f"{name}: {node.name}"  # click's own
