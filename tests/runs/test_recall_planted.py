"""What is planted is found: a learner gains, a student does not, and a copier only gains what it
copies."""

import random

import pytest

import parley
from parley.rules.items.question import Question

SETTINGS = {"retriever": "bm25", "k": 3, "stages": 3}


def questions(count, seed=0):
    rng, found = random.Random(seed), []
    for number in range(count):
        subject = f"subject{number % 16}"
        words = f"In {subject}, what is thing {number} of {rng.randrange(10**6)}?"
        choices = tuple(f"{word} {number}" for word in ("stone", "river", "cloud", "ember"))
        found.append(Question(f"q{number}", words, rng.choice("ABCD"), choices, subject))
    return found


def gains(result):
    """By model and arm: the paired gain of the last stage over the standard one, with its
    interval."""
    return {
        (row.alias, f"{row.arm}/probe" if row.kind == "probe" else row.arm): (
            row.gain.value,
            row.gain.low,
            row.gain.high,
        )
        for row in result.part("evolve").gains
        if row.kind in ("last", "probe")
    }


@pytest.mark.slow
def test_what_was_planted_in_512_items_is_found(tmp_path):
    models = ["bot/student", "bot/learner", "bot/copier"]
    options = {f"{name.rpartition('/')[2]}": {"model": name, "knowledge": 0.4} for name in models}
    result = parley.run(
        "qa", options, items=questions(512), evolve=SETTINGS, shots=0, store=tmp_path, seed=3
    )
    found = gains(result)
    assert found["learner", "evolve"][1] > 0
    assert found["learner", "evolve/probe"][1] > 0
    for arm in ("evolve", "evolve/probe"):
        _, low, high = found["student", arm]
        assert low <= 0 <= high
    mean, low, _ = found["copier", "evolve"]
    assert mean >= 0.2
    assert low > 0
    _, low, high = found["copier", "evolve/probe"]
    assert low <= 0 <= high


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", [0, 100, 200, 300])
def test_over_many_seeds_a_learner_is_found_and_a_student_is_not(tmp_path, first):
    """Of 400 seeds: the learner in 380 or more, the student in 28 or fewer."""
    options = {name: {"model": f"bot/{name}", "knowledge": 0.4} for name in ("learner", "student")}
    settings, learners, students = {**SETTINGS, "probe": False}, 0, 0
    for seed in range(first, first + 100):
        result = parley.run(
            "qa",
            {name: {**each, "memory": seed} for name, each in options.items()},
            items=questions(128, seed),
            evolve=settings,
            shots=0,
            seed=seed,
            store=tmp_path,
        )
        found = gains(result)
        learners += found["learner", "evolve"][1] > 0
        _, low, high = found["student", "evolve"]
        students += not low <= 0 <= high
        result.path.unlink()
    print(f"seeds {first} to {first + 99}: learner found {learners}, student {students}")
    assert learners >= 95
    assert students <= 10  # 28 of 400 is 7 of 100; the share of a hundred scatters
