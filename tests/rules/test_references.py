"""Works of reference: a rule consults them, the record keeps what they said, and a replay needs
none."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from parley import Prompt, Role, Seat, TaskError, Word, WordList
from parley.config.experiment import Experiment
from parley.datasets.dictionaries import Lexicon
from parley.errors import ReplayError
from parley.options import from_keywords
from parley.runs.forecast import forecast_run
from parley.tasks.idiom_solitaire import IdiomSolitaire
from parley.testing import ByHand, Listed, Speaking, play
from tests.games import Game

PLAYER = Seat("player")
WORKS = {"dictionary": Lexicon.of("small", {"cat": 3, "tiger": 1})}


@dataclass(frozen=True)
class Naming(Game):
    """Name words that the dictionary has."""

    work: str = "dictionary"
    question: str = "entry"
    rounds: int = 2
    roles = {"player": Role()}

    def works(self):
        return {"dictionary": WordList(("small.txt",))}

    async def play(self, referee, player):
        points = 0
        for _ in range(self.rounds):
            word = await referee.ask(player, "A word, please.", expect=WORD, default="", attempts=2)
            points += 50 * (await referee.consult(self.work, self.question, word))["known"]
        return {player: points}


AGAIN = Prompt("again_shortly", "One word! {hint}")
WORD = Word("Just a word.", again=AGAIN)


class Forgetful(Naming):
    async def play(self, referee, player):
        referee.consult("dictionary", "entry", "cat")
        await referee.ask(player, "Well?")
        return {player: 0}


def says(*words):
    lines = iter(words)
    return {PLAYER: Speaking(lambda view: next(lines))}


def test_a_work_answers_and_the_record_keeps_it():
    tape = Listed()
    assert (
        play(Naming(), says("cat", "dog"), record=tape, works=WORKS).scores[PLAYER]["points"] == 50
    )
    assert [result for _, result in tape.effects.values()] == [
        {"word": "cat", "known": True},
        {"word": "dog", "known": False},
    ]
    again = Listed(tape.order)
    again.effects = tape.effects
    # no work lies open, and none is missed
    assert play(Naming(), says(), record=again).scores[PLAYER]["points"] == 50


def test_a_record_of_another_question_is_refused():
    tape = Listed()
    play(Naming(), says("cat", "dog"), record=tape, works=WORKS)
    other = Listed()
    other.effects = tape.effects
    with pytest.raises(
        ReplayError,
        match="after round 1: the task asks for a different question to dictionary",
    ):
        play(Naming(), says("cow", "dog"), record=other, works=WORKS)


def test_questions_that_nothing_answers_are_the_tasks_fault():
    with pytest.raises(
        TaskError, match=r"naming: unknown reference work 'atlas'; available: dictionary"
    ):
        play(Naming(work="atlas"), says("cat"), works=WORKS)
    with pytest.raises(
        TaskError, match=r"unknown question to dictionary: 'entri'; did you mean 'entry'\?"
    ):
        play(Naming(question="entri"), says("cat"), works=WORKS)
    for attribute in ("plain", "words", "__class__"):  # what a work has besides is no question
        with pytest.raises(TaskError, match="unknown question"):
            play(Naming(question=attribute), says("cat"), works=WORKS)
        with pytest.raises(TaskError, match="unknown question"):
            ByHand(Naming(question=attribute), works=WORKS).answer("cat")
    with pytest.raises(TaskError, match="not awaited"):
        play(Forgetful(), says("cat"), works=WORKS)


def test_by_hand_works_answer_by_themselves_or_are_answered_too():
    table = ByHand(Naming(rounds=1), works=WORKS)
    table.answer("tiger")
    assert table.scores == {PLAYER: {"points": 50}}
    table = ByHand(Naming(rounds=1))
    table.answer("tiger")
    table.answer({"word": "tiger", "known": False})
    assert table.scores == {PLAYER: {"points": 0}}


def test_a_reader_may_have_its_own_words_for_asking_again():
    tape = Listed()
    play(Naming(rounds=1), says("a cat", "cat"), record=tape, works=WORKS)
    assert [each.content for each in tape.messages if each.kind == "again"] == [
        "One word! Just a word."
    ]
    tape = Listed()
    play(
        Naming(rounds=1),
        says("I think of a cat.", "cat"),
        record=tape,
        works=WORKS,
        standardise="always",
    )
    assert [each.content for each in tape.messages if each.kind == "again"] == [
        "One word! Just a word."
    ]
    tape = Listed()
    other = {"again_shortly": Prompt("again_shortly", "Once more. {hint}")}
    play(Naming(rounds=1), says("a cat", "cat"), record=tape, works=WORKS, prompts=other)
    assert [each.content for each in tape.messages if each.kind == "again"] == [
        "Once more. Just a word."
    ]


def test_forecasts_play_by_the_bot_that_stands_in(tmp_path):
    file = Path(tmp_path) / "words.txt"
    file.write_text("人山人海\n海阔天空\n空前绝后\n后发制人\n海底捞月\n", encoding="utf-8")
    task = IdiomSolitaire(rounds=4, dictionary=(str(file),), traditional=False)
    asked = Experiment(task.name, instance=task, given=from_keywords(repeats=10))
    asked.contestants = [asked.add_model("vllm/x", alias) for alias in "ab"]
    asked.instruments = {"checker": [asked.add_model("vllm/j", "j")]}
    found = forecast_run(asked.prepare()).data
    assert found["calls"] > 1.2 * 20  # a match is more than its first turn
    assert {row["alias"] for row in found["by_model"]} >= {"a", "b"}
