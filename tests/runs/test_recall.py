"""Runs that evolve: what seats are shown, what is on record, and that nothing depends on order."""

import random
import shutil
import sqlite3
from collections import defaultdict
from dataclasses import replace

import orjson
import pytest

import parley
from parley.audit.audit import audit_run
from parley.errors import UsageError
from parley.results.transcript import TranscriptReader
from parley.rules.items.question import Question
from parley.store import find_run, read_run
from tests.cli.test_cli import parley as command
from tests.resealed import reseal

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
        matches = {match.number: match for match in reader.matches.read()}
        return matches, list(reader.experiences.recalled()), reader.scores.by_match()


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
    settings = {"stages": 2, "arms": {"plain": {}, "near": {"scope": "subject"}}}
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
    found = accuracy(evolve(tmp_path, count=96, evolve={"stages": 3}))
    assert found["evolve", 3] > found["", 0] + 0.2
    assert found["evolve/probe", 3] < found["evolve", 3] - 0.2
    stages = [found["", 0], *(found["evolve", stage] for stage in (1, 2, 3))]
    assert stages == sorted(stages)  # it forgets nothing


def test_nothing_depends_on_the_order_of_items_or_on_concurrency(tmp_path):
    items = questions(16)
    settings = {"stages": 2, "held_out": 0.25, "poison": 0.1, "controls": True}

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


def test_another_number_of_examples_is_said_before_the_first_stage(tmp_path):
    def notices(**settings):
        said = []
        evolve(
            tmp_path,
            count=8,
            evolve={"stages": 1, "probe": False, **settings},
            shots=3,
            shots_from="samples",
            progress=lambda event: said.append((event.kind, event.done, event.text)),
        )
        return [text for kind, done, text in said if kind == "notice" and done == 0]

    (found,) = [text for text in notices(k=2, controls=True) if "number of examples alone" in text]
    assert "the standard stage shows 3 examples, but later stages show 2" in found
    assert "add --evolve k=3" in found
    assert not [text for text in notices(k=3) if "alone" in text]


def test_the_main_table_is_the_last_stage_of_the_first_arm_and_says_so(tmp_path):
    result = evolve(tmp_path, count=24, evolve={"stages": 2, "controls": True})
    (row,) = result.part("results")
    assert row.matches == 24
    assert row.mean == accuracy(result)["evolve", 2]
    assert "evolve:stages=2,k=2,retriever=bm25" in row.signature
    text = result.render()
    assert "the table shows stage 2 of 2 of arm evolve" in text
    last = next(row for row in result.part("evolve").gains if row.kind == "last").gain
    ends = f"({last.low:.3f} to {last.high:.3f})"
    (line,) = [line for line in text.splitlines() if line.startswith("gain over the standard")]
    assert f"{last.value:+.3f} {ends}" in line
    assert line.endswith("`parley show RUN --part evolve` shows all stages, controls and costs")
    assert {(m["stage"], m["arm"]) for m in result.matches} >= {(0, ""), (2, "evolve/probe")}


def test_chance_is_drawn_anew_in_each_stage_while_the_game_stays_the_same(tmp_path):
    result = evolve(tmp_path, ["bot/random"], count=40, evolve={"retriever": "fixed", "stages": 1})
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
    result = evolve(tmp_path, {"m": model}, items=items, evolve={"stages": 1, "probe": False})
    matches, recalled, _ = rows(result)
    assert {len(row.shown) for row in recalled} == {2}  # q3 was wrong
    first, second = seen[next(text for text in seen if "sweet" in text)]
    assert first is None
    at, examples = second
    assert at == 0
    assert [each.answer for each in examples] == ["A", "A"]
    assert "round?" in examples[-1].question  # the nearest stands last
    with read_run(result.ref) as reader:
        sent = {matches[n].stage: reader.calls.of(n)[0].reply.sent for n in (1, 4)}
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
        evolve={**BM25, "stages": 1, "probe": False},
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
        evolve(tmp_path, evolve={"stages": 1, **settings})
        return
    with pytest.raises(UsageError, match=said):
        evolve(tmp_path, evolve=settings)
    assert not list(tmp_path.glob("*.parley"))


def test_settings_with_another_plan_are_refused(tmp_path):
    with pytest.raises(UsageError, match="add --plan evolve"):
        evolve(tmp_path, plan="each")
    with pytest.raises(UsageError, match="fixed number of stages"):
        evolve(tmp_path, until_stable=True)


def test_a_run_can_begin_with_the_memory_of_another(tmp_path):
    first = evolve(tmp_path, {"m": "bot/student"}, evolve={"stages": 1}, name="first", count=8)
    others = [replace(each, id=f"x{each.id}") for each in questions(20)[8:]]
    settings = {"stages": 1, "transfer": "first", "k": 3}
    second = evolve(tmp_path, {"m": "bot/student"}, items=others, evolve=settings)
    _, recalled, _ = rows(second)
    with read_run(second.ref) as reader:
        transferred = reader.experiences.transferred()
        matches = {match.number: match for match in reader.matches.read()}
    assert transferred
    assert {each.item for each in transferred} <= {each.id for each in questions(8)}
    assert all(each.success and each.alias == "m" for each in transferred)
    used = {each.match for row in recalled for each in row.shown}
    assert any(number < 0 for number in used)
    assert all(matches[number].stage == 0 for number in used if number > 0)
    assert audit_run(second.ref).breaches == []
    with pytest.raises(UsageError, match="has no model with the alias `other`"):
        evolve(tmp_path, {"other": "bot/student"}, items=others, evolve=settings)
    assert first.ref != second.ref


def test_a_dry_run_refuses_a_memory_that_is_not_there(tmp_path):
    words = ("run", "qa", "-m", "bot/student", "--items", 2, "--set", "shots=0", "--dry-run")
    done = command(*words, "--evolve", "transfer=nowhere", cwd=tmp_path, code=2)
    assert "unknown run" in done.err
    assert "'nowhere'" in done.err


def test_audit_finds_an_experience_that_is_not_the_seats_own(tmp_path):
    result = evolve(tmp_path, {"one": "bot/copier", "two": "bot/student"}, evolve={"stages": 2})
    path = result.path
    assert audit_run(result.ref).breaches == []
    matches, recalled, _ = rows(result)
    (victim,) = [row for row in recalled if row.shown and matches[row.match].stage == 1][:1]
    mine = matches[victim.match].seats
    strangers = [n for n, match in matches.items() if match.seats != mine and match.stage == 0]
    later = [n for n, match in matches.items() if match.seats == mine and match.stage == 2]
    for planted in (strangers[0], later[0]):
        copy = tmp_path / f"planted{planted}.parley"
        shutil.copy(path, copy)
        with sqlite3.connect(copy) as connection:
            facts = {"shown": [[planted, "student", 0.5]], "k": 2, "dropped": 0, "shuffle": ""}
            connection.execute(
                "UPDATE recalled SET shown = ? WHERE match = ?",
                (orjson.dumps(facts).decode(), victim.match),
            )
            reseal(connection)
        connection.close()
        found = [each for each in audit_run(find_run(copy)).breaches if each.kind == "recalled"]
        assert found
        assert f"match {planted}, which is not in its memory" in found[0].detail
        assert {each.match for each in found} == {victim.match}


def test_audit_finds_that_other_words_were_sent(tmp_path):
    result = evolve(tmp_path, evolve={"stages": 1})
    with sqlite3.connect(result.path) as connection:
        (number,) = connection.execute("SELECT MAX(match) FROM calls").fetchone()
        connection.execute("UPDATE calls SET sent = 'ab' WHERE match = ?", (number,))
        reseal(connection)
    connection.close()
    (found,) = audit_run(result.ref).breaches
    assert (found.kind, found.match) == ("recalled", number)
    assert "demonstrations in the prompt differ" in found.detail


def test_a_match_shows_what_it_recalls_and_where_that_comes_from(tmp_path):
    result = evolve(tmp_path, evolve={"stages": 1, "k": 3})
    matches, recalled, _ = rows(result)
    row = next(row for row in recalled if row.shown)
    first = row.shown[0]
    with read_run(result.ref) as reader:
        match = reader.matches.find(row.match)
        (seat,) = match.seats
        found = TranscriptReader(reader, str).read(match)
        own = TranscriptReader(reader, str).read_seat(match, seat)
        said = reader.calls.of(first.match)[0].reply.content
    source = f"taken from match {first.match}, item {matches[first.match].item} (distance"
    assert found.recalled[0].sources[0].startswith(source)
    assert own[0].speaker.startswith(source)
    assert f"→ {said}" in own[0].text
    assert "stage 1 of arm evolve" in found.headline.stage


def test_what_does_not_fit_goes_farthest_first_and_is_counted(tmp_path):
    whole = evolve(tmp_path, evolve={"stages": 1, "k": 4, "probe": False})
    fitted = evolve(tmp_path, evolve={"stages": 1, "k": 4, "probe": False, "fit": 110})
    for one, other in zip(rows(whole)[1], rows(fitted)[1], strict=True):
        assert len(other.shown) == 2
        assert other.dropped == 2
        assert other.shown == one.shown[-2:]  # the nearest stand last


def test_every_retriever_that_shows_the_tasks_own_examples(tmp_path):
    seen = defaultdict(set)

    def model(view):
        seen[view.text].add(tuple(each.question[:40] for each in view.examples[1]))
        return "A"

    for retriever, orders in (("fixed", 1), ("none", 3)):
        seen.clear()
        settings = {"retriever": retriever, "stages": 3}
        parley.run("qa", {"m": model}, evolve=settings, items=4, shots=4, store=tmp_path)
        assert all(len({frozenset(each) for each in shown}) == 1 for shown in seen.values())
        assert max(len(shown) for shown in seen.values()) >= orders
        if retriever == "fixed":
            assert {len(shown) for shown in seen.values()} == {1}


@pytest.mark.parametrize("retriever", ["bm25", "random", "fixed", "none"])
def test_a_dry_run_counts_all_stages(tmp_path, retriever):
    from parley.config.experiment import Experiment
    from parley.runs.forecast import forecast_run

    experiment = Experiment("qa", {"shots": 0}, item_list=questions(8))
    experiment.contestants = [experiment.add_model("m=vllm/x")]
    experiment.evolve = {"retriever": retriever, "stages": 2, "k": 2}
    found = forecast_run(experiment.prepare())
    stages = 3 + (retriever in ("bm25", "random"))
    assert found.matches == 8 * stages
    (row,) = found.rows
    assert row["range"]["calls"]["low"] == 8 * stages
    plain = Experiment("qa", {"shots": 0}, item_list=questions(8))
    plain.contestants = [plain.add_model("m=vllm/x")]
    (before,) = forecast_run(plain.prepare()).rows
    more = row["tokens_in"] / before["tokens_in"] / stages
    assert (more > 1.5) == (retriever in ("bm25", "random"))


def test_a_game_without_items_evolves_too(tmp_path):
    models = ["bot/free-rider", "bot/altruist", "bot/random"]
    settings = {**BM25, "stages": 1, "success": "payoff>=1"}
    result = parley.run("public_goods", models, evolve=settings, items=4, store=tmp_path)
    matches, recalled, scores = rows(result)
    assert {match.item for match in matches.values()} == {None}
    by_stage = defaultdict(set)
    for match in matches.values():
        by_stage[match.arm, match.stage].add(match.block)
    stages = [("", 0), ("evolve", 1), ("evolve/probe", 1)]
    assert by_stage == {stage: set("1234") for stage in stages}
    for row in recalled:
        seat = next(seat for seat in matches[row.match].seats if seat.key == row.seat)
        alias = matches[row.match].seats[seat]
        for shown in row.shown:
            source = matches[shown.match]
            (place,) = [key for key in source.seats if key.key == shown.seat]
            assert source.seats[place] == alias
    assert audit_run(result.ref).breaches == []
    with pytest.raises(UsageError, match="at least two games"):
        parley.run("public_goods", models, evolve=settings, items=1, store=tmp_path)
    assert all(scores.values())


def test_every_opening_of_a_game_is_drawn_once_a_stage(tmp_path):
    pair = {"a": "bot/random", "b": "bot/random"}
    settings = {**BM25, "stages": 1, "probe": False}
    result = parley.run("idiom_solitaire", pair, evolve=settings, items=3, store=tmp_path)
    told = defaultdict(set)
    for match in result.matches:
        asked = next(each for each in match["transcript"] if each["kind"] == "ask")
        told[match["block"]].add(asked["content"])
    assert {len(each) for each in told.values()} == {1}  # the same in both stages
    assert len(set.union(*told.values())) == 3


def test_kieval_evolves_unchanged(tmp_path):
    result = parley.run(
        "kieval",
        {"c": "bot/candidate"},
        roles={"interactor": "bot/interactor", "evaluator": "bot/evaluator"},
        evolve={**BM25, "stages": 1, "probe": False},
        items=4,
        verify="no",
        rounds=2,
        store=tmp_path,
    )
    _, recalled, _ = rows(result)
    assert recalled
    assert {row.seat for row in recalled} == {"candidate"}  # instruments recall nothing
    assert audit_run(result.ref).breaches == []


def test_a_stage_that_was_resumed_remembers_the_matches_that_ended_late(tmp_path):
    asked, broken = [], True

    def student(view):
        asked.append(view)
        # the second match of stage 1 cannot be played at first, the others can
        if broken and len(asked) == 6 + 2:
            raise ValueError("not now")
        return "ABCD"[len(view.text) % 4]

    def play(store):
        asked.clear()
        settings = {"stages": 2, "keep": "all"}
        return evolve(store, {"m": student}, count=6, evolve=settings, concurrency=1)

    with pytest.raises(parley.ParleyError, match="not now"):
        play(tmp_path / "resumed")
    broken = False
    resumed = parley.resume("last", functions={"m": student}, store=tmp_path / "resumed")
    straight = play(tmp_path / "straight")
    assert rows(resumed)[1:] == rows(straight)[1:]
