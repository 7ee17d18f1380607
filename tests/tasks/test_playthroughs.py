"""Golden transcripts: what everybody is told, kept to be reviewed as a diff. PARLEY_UPDATE=1 writes
them anew."""

import os
from pathlib import Path

import pytest

from parley.config.task_catalogue import task_class
from parley.datasets.catalogue import load_items
from parley.participants._registry import make_participant
from parley.runs.stand_ins import fake_verdict
from parley.testing import Listed, play, transcript

FOLDER = Path(__file__).parent / "playthroughs"
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "prisoners_dilemma.py")
CASES = {
    "public_goods_income": (
        "public_goods",
        {"rounds": 3},
        ["free-rider", "reciprocator", "gradual"],
    ),
    "public_goods_investments": (
        "public_goods",
        {"rounds": 3, "feedback": "investments"},
        ["altruist", "reciprocator", "null"],
    ),
    "prisoners_dilemma": (EXAMPLE, {"rounds": 3}, ["tit-for-tat", "defector"]),
    "translation": ("translation", {}, ["translator", "translator", "judge"]),
    "translation_in_rounds": (
        "translation",
        {"rounds": 3, "pair": "en-fr"},
        ["forger", "translator", "judge"],
    ),
    "qa": ("qa", {"shots": 0}, ["student"]),
    "kieval": ("kieval", {"rounds": 2}, ["candidate", "interactor", "evaluator"]),
    "word_guessing": ("word_guessing", {"rounds": 2}, ["guesser", "guesser"]),
    "word_guessing_open": (
        "word_guessing",
        {"rounds": 2, "open_guesses": True},
        ["guesser", "injector", "guesser", "guesser"],
    ),
    "code_review": ("code_review", {"rounds": 2}, ["coder", "coder", "judge"]),
    "os_tasks": ("os_tasks", {}, ["solver"]),
    "poem": (str(FOLDER.parents[2] / "examples" / "poem.yaml"), {}, ["null", "injector", "random"]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_transcript_is_as_reviewed(name):
    reference, params, bots = CASES[name]
    kind = task_class(reference)
    each = len(bots) if len(kind.roles) == 1 else 1
    seats = [seat for name, role in kind.roles.items() for seat in role.seats(name, each)]
    task = kind.from_params(params)
    items = [None]
    if kind.items is not None:
        items = kind.items.bundled or load_items("samples", kind.items.type)
    item = next(item for item in items if item is None or not task.reject_reason(item))
    cast = {
        seat: make_participant(f"bot/{bot}", {}, kind, bot)
        for seat, bot in zip(seats, bots, strict=True)
    }
    tape = Listed()
    text = transcript(
        play(
            task,
            cast,
            seed=1,
            item=item,
            record=tape,
            execute=fake_verdict if task.runs_code else None,
        ),
        tape,
    )
    path = FOLDER / f"{name}.txt"
    if os.environ.get("PARLEY_UPDATE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
