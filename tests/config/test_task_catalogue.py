"""Tasks of files and of other packages: what is wrong with one is said with its line, and breaks
nothing else."""

import pytest

import parley as library
from parley import TaskError, UsageError
from parley.config.prompt_variables import check_prompt_variables
from parley.config.task_catalogue import installed_tasks, task_class, task_names
from tests.cli.test_cli import EXAMPLE, parley

GAME = """from dataclasses import dataclass
from parley import Choice, Metric, Prompt, Role, Task

@dataclass(frozen=True)
class Coin(Task):
    "Guess."

    rounds: int = 1
    roles = {"players": Role(1, 2)}

    async def play(self, referee, players):
        await referee.ask(players, referee.render(TURN, number=1))
        return dict.fromkeys(players, 1)

    def metrics(self, seats):
        return [Metric("hits", 0, 3, epsilon=1)]

TURN = Prompt("turn", "Toss {number} of {rounds}.")
"""


@pytest.fixture
def game(tmp_path):
    """Write a task file, changed in one place."""

    def write(old="", new="", name="coin.py"):
        assert old in GAME
        (tmp_path / name).write_text(GAME.replace(old, new))
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rounds: int = 1", "rounds: int = one", r"NameError: name 'one' .* \(coin.py, line 8\)"),
        (
            "class Coin(Task):",
            "class Coin(Task:",
            r"SyntaxError: [\w ]+ \(coin.py, line 5\)$",
        ),
        ("rounds: int", "repeat = 1; rounds: int", r"^coin.py, line 5: Coin.repeat has no effect"),
        ("@dataclass(frozen=True)", "", r"write @dataclass\(frozen=True\) above `class Coin`"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(game, old, new, said):
    with pytest.raises((UsageError, TaskError), match=said):
        task_class(game(old, new))


def test_a_variable_that_nothing_fills_in_is_an_error_before_the_first_call(game, tmp_path):
    path = game("Toss {number}", "Toss {nubmer}")
    said = parley("run", path, "-m", "bot/null", cwd=tmp_path, code=1).err
    assert "coin.py, line 12: prompt 'turn' uses the variable {nubmer}" in said
    assert "did you mean {number}?" in said
    assert not (tmp_path / "runs").exists()


def test_prompts_in_a_dict_are_looked_at_and_values_passed_on_are_not(game):
    words = 'TURN = {"a": Prompt("a", "{number}"), "b": Prompt("b", "{other}")}\n'
    line = 'TURN = Prompt("turn", "Toss {number} of {rounds}.")\n'
    path = game(line, words, "several.py")
    text = (GAME.replace(line, words)).replace("render(TURN,", 'render(TURN["a"],')
    with open(path, "w") as file:
        file.write(text)
    with pytest.raises(TaskError, match=r"prompt 'b' uses the variable \{other\}"):
        check_prompt_variables(task_class(path))
    with open(path, "w") as file:
        file.write(text.replace("number=1", '**{"other": 1}'))
    check_prompt_variables(task_class(path))


@pytest.mark.parametrize("name", [*task_names(), EXAMPLE])
def test_the_prompts_of_our_tasks_have_all_their_variables(name):
    check_prompt_variables(task_class(name))


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Install a package with one task."""

    def install(source, name, value="Coin"):
        place = tmp_path / f"site-{name}"
        facts = place / f"package_{name}-1.dist-info"
        facts.mkdir(parents=True)
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pack-{name}\nVersion: 1\n")
        module = f"{tmp_path.name}_{name}".replace("-", "_")
        (facts / "entry_points.txt").write_text(f"[parley.tasks]\n{name} = {module}:{value}\n")
        (place / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(place)

    return install


@pytest.mark.parametrize(
    ("source", "value", "said"),
    [
        ("1 / 0\n", "Coin", "task broken cannot be loaded: ZeroDivisionError"),
        ("raise SystemExit(3)\n", "Coin", "SystemExit"),
        (GAME, "Toss", "AttributeError"),
        (GAME, "TURN", "is not a subclass of parley.Task"),
        (GAME.replace("@dataclass(frozen=True)", ""), "Coin", "write @dataclass"),
    ],
)
def test_one_broken_task_breaks_no_list(source, value, said, installed, tmp_path):
    installed(source, "broken", value)
    for words in (["tasks"], ["models"]):
        done = parley(*words, "--json", cwd=tmp_path)
        assert said in done.err
        assert "public_goods" in done.out
    parley(
        "run", "public_goods", "-m", "bot/null", "-m", "bot/random", "--repeats", 1, cwd=tmp_path
    )
    parley("show", "last", "--part", "topics", cwd=tmp_path)
    with pytest.raises((UsageError, TaskError), match=said):
        task_class("broken")


def test_an_installed_task_is_found_and_never_replaces_one_of_ours(installed):
    installed(GAME, "coin")
    assert task_class("coin").__name__ == "Coin"
    installed(GAME, "public_goods")
    assert task_class("public_goods").__name__ == "PublicGoods"
    _, faults = installed_tasks()
    assert faults == [
        "the task public_goods from the package pack-public_goods is ignored, because Parley "
        "itself has a task with this name: rename the task in the package"
    ]


def test_a_file_named_like_a_task_of_ours_does_not_break_a_report(game, tmp_path):
    path = game("class Coin", "class Kieval", "kieval.py")
    parley("run", path, "-m", "bot/null", "-m", "bot/random", "--repeats", 2, cwd=tmp_path)
    assert "hits" in parley("report", "last", cwd=tmp_path).out
    result = library.run(task_class(path)(), ["bot/null"], repeats=1, store=tmp_path / "runs")
    assert "hits" in parley("report", result.path, cwd=tmp_path).out


def test_two_parts_of_one_name_are_found_before_anything_is_played(game, tmp_path):
    path = game(
        "    async def play",
        "    parts = 'coin_parts:PARTS'\n\n    async def play",
    )
    (tmp_path / "coin_parts.py").write_text(
        "from dataclasses import dataclass\nfrom parley import Part\n"
        "@dataclass(frozen=True)\nclass Row:\n    a: int\n"
        "ONE = Part('one', 'One', Row, lambda run: None, lambda found, style: [])\n"
        "PARTS = (ONE, Part('one', 'Two', Row, lambda run: None, lambda found, style: []))\n"
    )
    env = {"PYTHONPATH": str(tmp_path)}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        said = parley("run", path, "-m", "bot/null", cwd=tmp_path, env=env, code=1).err
    assert "coin: the task has two parts named `one`" in said
    assert not (tmp_path / "runs").exists()
