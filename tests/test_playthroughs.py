"""Golden transcripts: what everybody is told, kept to be reviewed as a diff. PARLEY_UPDATE=1 writes them anew."""

import os
from pathlib import Path

import pytest

from parley.catalogue import task_class
from parley.participants import make
from parley.testing import Listed, play, transcript

FOLDER = Path(__file__).parent / "playthroughs"
EXAMPLE = str(Path(__file__).parents[1] / "examples" / "prisoners_dilemma.py")
CASES = {
    "public_goods_income": ("public_goods", {"rounds": 3}, ["free-rider", "reciprocator", "gradual"]),
    "public_goods_investments": ("public_goods", {"rounds": 3, "feedback": "investments"}, ["altruist", "reciprocator", "null"]),
    "prisoners_dilemma": (EXAMPLE, {"rounds": 3}, ["tit-for-tat", "defector"]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_transcript_is_as_reviewed(name):
    reference, params, bots = CASES[name]
    kind = task_class(reference)
    (role,) = kind.roles
    seats = kind.roles[role].seats(role, len(bots))
    cast = {seat: make(f"bot/{bot}", {}, kind, bot) for seat, bot in zip(seats, bots, strict=True)}
    tape = Listed()
    text = transcript(play(kind.configured(params), cast, seed=1, record=tape), tape)
    path = FOLDER / f"{name}.txt"
    if os.environ.get("PARLEY_UPDATE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
