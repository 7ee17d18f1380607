"""The documentation runs: its Python blocks, its commands, and the help texts that it holds."""

import inspect
import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from pkgutil import resolve_name

import click
import pytest

import parley
from parley.cli import COMMANDS, Lazy, command
from parley.config import models_file
from parley.providers import _registry as providers
from parley.providers._endpoint import Endpoint
from tests.forked import run_command, run_program

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if page not in DECISIONS),
]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(language):
    return [
        pytest.param(page, body, id=f"{page.relative_to(ROOT).with_suffix('')}-{number}")
        for page in PAGES
        for number, (tag, body) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1)
        if tag == language
    ]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.parametrize(("page", "body"), blocks("python"))
def test_python_blocks_run(place, page, body):
    (place / "block.py").write_text(body)
    done = run_program(place / "block.py", cwd=place, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_tutorial_shows_the_example_that_it_builds():
    """The page has the whole file, and each fragment is a part of it."""
    example = (ROOT / "examples" / "auction.py").read_text(encoding="utf-8")
    task, part = ((DOCS / "extend" / page).read_text("utf-8") for page in ("task.md", "part.md"))
    assert f"```python\n{example}```" in task
    lines = [line.strip() for line in example.splitlines()]
    fragments = re.findall(r"``` { \.python \.fragment }\n(.*?)```", task + part, re.DOTALL)
    assert len(fragments) > 10
    for fragment in fragments:
        wanted = [line.strip() for line in fragment.strip().splitlines()]
        starts = [at for at, line in enumerate(lines) if line == wanted[0]]
        assert any(lines[at : at + len(wanted)] == wanted for at in starts), fragment


def test_the_python_example_of_the_readme_ends_in_a_clear_ranking(place, monkeypatch):
    monkeypatch.chdir(place)
    tags = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    ((_, body),) = [block for block in tags if block[0] == "python"]
    names = {}
    exec(body, names)
    ranks = [(rank.alias, rank.low, rank.high) for rank in names["result"].head.ranks]
    assert ranks == [("rider", 1, 1), ("noise", 2, 2), ("mine", 3, 3)]


# Modules that users may import besides `parley`; docs/reference/python.md lists them.
PUBLIC = {
    "parley.annotation.pair_ballots", "parley.annotation.sheets", "parley.annotation.study",
    "parley.annotation.verdict_ballots",
    "parley.datasets", "parley.errors", "parley.match.protocol", "parley.memory",
    "parley.results.part",
    "parley.results.types", "parley.rules.pool", "parley.sandbox.shell", "parley.statistics",
    "parley.store", "parley.store.types", "parley.testing", "parley.testing.batch_server",
    "parley.testing.server",
}  # fmt: skip


def test_docs_and_examples_import_only_public_modules():
    texts = {page.name: BLOCK.findall(page.read_text(encoding="utf-8")) for page in PAGES}
    texts |= {
        path.name: [("python", path.read_text(encoding="utf-8"))]
        for path in (ROOT / "examples").glob("*.py")
    }
    found = {
        (name, module)
        for name, bodies in texts.items()
        for language, body in bodies
        if language == "python"
        for module in re.findall(r"^\s*(?:from|import) (parley[\w.]*)", body, re.MULTILINE)
    }
    assert len(found) > 20
    statistics = re.compile(r"parley\.statistics\.\w+")
    wrong = {
        (name, module)
        for name, module in found
        if module not in PUBLIC | {"parley"} and not statistics.fullmatch(module)
    }
    assert wrong == set()
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    assert not {module for module in PUBLIC if f"`{module}`" not in page}


def in_shell(line, place):
    """Run a line as a reader would, with the installed command."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        line, shell=True, cwd=place, env=env, capture_output=True, text=True, check=False
    )


# one command: what a pipe brings to it, its words without a sign of the shell's, where it prints to
PLAIN = re.compile(r"(?:([^|]+(?:\| [^p|][^|]*)*)\| )?parley ([^|;&<>$`\\*?~]+)(?:> (\S+))?")


def run_line(line, place):
    """Run a line of a console block: a plain `parley …` in a process that need not start Python,
    everything else in a shell."""
    if (plain := PLAIN.fullmatch(line)) is None:
        return in_shell(line, place)
    before, words, into = plain.groups()
    stdin = in_shell(before, place).stdout if before else ""
    done = run_command(*shlex.split(words), cwd=place, stdin=stdin)
    if into:
        (place / into).write_text(done.stdout, encoding="utf-8")
        done.stdout = ""
    return done


CONSOLE = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
EXCERPT = re.compile(r"```\n\n```text\n(.*?)```", re.DOTALL)


def pages_with_console_blocks():
    for page in PAGES:
        if CONSOLE.search(page.read_text(encoding="utf-8")):
            yield pytest.param(page, id=str(page.relative_to(ROOT).with_suffix("")))


@pytest.mark.parametrize("page", list(pages_with_console_blocks()))
def test_console_blocks_run_and_print_what_they_show(place, page):
    """The blocks of a page run in one folder, in order. With PARLEY_UPDATE=1 the page gets what the
    commands print now. A text block right after a console block is an excerpt from what the last
    command prints: each line is a part of a printed line."""

    def run_block(block):
        found = ""
        for part in re.split(r"^\$ ", block[0], flags=re.MULTILINE)[1:]:
            line, _, shown = part.partition("\n")
            done = run_line(line, place)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            found += f"$ {line}\n{done.stdout if shown.strip() else shown}"
        if excerpt := EXCERPT.match(text, block.end()):
            printed = [" ".join(each.split()) for each in done.stdout.splitlines()]
            for each in excerpt[1].splitlines():
                assert any(" ".join(each.split()) in other for other in printed), each
        return found

    text = page.read_text(encoding="utf-8")
    found = CONSOLE.sub(run_block, text)
    if os.environ.get("PARLEY_UPDATE"):
        page.write_text(found, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == found


TEXTS = [
    *PAGES,
    ROOT / "CONTRIBUTING.md",
    *DECISIONS,
    *sorted((ROOT / "src").rglob("*.py")),
]
NAMED = re.compile(r"`(parley(?:\.[A-Za-z_]\w*)+)`")
GROUPS = {"parley.retrievers"}  # entry-point groups that are not modules, too


def test_every_module_and_function_that_a_text_names_exists():
    texts = {path: path.read_text(encoding="utf-8") for path in TEXTS}
    named = {(name, path) for path, text in texts.items() for name in NAMED.findall(text)}
    assert len(named) > 20
    assert [f"{path.relative_to(ROOT)}: {name}" for name, path in named if not exists(name)] == []


def test_decisions_have_a_date_a_status_and_a_place_in_the_index():
    index = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    for number, page in enumerate(sorted((DOCS / "decisions").glob("0*.md")), 1):
        title, _, dated = page.read_text(encoding="utf-8").splitlines()[:3]
        assert title.startswith(f"# {number}. ")
        assert re.match(r"Date: 20\d\d-\d\d-\d\d\. Status: \w+", dated), page.name
        assert f"| {number} | [{title.partition('. ')[2]}]({page.name}) |" in index, page.name


def exists(name):
    """Whether a dotted name is a module, something in a module or class, or a group of entry
    points."""
    if name in GROUPS:
        return True
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def help_page():
    """docs/reference/command.md, from the commands themselves."""
    parts = [
        "# The command\n\nThis page is generated from the command's own help "
        "(`PARLEY_UPDATE=1 make test`).\n"
    ]
    with click.Context(
        command, info_name="parley", terminal_width=110, **command.context_settings
    ) as top:
        parts.append(f"```\n{command.get_help(top)}\n```\n")
        for name in COMMANDS:
            assert isinstance(command, Lazy)
            found = command.get_command(top, name)
            with click.Context(
                found, info_name=name, parent=top, max_content_width=110, terminal_width=110
            ) as context:
                parts.append(f"## parley {name}\n\n```\n{found.get_help(context)}\n```\n")
                for under, each in getattr(found, "commands", {}).items():
                    with click.Context(
                        each,
                        info_name=under,
                        parent=context,
                        max_content_width=110,
                        terminal_width=110,
                    ) as inner:
                        parts.append(
                            f"## parley {name} {under}\n\n```\n{each.get_help(inner)}\n```\n"
                        )
    return "\n".join(parts)


def test_the_page_of_the_command_is_its_help():
    page = DOCS / "reference" / "command.md"
    if os.environ.get("PARLEY_UPDATE"):
        page.write_text(help_page(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == help_page()


def test_the_page_of_participants_names_every_provider_with_its_key_address_and_options():
    page, pages = (
        (DOCS / "guides" / "models.md").read_text(encoding="utf-8"),
        ("embedded_models.md", "local_models.md"),
    )
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (.*)$", page, re.MULTILINE))
    shared = {each.name for each in fields(Endpoint)}
    for name in providers.provider_names():
        made, row = providers.provider_class(name), rows[name]
        lists = "".join(
            (DOCS / "guides" / other).read_text(encoding="utf-8") for other in pages if other in row
        )
        of_openai = (
            {each.name for each in fields(providers.provider_class("openai"))}
            if "those of `openai`" in row
            else set()
        )
        own = (
            {each.name for each in fields(made) if each.init and each.name != "name"}
            - (set() if lists else shared)
            - of_openai
        )
        for wanted in [
            *own,
            *filter(
                None,
                [providers.provider_traits(name).key_env, providers.provider_traits(name).home_env],
            ),
        ]:
            assert f"`{wanted}`" in (lists or row), f"{name}: {wanted}"


def test_the_pages_of_runs_and_python_name_every_key_and_keyword():
    runs, python = (
        (DOCS / page).read_text(encoding="utf-8")
        for page in ("reference/experiment_file.md", "reference/python.md")
    )
    for key in models_file.experiment_schema()["properties"]:
        assert re.search(rf"^{key}:|`{key}`", runs, re.MULTILINE), key
    for name, keyword in inspect.signature(parley.run).parameters.items():
        if keyword.kind is keyword.KEYWORD_ONLY:
            assert f"`{name}`" in python, name


# what the repository says about itself
PROSE = [*PAGES, *DECISIONS, *(page for page in sorted(ROOT.glob("*.md")) if page not in PAGES)]


def test_links_between_pages_lead_somewhere():
    """Pages of the repository are linked by relative paths, which work in every checkout."""
    for page in PROSE:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith("https://"):
                assert (page.parent / target).exists(), f"{page.name} → {target}"


def test_paths_that_pages_name_exist():
    """The site has only docs/, so its pages name other files of the repository without a link."""
    path = re.compile(r"`((?:benchmarks|examples|src|tests)/[\w./-]+)`")
    named = {(page, name) for page in PROSE for name in path.findall(page.read_text("utf-8"))}
    assert len(named) > 20
    assert [f"{page.name}: {name}" for page, name in named if not (ROOT / name).exists()] == []


def test_no_file_names_an_address_of_the_project():
    """Only pyproject.toml has a place for one."""
    settings = [ROOT / "mkdocs.yml", ROOT / "CITATION.cff", *(ROOT / ".github").rglob("*.yml")]
    sources = [
        each for each in (ROOT / "src").rglob("*") if each.suffix in {".py", ".json", ".html"}
    ]
    address = re.compile(r"https?://[^\s)\]\"'<>]*parley[^\s)\]\"'<>]*", re.IGNORECASE)
    for path in [*PROSE, *settings, *sources]:
        assert address.findall(path.read_text(encoding="utf-8")) == [], path
