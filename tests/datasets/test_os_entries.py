"""Tasks at the command line: AgentBench's layout as it is published, and what a check finds."""

import json
from functools import partial

import pytest

from parley import OSEntry, ShellScript, UsageError, load_items
from parley.datasets.catalogue import item_type_of_dataset
from parley.runs.stand_ins import fake_verdict
from parley.sandbox.executor import Sandbox
from parley.sandbox.limits import Limits
from tests.cli.test_cli import parley as command
from tests.isolation import isolated

MATCH = "import sys\nsys.exit(0 if int(sys.argv[1]) == int(sys.argv[2]) else 1)\n"
STOCK = {
    "description": " How many lines has /stock.log? ",
    "create": {"local": "default", "init": {"file": "init/stock.sh"}},
    "evaluation": {
        "check": [None, {"language": "python", "file": "check/integer-match.py"}],
        "example": {"code": "wc -l < /stock.log"},
    },
    "labels": ["log", "file"],
}
PLAIN = {
    "description": "Say hello.",
    "explanation": "It is easy.",
    "create": [None, {"file": "check/no.py"}],
    "start": "cd /tmp",
    "evaluation": {"match": "hello"},
}
SEVERAL = {
    "description": "Make /srv/x.",
    "create": {"init": ["mkdir -p /srv", {"code": "print(1)", "language": "python"}]},
    "evaluation": {"check": {"code": "test -e /srv/x"}, "example": "touch /srv/x"},
}


@pytest.fixture
def repository(tmp_path):
    """A copy of AgentBench with a few tasks in its layout."""
    root = tmp_path / "AgentBench" / "data" / "os_interaction"
    for place, content in {
        "data/1/stock.json": [STOCK, {**STOCK, "description": "And how many?"}],
        "data/7/new.json": PLAIN,  # one task, and no list
        "data/10/last.json": [SEVERAL],
        "data/dev.json": [STOCK],
        "data/6-backup.json": [PLAIN],
    }.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(json.dumps(content))
    for part in ("1", "dev"):
        for name, code in {
            "init/stock.sh": f"seq {len(part)}2 > /stock.log\n",
            "check/integer-match.py": MATCH,
        }.items():
            (root / "scripts" / part / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "scripts" / part / name).write_text(code)
    return tmp_path / "AgentBench"


@pytest.mark.parametrize("place", ["", "data/os_interaction", "data/os_interaction/data"])
def test_the_tasks_of_a_copy_of_agentbench_are_read_as_published(repository, place):
    first, second, plain, last = load_items(str(repository / place), OSEntry)
    assert [each.id for each in (first, second, plain, last)] == [
        "std-001-stock-00000",
        "std-001-stock-00001",
        "std-007-new-00000",
        "std-010-last-00000",
    ]
    assert first.description == "How many lines has /stock.log?"
    assert first.init == (ShellScript("seq 12 > /stock.log\n"),)
    assert first.checks == (None, ShellScript(MATCH, "python"))
    assert first.example == ShellScript("wc -l < /stock.log")
    assert (first.subject, first.home, first.folder) == ("log", "/root", "/")
    assert (plain.init, plain.start, plain.answer) == ((), ShellScript("cd /tmp"), "hello")
    assert last.init == (ShellScript("mkdir -p /srv"), ShellScript("print(1)", "python"))
    assert last.checks == (ShellScript("test -e /srv/x"),)


def test_a_single_file_finds_its_scripts(repository):
    (dev,) = load_items(str(repository / "data/os_interaction/data/dev.json"), OSEntry)
    assert dev.init == (ShellScript("seq 32 > /stock.log\n"),)
    first, _ = load_items(str(repository / "data/os_interaction/data/1/stock.json"), OSEntry)
    assert first.init == (ShellScript("seq 12 > /stock.log\n"),)


def test_the_named_dataset_says_where_its_files_come_from(repository, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path / "AgentBench")
    with pytest.raises(UsageError, match="PARLEY_AGENTBENCH"):
        load_items("agentbench-os", OSEntry)
    monkeypatch.setenv("PARLEY_AGENTBENCH", str(repository))
    with pytest.raises(UsageError, match="should have 144 items, but the source has 4"):
        load_items("agentbench-os", OSEntry)
    with pytest.raises(UsageError, match="should have 26 items, but the source has 1"):
        load_items("agentbench-os-dev", OSEntry)


def test_the_edition_of_inspect_evals_begins_at_its_own_home_and_names_what_is_missing(tmp_path):
    (tmp_path / "agent_bench_os_test.json").write_text(json.dumps([{**STOCK, "id": 7}]))
    (item,) = load_items(str(tmp_path / "agent_bench_os_test.json"), OSEntry)
    assert (item.id, item.home, item.folder) == ("7", "/home/agent", "/home/agent")
    assert item.init == (ShellScript("", missing="init/stock.sh"),)


def test_no_file_outside_the_folder_of_scripts_is_read(repository):
    (repository / "secret.sh").write_text("secret")
    file = repository / "data/os_interaction/data/1/stock.json"
    row = {**STOCK, "create": {"init": {"file": "../../../../secret.sh"}}}
    file.write_text(json.dumps([row]))
    (item,) = load_items(str(file), OSEntry)
    assert item.init[0].missing


@pytest.mark.parametrize(
    ("evaluation", "fields"),
    [
        ({"match": {"answer": " a", "strip": False}}, {"answer": " a", "strip": False}),
        ({"match": {"answer": "a"}}, {"answer": "a", "strip": True}),
        ({"match": {"regex": "a+"}}, {"regex": "a+", "answer": None}),
        ({"match": "a", "check": ["exit 1"]}, {"answer": "a", "checks": ()}),
    ],
)
def test_what_decides(tmp_path, evaluation, fields):
    file = tmp_path / "own.json"
    file.write_text(json.dumps([{"description": "x", "evaluation": evaluation}]))
    (item,) = load_items(str(file), OSEntry)
    assert {name: getattr(item, name) for name in fields} == fields
    assert item_type_of_dataset(str(file)) is OSEntry


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"evaluation": {}}, "neither `match` nor `check`"),
        ({"evaluation": {"check": [None]}}, "but this item has no example"),
        ({"evaluation": {"match": 3}}, "`evaluation.match` must be"),
        ({"evaluation": {"match": {"regex": "("}}}, "not a valid pattern"),
        ({"evaluation": {"match": {"regex": "(" * 900}}}, "not a valid pattern"),
        ({"evaluation": {"match": {"regex": "(" * 5000}}}, "regex has 5,000 characters"),
        ({"evaluation": {"match": {"regex": f"a{{{10**20}}}"}}}, "not a valid pattern"),
        ({"evaluation": {"check": [{"run": "x"}]}}, "`evaluation.check` must be"),
        ({"evaluation": {"match": "a"}, "create": {"init": 3}}, "`create.init` must be"),
        ({"evaluation": "a"}, "`evaluation` must be an object"),
        ({"evaluation": {"match": "a"}, "home": "../root"}, "absolute paths"),
        ({"evaluation": {"match": "a"}, "description": " "}, "description is empty"),
    ],
)
def test_what_is_wrong_with_a_row_is_said(tmp_path, row, fault):
    file = tmp_path / "own.json"
    file.write_text(json.dumps([{"description": "x", **row}]))
    with pytest.raises(UsageError, match=fault):
        load_items(str(file), OSEntry)


def test_the_commands_of_an_entry_tell_whether_it_needs_several_users():
    def needs(code):
        return OSEntry("x", "x", example=ShellScript(code), answer="1").needs_users

    assert all(map(needs, ["useradd ada", "a; su - ben", "ls | sudo tee x", "(chown a f)"]))
    assert not any(map(needs, ["ls", "summary x", "echo useradds", "cat sudoers"]))


# ---- checks

GOOD = {"id": "good", "description": "Make /srv/x.", "evaluation": SEVERAL["evaluation"]}
WRONG = {
    "init": {"create": {"init": {"code": "echo broken >&2; exit 4"}}, "check": "exit 1"},
    "init-file": {"create": {"init": {"file": "init/none.sh"}}, "check": "true"},
    "language": {"check": {"language": "c++", "code": "int main(){}"}},
    "network": {"example": "curl -s http://example.org", "check": "exit 1"},
    "time": {"check": "sleep 100"},
    "check": {"check": "echo no >&2; exit 3"},
    "check-inert": {"check": "true"},
    "time-pattern": {"match": {"regex": "^(a+)+$"}, "example": f"echo {'a' * 60}!"},
}


@isolated
def test_a_check_plays_examples_and_nothing_and_names_a_reason_for_each_failure(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("parley.tasks._common.os_machine.SECONDS", 0.5)
    monkeypatch.setattr("parley.sandbox.executor.Limits", partial(Limits, cpu=1, wall=4.0))
    rows = [GOOD]
    for name, each in WRONG.items():
        evaluation = {"example": "true", **{k: v for k, v in each.items() if k != "create"}}
        create = {"create": each["create"]} if "create" in each else {}
        rows.append({"id": name, "description": "x", "evaluation": evaluation, **create})
    (tmp_path / "own.json").write_text(json.dumps(rows))
    done = command("datasets", "check", "own.json", "--json", cwd=tmp_path, code=5)
    found = {each["id"]: each["fault"] for each in json.loads(done.out)["failed"]}
    assert found.keys() == WRONG.keys()
    for name, fault in found.items():
        assert fault.startswith(f"{name.partition('-')[0]}: "), fault
    assert "exit 4: broken" in found["init"]
    assert "init/none.sh is missing, or lies outside the folder" in found["init-file"]
    assert "exit 3: no" in found["check"]
    assert "nothing was done" in found["check-inert"]
    assert "the pattern of item time-pattern could not be matched" in found["time-pattern"]


@isolated
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_bundled_task_passes_the_check(tmp_path):
    done = command("datasets", "check", "samples", "--task", "os_tasks", cwd=tmp_path)
    assert "27 checked, 0 failed" in done.out


def test_started_by_an_ordinary_user_entries_that_need_several_say_so(tmp_path, monkeypatch):
    class OneUser(Sandbox):
        async def execute(self, program):
            return {**await fake_verdict(program), "users": False}

    monkeypatch.setattr("parley.datasets.os_checks.Sandbox", OneUser)
    row = {"description": "x", "evaluation": {"check": "id ada", "example": "useradd ada"}}
    (tmp_path / "own.json").write_text(json.dumps([row]))
    done = command("datasets", "check", "own.json", cwd=tmp_path, code=5)
    assert "1: users: this item needs several users" in done.out
    assert "run Parley as root" in done.out


# ---- what checks need


def test_an_entry_may_say_what_its_checks_need(tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps([{**SEVERAL, "needs": "processes"}]))
    (item,) = load_items(str(tmp_path / "mine.json"), OSEntry)
    assert item.needs == ("processes",)
    (tmp_path / "mine.json").write_text(json.dumps([{**SEVERAL, "needs": ["network"]}]))
    with pytest.raises(UsageError, match="needs must be a list of processes, programs, commands"):
        load_items(str(tmp_path / "mine.json"), OSEntry)


def test_published_tasks_are_marked_where_a_script_is_missing(repository):
    folder = repository / "data/os_interaction/data/5"
    folder.mkdir()
    calc = {**PLAIN, "evaluation": {"check": {"file": "checking/0.sh"}}}
    (folder / "new.json").write_text(json.dumps([calc, calc, calc, calc]))
    found = load_items(str(folder / "new.json"), OSEntry)
    assert [each.needs for each in found] == [*[("programs",)] * 3, ()]
    (repository / "new.json").write_text(json.dumps([calc]))
    (mine,) = load_items(str(repository / "new.json"), OSEntry)
    assert mine.needs == ()


@isolated
def test_unprotected_entries_are_listed_with_the_reason(tmp_path):
    marked = {
        "id": "runs",
        "description": "Write /srv/x.sh.",
        "evaluation": {
            "check": "[ $(bash /srv/x.sh) = 1 ]",
            "example": "echo echo 1 > /srv/x.sh",
        },
    }
    rows = [{**SEVERAL, "id": "plain"}, marked, {**SEVERAL, "id": "said", "needs": ["commands"]}]
    (tmp_path / "mine.json").write_text(json.dumps(rows))
    done = command("datasets", "check", str(tmp_path / "mine.json"), cwd=tmp_path)
    assert "2 of 3 entries are unprotected" in done.out
    assert "runs: programs (the check starts /srv/x.sh)" in done.out
    assert "said: commands (the data says so)" in done.out
    assert "plain:" not in done.out


def test_before_a_run_its_unprotected_items_are_counted(tmp_path):
    said = command("run", "os_tasks", "-m", "bot/idler", "--dry-run", cwd=tmp_path).err
    assert "6 of 27 items are unprotected: a model could forge these results" in said
