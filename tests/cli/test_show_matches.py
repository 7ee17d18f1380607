"""Matches are found and read in the terminal: listed, filtered, told in the order of time."""

import csv
from dataclasses import dataclass

import pytest

from parley import Amount, Metric, Role, Task, run
from parley.results.match_notes import describe_answer, format_fact, format_facts
from parley.tables import text_width
from tests.cli.test_cli import parley as command


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    """Six games of three, one of whom talks nonsense in the second round."""
    place = tmp_path_factory.mktemp("games")
    models = {
        "kind": "bot/altruist",
        "noise": "bot/random",
        "odd": lambda view: "none of it" if view.round == 2 else '{"reason": "x", "coins": 0}',
    }
    run("public_goods", models, repeats=6, seed=3, store=place / "runs", name="games")
    return place


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Translations of two items by a bot and a model that says nothing."""
    place = tmp_path_factory.mktemp("texts")
    models = {"able": "bot/translator", "mute": lambda view: ""}
    run("translation", models, items=2, seed=3, store=place / "runs", name="texts")
    return place


@dataclass(frozen=True)
class OneNumber(Task):
    """Whoever names no number ends the match."""

    roles = {"players": Role(2)}

    async def play(self, referee, players):
        return await referee.ask(players, "Which number?", expect=Amount("n", 0, 1))

    def metrics(self, seats):
        return [Metric("n", 0, 1, epsilon=0.1)]


def numbers(place, *words):
    """The matches that are listed, in their order."""
    found = command("show", "last", "--matches", *words, "--json", cwd=place).json
    return [each["number"] for each in found]


def test_matches_are_listed_with_all_scores(games):
    out = command("show", "last", "--matches", cwd=games).out
    assert out.startswith("public_goods: payoff (coins), higher is better; 6 matches")
    assert out.count("kind ") == out.count("noise ") == out.count("odd ") == 6
    rows = command("show", "last", "--matches", "--format", "csv", cwd=games).out
    values = [row["value"] for row in csv.DictReader(rows.splitlines())]
    assert len(values) == 18
    found = command("show", "last", "--matches", "--json", cwd=games).json
    assert sorted(map(float, values)) == sorted(
        by["payoff"] for each in found for by in each["scores"].values()
    )


def test_a_list_names_the_match_to_read(games):
    err = command("show", "last", "--matches", "--worst", 1, cwd=games).err
    (number,) = numbers(games, "--worst", 1)
    assert f" {number}\n" in err


def test_the_worst_matches_come_first(games):
    data = command("show", "last", "--matches", "--json", cwd=games).json
    own = {
        each["number"]: by["payoff"]
        for each in data
        for seat, by in each["scores"].items()
        if each["seats"][seat] == "noise"
    }
    assert numbers(games, "--model", "noise", "--worst", 3) == sorted(own, key=own.get)[:3]
    lowest = {each["number"]: min(by["payoff"] for by in each["scores"].values()) for each in data}
    assert numbers(games, "--worst", 2) == sorted(lowest, key=lowest.get)[:2]


def test_matches_are_found_by_model_item_and_fault(games, texts):
    assert numbers(games, "--violations") == [1, 2, 3, 4, 5, 6]
    assert numbers(games, "--aborted") == []
    assert (
        "no match fits these filters; the whole run has 6 matches"
        in command("show", "last", "--aborted", cwd=games).err
    )
    items = {
        each["item"]: each["number"]
        for each in command("show", "last", "--matches", "--json", cwd=texts).json
    }
    first = next(iter(items))
    assert items[first] in numbers(texts, "--item", first)
    assert len(numbers(texts, "--item", first)) == 2


def test_a_match_that_was_broken_off_is_listed_with_its_reason(tmp_path):
    models = {"able": lambda view: '{"reason": "x", "n": 1}', "mute": lambda view: ""}
    run(OneNumber(), models, repeats=2, store=tmp_path / "runs")
    assert numbers(tmp_path, "--aborted") == [1, 2, 3, 4]  # both orders of the seats
    out = command("show", "last", "--aborted", cwd=tmp_path).out
    assert out.count("aborted") == out.count("gave no readable reply in round 1") == 4
    one = command("show", "last", 1, cwd=tmp_path).out
    assert "The match was aborted after 1 round: Player" in one


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "kindd"), "did you mean 'kind'"),
        (("--item", "x"), "has no items"),
        (("2", "--worst", "1"), "remove the match number"),
        (("--seat", "Player 1"), "--seat needs a match number"),
        (("1", "--seat", "Playr 1"), "did you mean 'Player 1'"),
        (("1", "--format", "csv"), "remove it, or use --json to print the match as JSON"),
        (("1", "--part", "pairs"), "--part prints results of the whole run"),
        (("--matches", "--metrics", "all"), "--metrics only works for the main table"),
    ],
)
def test_what_cannot_be_shown_is_said(games, words, said):
    assert said in command("show", "last", *words, cwd=games, code=2).err


def test_a_match_reads_in_the_order_of_time_with_its_rules_once(games):
    out = command("show", "last", 1, cwd=games).out
    assert out.count("You play a game with 3 players") == 1
    assert out.count("Answer with one JSON object") == 3  # in round 1, and asked again twice
    marks = [
        "Before the first round",
        "Round 1 of 5",
        "note: invested",
        "Round 2 of 5",
        "── Scores",
    ]
    assert [out.index(mark) for mark in marks] == sorted(out.index(mark) for mark in marks)
    second = out[out.index("── Round 2") : out.index("── Round 3")]
    assert second.index("(odd):") < second.index("! unreadable") < second.index("asks again:")
    assert "text that these seats had read before" in out


def test_scores_of_a_match_are_a_table_with_the_digits_of_its_metric(games):
    lines = command("show", "last", 1, cwd=games).out.split("── Scores")[1].splitlines()
    assert lines[1].split() == ["seat", "model", "payoff", "(coins)"]
    values = [float(line.split()[-1]) for line in lines[3:6]]
    assert values == sorted(values, reverse=True)
    assert all(line.split()[-1].partition(".")[2].isdigit() for line in lines[3:6])
    assert all(len(line.split()[-1].partition(".")[2]) == 2 for line in lines[3:6])


@pytest.mark.parametrize("name", ["kind", "players.{n}", "Player {n}"])
def test_a_seat_shows_its_own_view_word_for_word(games, name):
    facts = command("show", "last", 1, "--json", cwd=games).json
    (key,) = (seat for seat, alias in facts["seats"].items() if alias == "kind")
    seat = name.format(n=key[-1])
    out = command("show", "last", 1, "--seat", seat, cwd=games).out
    assert out.count("Answer with one JSON object") == 5
    assert "none of it" not in out  # what others said was never shown to it
    only = command("show", "last", 1, "--seat", seat, "--json", cwd=games).json
    assert only["views"] == {key: facts["views"][key]}


def test_a_match_fits_the_terminal(games, texts):
    for place in (games, texts):
        for words in (("1",), ("1", "--seat", "Player 1" if place == games else "Translator")):
            out = command("show", "last", *words, cwd=place, env={"COLUMNS": "72"}).out
            assert max(map(text_width, out.splitlines())) <= 72
    listed = command("show", "last", "--matches", cwd=texts, env={"COLUMNS": "60"}).out
    assert max(map(text_width, listed.splitlines())) <= 60


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (6.708396894, "6.71"),
        (10.0, "10"),
        (0.0, "0"),
        (0.00123456, "0.00123"),
        ([1.0, 2.25], "[1, 2.25]"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, … (9 numbers)]"),
        ({"a": 1 / 3}, "a: 0.333"),
        (None, "null"),
    ],
)
def test_numbers_of_notes_have_the_digits_that_a_reader_needs(value, text):
    assert format_fact(value) == text


def test_a_report_on_several_runs_says_whose_table_is_whose(games, texts):
    other = str(next((texts / "runs").glob("*.parley")))
    out = command("report", "last", other, cwd=games).out
    first, second = (part.splitlines()[0] for part in out.split("══ Run ")[1:])
    assert ": Public goods: games, done" in first
    assert ": Translation: texts, done" in second
    alone = command("report", "last", cwd=games).out
    assert "══" not in alone


@dataclass(frozen=True)
class Echo(OneNumber):
    """Every round the players hear of the last one, which is often like another before."""

    async def play(self, referee, players):
        for word in ("cooperate", "defect", "cooperate", "defect"):
            referee.tell(players, f"The other player's choice was: {word}.")
            found = await referee.ask(
                players, f"Choose.\n\nThe rules: {'be kind, ' * 10}", expect=Amount("n", 0, 1)
            )
        return found


def test_short_messages_are_never_left_out(tmp_path):
    said = {name: lambda view: '{"reason": "x", "n": 1}' for name in ("one", "two")}
    run(Echo(), said, repeats=1, store=tmp_path / "runs")
    out = command("show", "last", 1, cwd=tmp_path).out
    assert out.count("choice was: cooperate.") == out.count("choice was: defect.") == 2
    assert out.count("The rules: be kind") == 1
    assert not any(line.strip() == "│ […]" for line in out.splitlines())


SKY = {"answer": "B", "choices": ["green", "blue"]}


@pytest.mark.parametrize(
    ("facts", "item", "words"),
    [
        (
            {"answer": "A", "right": False},
            SKY,
            "answer A (green): wrong, expected B (blue)",
        ),
        ({"answer": "B", "right": True}, SKY, "answer B (blue): correct"),
        (
            {"answer": None, "right": False},
            SKY,
            "no readable answer: wrong, expected B (blue)",
        ),
        (
            {"answer": "7", "right": False},
            {"answer": "8"},
            "answer 7: wrong, expected 8",
        ),
        ({"answer": "7", "right": 3}, {"answer": "8"}, ""),
        ({"answer": "7", "right": False}, {}, ""),
    ],
)
def test_a_wrong_answer_stands_beside_the_right_one(facts, item, words):
    assert describe_answer(facts, "answer", item) == words


@pytest.mark.parametrize("task", ["qa", "kieval"])
def test_a_lost_question_says_why(tmp_path, task):
    kieval = task == "kieval"
    roles = {name: f"bot/{name}" for name in ("interactor", "evaluator")} if kieval else None
    question = {"id": "sky", "question": "What colour is the sky?", **SKY}
    params = {"rounds": 1, "verify": "no"} if kieval else {"shots": 0}
    run(task, {"one": lambda view: "A"}, items=[question], roles=roles,
        store=tmp_path / "runs", **params)  # fmt: skip
    out = command("show", "last", 1, cwd=tmp_path).out
    assert "note: answer A (green): wrong, expected B (blue)" in out
    assert "; subject" not in out


def test_empty_values_of_a_note_are_left_out():
    assert format_facts({"a": "", "b": None, "c": [], "d": 0, "e": False}) == "d 0; e false"


def test_a_key_that_a_model_said_is_not_printed(games, monkeypatch):
    key = "kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"
    bots = {"ann": lambda view: f"{{'x': '{key}'}}", "bob": "bot/random", "cy": "bot/random"}
    found = run("public_goods", bots, repeats=1, store=games / "said")
    place = str(found.ref.location)
    calls = [["1"], ["1", "--json"], ["1", "--seat", "players.1"], ["--matches", "--json"]]
    assert any(key in command("show", place, *each, cwd=games).out for each in calls[:2])
    monkeypatch.setenv("OPENAI_API_KEY", key)
    for each in calls:
        assert key not in command("show", place, *each, cwd=games).out


def test_next_steps_stand_beside_tables_and_not_beside_json(tmp_path):
    bots = [word for name in ("ann", "bob", "cy") for word in ("-m", f"{name}=bot/random")]
    done = command("run", "public_goods", *bots, "--repeats", "1", cwd=tmp_path)
    assert "parley: list all matches: " in done.err
    assert "parley: compare every pair of models: " in done.err
    assert "list all matches" not in done.out
    quiet = command("run", "public_goods", *bots, "--repeats", "1", "--json", cwd=tmp_path)
    assert "list all matches" not in quiet.err
