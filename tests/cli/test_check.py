"""`parley check` and `--traceback`: what an author of a task sees."""

import pytest

from tests.cli.test_cli import EXAMPLE, parley
from tests.config.test_task_catalogue import GAME


def test_a_task_is_checked_by_its_path(tmp_path):
    done = parley("check", EXAMPLE, cwd=tmp_path)
    assert "a match resumed at any point ends the same way" in done.out
    assert "prisoners_dilemma passed all checks" in done.err
    data = parley("check", EXAMPLE, "--set", "rounds=1", "--json", cwd=tmp_path).json
    assert data["task"] == "prisoners_dilemma"
    assert data["checks"]["scored"] > 0


def test_what_is_wrong_with_it_is_one_message(tmp_path):
    (tmp_path / "coin.py").write_text(GAME.replace("dict.fromkeys(players, 1)", "{players[0]: 1}"))
    done = parley("check", "coin.py", cwd=tmp_path, code=1)
    assert "coin: Player 2 has no score in any match" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("bot/breaks", "bot/breaks failed: KeyError: 'a' (coin.py, line"),
        ("bot/null", "KeyError: 'b' (coin.py, line 13)"),
    ],
)
def test_the_line_of_a_bot_or_rule_is_in_the_message_and_traceback_shows_all(model, said, tmp_path):
    source = GAME.replace("return dict.fromkeys(players, 1)", 'return {}["b"]')
    source += 'def breaks(bot):\n    return {}["a"]\n\nCoin.bots = {"breaks": breaks}\n'
    (tmp_path / "coin.py").write_text(source)
    done = parley("run", "coin.py", "-m", model, "--repeats", 1, cwd=tmp_path, code=None)
    assert said in done.err
    assert "run the command with --traceback to see the full traceback" in done.err
    assert "Traceback (most" not in done.err
    done = parley(
        "run", "coin.py", "-m", model, "--repeats", 1, "--traceback", cwd=tmp_path, code=None
    )
    assert "Traceback (most recent call last)" in done.err
    assert 'coin.py", line' in done.err


def test_a_bot_of_the_task_that_raises_does_not_pass(tmp_path):
    source = f"{GAME}\ndef half(bot):\n    return HALF\n\nCoin.bots = {{'half': half}}\n"
    (tmp_path / "coin.py").write_text(source)
    done = parley("check", "./coin.py", cwd=tmp_path, code=1)
    assert "coin: bot/half failed: NameError: name 'HALF' is not defined (coin.py" in done.err
    (tmp_path / "coin.py").write_text(source.replace("HALF", "'5'"))
    assert parley("check", "./coin.py", "--json", cwd=tmp_path).json["checks"]["bots"] == 6


def test_a_run_goes_on_after_its_bot_was_mended_and_not_under_another_rule(tmp_path):
    game = tmp_path / "coin.py"
    source = f"{GAME}\ndef half(bot):\n    return HALF\n\nCoin.bots = {{'half': half}}\n"
    game.write_text(source)
    cast = ("-m", "bot/half", "-m", "bot/null", "--repeats", 1, "--name", "first")
    done = parley("run", "./coin.py", *cast, cwd=tmp_path, code=3)
    assert "fix the code, then resume with: parley resume" in done.err
    assert "--task ./coin.py" in done.err
    game.write_text(source.replace("HALF", "'5'").replace("players, 1)", "players, 0)"))
    assert (
        "If the task's rule has changed, start a new run"
        in parley("resume", "first", cwd=tmp_path, code=2).err
    )
    done = parley("resume", "first", "--task", "./coin.py", cwd=tmp_path, code=None)
    assert "was started with another rule of coin: undo the change" in done.err
    game.write_text(source.replace("HALF", "'5'"))
    done = parley("resume", "first", "--task", "./coin.py", cwd=tmp_path)
    assert "the bots of the task coin have changed since this run started" in done.err
    found = parley("audit", "first", "--json", "--task", "./coin.py", cwd=tmp_path).json
    assert found["breaches"] == []
    assert found["checked"]["replay"] == 1


def test_a_misspelt_command_gets_the_nearest_name(tmp_path):
    assert "Did you mean 'show'?" in parley("shwo", cwd=tmp_path, code=2).err


def test_counts_of_one_are_said_as_one(tmp_path):
    (tmp_path / "coin.py").write_text(GAME)
    done = parley("run", "coin.py", "-m", "bot/null", "--dry-run", "--repeats", 1, cwd=tmp_path)
    assert (
        "estimate for 1 match: 1 call (about 1 of them to bots or people, free of charge)"
        in done.out
    )
    done = parley("run", "public_goods", "-m", "bot/null", cwd=tmp_path, code=2)
    assert "but you named 1 model (you can name a model twice" in done.err
