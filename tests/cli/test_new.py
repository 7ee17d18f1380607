"""`parley new`: the starting point of a task passes all checks and can be played as it is."""

import pytest

from tests.cli.test_cli import parley

# files whose names are no names of classes, or are those that the game itself uses
NAMES = [
    "my_game.py",
    "auction.py",
    "choice.py",
    "role.py",
    "none.py",
    "3d-chess.py",
    "été.py",
    "_.py",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_new_task_passes_the_check(tmp_path, name):
    written = parley("new", name, cwd=tmp_path)
    assert f"check {name}" in written.err.replace("'", "")
    parley("check", name, cwd=tmp_path)


def test_a_new_task_can_be_played_by_bots_and_has_the_name_of_its_file(tmp_path):
    parley("new", "two_thirds.py", cwd=tmp_path)
    words = ["run", "two_thirds.py", "-m", "bot/thinker", "-m", "deep=bot/thinker",
             "-M", "deep.steps=3", "--set", "rounds=2", "--json"]  # fmt: skip
    done = parley(*words, cwd=tmp_path)
    assert done.json["run"]["task"] == "two_thirds"
    assert done.json["run"]["state"] == "done"
    # with two players the lower number always wins
    assert {row["alias"]: row["mean"] for row in done.json["results"]} == {"deep": 2, "thinker": 0}


def test_the_words_at_the_top_of_the_file_are_commands_that_work(tmp_path):
    parley("new", "beauty.py", cwd=tmp_path)
    lines = (tmp_path / "beauty.py").read_text(encoding="utf-8").splitlines()
    commands = [line.split()[1:] for line in lines if line.startswith("parley ")]
    assert len(commands) == 3
    for words in commands:
        parley(*words, cwd=tmp_path, env={"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("game.yaml", ".py"),
        ("game", ".py"),
        ('a".py', "letters"),
        ("no/where.py", "cannot be written"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(tmp_path, name, said):
    assert said in parley("new", name, cwd=tmp_path, code=2).err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_not_changed(tmp_path):
    (tmp_path / "mine.py").write_text("precious = 1\n")
    assert "exists" in parley("new", "mine.py", cwd=tmp_path, code=2).err
    assert (tmp_path / "mine.py").read_text() == "precious = 1\n"
