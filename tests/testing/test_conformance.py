"""The conformance suite: every task passes it, and every planted mistake is caught."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from parley import TaskError, UsageError
from parley.config import task_catalogue
from parley.datasets.catalogue import load_items
from parley.testing import check_provider, check_task, load_task
from tests import games

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(map(str, [*FOLDER.glob("*.py"), FOLDER / "poem.yaml", FOLDER / "summary.yaml"]))


@pytest.mark.parametrize(
    "reference", [*task_catalogue.task_names(), *EXAMPLES], ids=lambda r: Path(r).stem
)
@pytest.mark.parametrize(
    "seeds", [(1,), pytest.param((2, 3), marks=pytest.mark.slow)], ids=["one seed", "more seeds"]
)
def test_every_task_of_ours_passes(reference, seeds):
    task = task_catalogue.task_class(reference).from_params({})
    items = ()
    if task.items is not None:
        items = task.items.bundled or load_items("samples", task.items.type)[:4]
    done = check_task(task, items=items, seeds=seeds)
    assert set(done) >= {
        "repeatable",
        "resumable",
        "growing",
        "patient",
        "anonymous",
        "enduring",
        "elsewhere",
    }


def test_both_modes_of_the_public_goods_game_pass():
    task = task_catalogue.task_class("public_goods")
    check_task(task.from_params({"feedback": "investments", "rounds": 2}), seeds=(5,))


@pytest.mark.parametrize(
    "task", [games.Echo(), games.Judged(), games.Duel(), games.Running()], ids=lambda t: t.name
)
def test_tasks_with_judges_quotations_and_programs_pass(task):
    check_task(task, seeds=(1,))


def test_a_task_with_items_is_checked_on_them():
    check_task(
        games.Spelling(), items=[games.Word("1", "cat"), games.Word("2", "horse")], seeds=(1, 2)
    )
    with pytest.raises(TaskError, match="no bundled samples of Word: pass some"):
        check_task(games.Spelling())


def test_a_task_with_bundled_items_is_checked_on_these():
    assert check_task(games.Bundled(), seeds=(1,))["repeatable"] == 1


def test_a_seat_without_a_score_is_found():
    with pytest.raises(TaskError, match="Player 2 has no score in any match"):
        check_task(games.ForgetsSecond(), seeds=(1, 2))
    with pytest.raises(TaskError, match="Player 1 never gets a score 'style', but Player 2 always"):
        check_task(games.ForgetsMetric(), seeds=(1, 2))


@pytest.mark.parametrize("name", games.BAD)
def test_a_planted_mistake_is_caught(name):
    with pytest.raises(TaskError, match=games.BAD[name]):
        check_task(getattr(games, name)(), seeds=(1,))


def test_a_task_inside_a_function_cannot_be_checked_elsewhere():
    class Inner(games.Echo):
        pass

    with pytest.raises(TaskError, match="top level of a file"):
        check_task(Inner(), seeds=(1,))


def test_a_task_is_loaded_by_name_or_path_with_its_parameters():
    assert load_task("public_goods", rounds=3).rounds == 3
    assert load_task(str(FOLDER / "prisoners_dilemma.py")).name == "prisoners_dilemma"
    with pytest.raises(UsageError, match=r"public_gods.*did you mean.*public_goods"):
        load_task("public_gods")
    with pytest.raises(UsageError, match="ronds"):
        load_task("public_goods", ronds=3)


def test_a_class_that_is_no_provider_is_refused_with_what_it_lacks():
    with pytest.raises(UsageError, match=r"Half must have the method `async def complete"):
        check_provider(Half)


@dataclass
class Half:
    name: str
