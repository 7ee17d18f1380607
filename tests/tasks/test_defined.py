"""The bots of task files: a judge that shows that judging runs, a writer whose strength is
known."""

import pytest

from parley import run
from parley.config.task_catalogue import task_class
from parley.tasks._common.defined import LONG
from parley.testing import check_planted, check_task
from tests.config import test_task_file as test_definitions
from tests.config.test_task_file import CHRF, EXAMPLES, ITEMS, TEXT

file = test_definitions.file
JUDGED = {"judge": "bot/judge"}


def ratings(path, models, **options):
    result = run(path, models, roles=JUDGED, plan="round_robin", **options)
    return {
        (row["alias"], row["role"]): row["mean"]
        for row in result.data["results"]
        if row["metric"] == "judge"
    }


@pytest.mark.parametrize("answers", ["", "answers: text\n"])
def test_a_judge_rates_by_the_measure(file, tmp_path, answers):
    path = file(TEXT + ITEMS + CHRF + answers)
    models = {"a": "bot/writer", "b": "bot/random"}
    result = run(path, models, roles=JUDGED, store=tmp_path / "runs", rounds=2)
    means = {
        (row["alias"], row["role"], row["metric"]): row["mean"] for row in result.data["results"]
    }
    judged = {key: mean for key, mean in means.items() if key[2] == "judge"}
    assert len(judged) == 4
    for (alias, role, _), mean in judged.items():
        assert mean == pytest.approx(1 + 9 * means[alias, role, "chrf"], abs=0.01)


def test_without_a_measure_it_rates_by_length(file, tmp_path):
    models = {"long": lambda view: "x" * (LONG + 100), "half": lambda view: "x" * (LONG // 2)}
    found = ratings(file(TEXT + ITEMS), models, store=tmp_path / "runs")
    assert {alias: found[alias, role] for alias, role in found} == {"long": 10, "half": 5.5}


def test_a_stronger_writer_writes_and_edits_better():
    kind = task_class(str(EXAMPLES / "summary.yaml"))
    order = ["bot/writer:strength=0.9", "bot/writer:strength=0.2"]
    check_planted(kind(), order, items=kind.items.bundled, only="writer", runs=20)
    check_planted(
        kind(), order, items=kind.items.bundled, only="editor", metric="improvement", runs=20
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["poem", "summary"])
def test_the_examples_conform(name):
    kind = task_class(str(EXAMPLES / f"{name}.yaml"))
    check_task(kind(), items=kind.items.bundled, seeds=(1,))


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("{subject}", "rain"),
        TEXT + ITEMS,
        TEXT + ITEMS.replace("The rain falls on the roof.", "雨落在屋顶上"),
    ],
)
def test_the_writer_plays_every_such_task(file, tmp_path, text):
    result = run(
        file(text),
        {"a": "bot/writer", "b": "bot/null"},
        roles=JUDGED,
        rounds=3,
        store=tmp_path / "runs",
    )
    assert result.state == "done"
    assert not result.data["violations"]
