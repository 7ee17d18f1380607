"""Runs that evolve: what seats are shown, what is on record, and that nothing depends on order."""

import random
from collections import defaultdict

import pytest

import parley
from parley.errors import UsageError
from parley.rules.items import Question
from parley.store import read_run

BM25 = {"retriever": "bm25", "k": 2}


def questions(count, subjects=4, seed=0):
    rng, found = random.Random(seed), []
    for number in range(count):
        subject = f"subject{number % subjects}"
        words = f"In {subject}, what is thing {number} of {rng.randrange(10**6)}?"
        choices = tuple(f"{word} {number}" for word in ("stone", "river", "cloud", "ember"))
        answer = rng.choice("ABCD")
        found.append(Question(f"q{number}", words, answer, choices, subject))
    return found


def evolve(tmp_path, models=("bot/copier",), count=12, **options):
    settings = {**BM25, **options.pop("evolve", {})}
    options = {"items": questions(count), "shots": 0, "store": tmp_path, **options}
    return parley.run("qa", models, evolve=settings, **options)


def rows(result):
    with read_run(result.ref) as reader:
        matches = {match.number: match for match in reader.matches()}
        return matches, list(reader.recalled()), reader.scores_by_match()


def accuracy(result):
    """The mean by arm and stage."""
    matches, _, scores = rows(result)
    found = defaultdict(list)
    for number, by in scores.items():
        for marks in by.values():
            found[matches[number].arm, matches[number].stage].append(marks["accuracy"])
    return {key: sum(values) / len(values) for key, values in found.items()}


def test_every_experience_shown_is_the_owners_own_and_from_an_earlier_stage(tmp_path):
    models = {"one": "bot/copier", "two": "bot/student"}
    settings = {"rounds": 2, "arms": {"plain": {}, "near": {"scope": "subject"}}}
    result = evolve(tmp_path, models, evolve=settings, repeats=2)
    matches, recalled, scores = rows(result)
    assert recalled
    for row in recalled:
        match = matches[row.match]
        (seat,) = match.seats
        assert row.seat == seat.key
        for shown in row.shown:
            source = matches[shown.match]
            assert source.seats == match.seats
            assert source.repeat == match.repeat
            assert source.stage < match.stage
            assert source.arm in ("", match.arm.removesuffix("/probe"))
            assert scores[shown.match][seat]["accuracy"] == 1
            if match.arm == "near":
                assert int(source.item[1:]) % 4 == int(match.item[1:]) % 4
            if match.arm.endswith("/probe"):
                assert source.item != match.item


def test_a_copier_gains_and_loses_it_where_its_own_question_is_masked(tmp_path):
    found = accuracy(evolve(tmp_path, count=96, evolve={"rounds": 3}))
    assert found["evolve", 3] > found["", 0] + 0.2
    assert found["evolve/probe", 3] < found["evolve", 3] - 0.2
    stages = [found["", 0], *(found["evolve", stage] for stage in (1, 2, 3))]
    assert stages == sorted(stages)  # it forgets nothing


def test_nothing_depends_on_the_order_of_items_or_on_concurrency(tmp_path):
    items = questions(16)
    settings = {"rounds": 2, "held_out": 0.25, "poison": 0.1, "controls": True}

    def shown(result):
        matches, recalled, scores = rows(result)

        def place(number):
            match = matches[number]
            return match.item, match.stage, match.arm, match.repeat

        return (
            {
                place(row.match): [(place(each.match), each.distance) for each in row.shown]
                for row in recalled
            },
            {place(number): by for number, by in scores.items()},
        )

    first = shown(evolve(tmp_path, evolve=settings, items=items, concurrency=1))
    mixed = random.Random(5).sample(items, len(items))
    assert shown(evolve(tmp_path, evolve=settings, items=mixed, concurrency=7)) == first


def test_the_main_table_is_the_last_round_of_the_first_arm_and_says_so(tmp_path):
    result = evolve(tmp_path, count=24, evolve={"rounds": 2, "controls": True})
    (row,) = result.part("results")
    assert row.matches == 24
    assert row.mean == accuracy(result)["evolve", 2]
    assert "evolve:rounds=2,k=2,retriever=bm25" in row.signature
    assert "shown is round 2 of 2 of arm evolve" in result.render()
    assert {(m["stage"], m["arm"]) for m in result.matches} >= {(0, ""), (2, "evolve/probe")}


def test_chance_is_drawn_anew_in_each_stage_while_the_game_stays_the_same(tmp_path):
    result = evolve(tmp_path, ["bot/random"], count=40, evolve={"retriever": "fixed", "rounds": 1})
    matches, _, scores = rows(result)
    by_stage = defaultdict(dict)
    for number, marks in scores.items():
        by_stage[matches[number].stage][matches[number].item] = list(marks.values())
    assert by_stage[0].keys() == by_stage[1].keys()
    assert by_stage[0] != by_stage[1]


def test_a_model_is_sent_the_demonstrations_where_the_examples_stood(tmp_path):
    seen = defaultdict(list)

    def model(view):
        seen[view.text].append(view.examples)
        return "A"

    items = [
        Question("q1", "What is red?", "A", ("rose", "sky")),
        Question("q2", "What is red and round?", "A", ("tomato", "sea")),
        Question("q3", "What is red, round and sweet?", "B", ("salt", "cherry")),
    ]
    result = evolve(tmp_path, {"m": model}, items=items, evolve={"rounds": 1, "probe": False})
    matches, recalled, _ = rows(result)
    assert {len(row.shown) for row in recalled} == {2}  # q3 was wrong
    first, second = seen[next(text for text in seen if "sweet" in text)]
    assert first is None
    at, examples = second
    assert at == 0
    assert [each.answer for each in examples] == ["A", "A"]
    assert "round?" in examples[-1].question  # the nearest stands last
    with read_run(result.ref) as reader:
        sent = {matches[n].stage: reader.calls(n)[0].reply.sent for n in (1, 4)}
    assert sent[0] is None
    assert sent[1]


def test_an_aborted_match_is_no_experience(tmp_path):
    @parley_task()
    class Breaks(parley.Task):
        name = "breaks"
        roles = {"player": parley.Role()}
        items = parley.Items(Question)

        async def play(self, referee, player):
            said = await referee.ask(
                player, referee.item.question, expect=parley.Choice("answer", ("A", "B"))
            )
            return {player: float(said == "A")}

        def metrics(self, seats):
            return [parley.Metric("score", 0, 1, epsilon=0.1, success=1)]

    def model(view):
        return "nonsense" if "thing 0" in view[0]["content"] else '{"reason": "", "answer": "A"}'

    result = parley.run(
        Breaks(), {"m": model}, items=questions(3), store=tmp_path,
        evolve={**BM25, "rounds": 1, "probe": False},
    )  # fmt: skip
    matches, recalled, _ = rows(result)
    assert {match.state for match in matches.values()} == {"aborted", "done"}
    assert {matches[each.match].item for row in recalled for each in row.shown} == {"q1", "q2"}


def parley_task():
    from dataclasses import dataclass

    return dataclass(frozen=True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"retriever": "bm52"}, "did you mean 'bm25'"),
        ({"success": "acuracy>=1"}, "did you mean 'accuracy'"),
        ({"scope": "subject", "retriever": "bm25"}, None),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(tmp_path, settings, said):
    if said is None:
        evolve(tmp_path, evolve={"rounds": 1, **settings})
        return
    with pytest.raises(UsageError, match=said):
        evolve(tmp_path, evolve=settings)
    assert not list(tmp_path.glob("*.parley"))


def test_settings_with_another_plan_are_refused(tmp_path):
    with pytest.raises(UsageError, match="use --plan evolve"):
        evolve(tmp_path, plan="each")
    with pytest.raises(UsageError, match="fixed number of rounds"):
        evolve(tmp_path, until_stable=True)
