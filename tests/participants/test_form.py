"""The form that people fill in: for every reader of the tasks, and what becomes of the entries."""

import sys
from contextlib import suppress
from io import StringIO
from random import Random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley import Amount, Choice, Code, Fields, Question, Seat, Text, Word
from parley.config.evolved_task import VERDICT
from parley.errors import OutOfBounds, Unreadable
from parley.participants._form import (
    describe_reply,
    hide_format,
    make_form,
    make_object_form,
    show_turns,
)
from parley.participants.human import converse
from parley.rules.pool import Turn, View
from parley.tasks._common.answers import ExactAnswer, LetterChoice, WeighedChoice
from parley.tasks._common.writer_editor import RATING
from parley.tasks.idiom_solitaire import IDIOM
from parley.tasks.idiom_solitaire import VERDICT as IS_IDIOM
from parley.tasks.kieval.rule import FORM, answer_reader
from parley.tasks.os_tasks.rule import Action, ActionReader
from parley.tasks.word_guessing.rule import turn_reader

CHOICES = ("chloroplast", "nucleus", "membrane")
SEAT = Seat("players", 2)
MARKS = {f"{name}.comment": "fine" for name in FORM.fields if name != "stop"}
SCORES = {f"{name}.score": "3" for name in FORM.fields if name != "stop"}
# a reader of a task, what a person enters, and what the reader makes of it
READERS = {
    "public_goods": (Amount("coins", 0, 20), {"coins": "7.5", "reason": "half"}, 7.5),
    "public_goods, whole": (Amount("coins", 0, 20, whole=True), {"coins": "7"}, 7),
    "idiom_solitaire": (IDIOM["zh"], {"answer": " 一心一意 "}, "一心一意"),
    "idiom_solitaire, checker": (IS_IDIOM["en"], {"idiom": "yes"}, "yes"),
    "code_review": (Code(), {"answer": "def f():\n\n    return 1"}, "def f():\n\n    return 1"),
    "translation": (Text(), {"answer": "Guten Tag\n"}, "Guten Tag"),
    "judge": (
        Fields({"ann": RATING}),
        {"ann.basis": "clear", "ann.score": "8"},
        {"ann": {"basis": "clear", "score": 8}},
    ),
    "kieval, choice": (
        answer_reader(Question("q", "Where?", "A", choices=CHOICES)),
        {"answer": "B"},
        "B",
    ),
    "kieval, exact": (answer_reader(Question("q", "How many?", "7")), {"answer": "7"}, "7"),
    "kieval, evaluator": (
        FORM,
        {**MARKS, **SCORES, "stop": "none"},
        {
            **{name: {"comment": "fine", "score": 3} for name in FORM.fields if name != "stop"},
            "stop": "none",
        },
    ),
    "word_guessing": (
        turn_reader(Seat("players", 1)),
        {"description": "a fruit"},
        None,
    ),
    "qa": (LetterChoice(CHOICES), {"answer": "C"}, "C"),
    "qa, logprobs": (WeighedChoice(CHOICES), {"answer": "A"}, "A"),
    "qa, exact": (ExactAnswer(), {"answer": "42", "reason": "6 times 7"}, "42"),
    "os_tasks": (
        ActionReader(),
        {"answer": "Think: look\n\nAct: bash\n\n```bash\nls\n\necho 1\n```"},
        Action("bash", "ls\n\necho 1"),
    ),
    "critic": (VERDICT, {"success": "no", "reason": "wrong sum"}, "no"),
    "stag hunt": (Choice("hunt", ("stag", "hare")), {"hunt": "hare"}, "hare"),
}


@pytest.mark.parametrize("name", READERS)
def test_what_people_enter_is_a_reply_that_the_reader_accepts(name):
    reader, entries, wanted = READERS[name]
    found = reader.read(make_form(reader).write(entries))
    if wanted is None:  # named by the task: every field of the form has a value
        assert set(found) == {field.name for field in make_form(reader).fields}
        assert found["description"] == "a fruit"
    else:
        assert found == wanted


@pytest.mark.parametrize("name", READERS)
def test_a_value_that_a_reader_draws_can_be_entered_in_its_form(name):
    reader = READERS[name][0]
    rng = Random(name)
    for _ in range(20):
        value = reader.sample(rng)
        form = make_form(reader)
        assert reader.read(form.write(entries_for(form, value))) == value


def entries_for(form, value):
    """What a person enters to say this."""
    if isinstance(value, Action):
        return {"answer": ActionReader().write(value)}
    if not isinstance(value, dict):
        return {form.fields[0].name: str(value)}
    entries = {}
    for field in form.fields:
        inner = value
        for part in field.name.split("."):
            inner = inner[part]
        entries[field.name] = str(inner)
    return entries


@given(st.floats(0, 20), st.text())
def test_any_number_within_the_bounds_is_read_as_itself(number, reason):
    reader = Amount("coins", 0, 20)
    reply = make_form(reader).write({"coins": repr(number), "reason": reason})
    assert reader.read(reply) == number


@given(st.text(max_size=200))
def test_no_entry_is_an_error_of_the_form(text):
    for reader, _, _ in READERS.values():
        form = make_form(reader)
        reply = form.write({field.name: text for field in form.fields})
        with suppress(Unreadable):
            reader.read(reply)


@pytest.mark.parametrize("text", ["25", "1e999", "nan", "99999999999999999999999", "many", ""])
def test_a_wrong_number_is_refused_by_the_reader(text):
    reader = Amount("coins", 0, 20)
    with pytest.raises(Unreadable):
        reader.read(make_form(reader).write({"coins": text}))


def test_a_list_is_entered_line_by_line_and_other_values_as_json():
    numbers = {"type": "array", "items": {"type": "integer"}}
    pairs = {"type": "array", "items": {"type": "object"}}
    reader = Fields({"numbers": numbers, "sure": {"type": "boolean"}, "pairs": pairs})
    form = make_form(reader)
    entries = {"numbers": "1\n2\n", "sure": "True", "pairs": '[{"a": 1}]'}
    assert reader.read(form.write(entries)) == {
        "numbers": [1, 2],
        "sure": True,
        "pairs": [{"a": 1}],
    }
    with pytest.raises(OutOfBounds):
        reader.read(form.write({**entries, "numbers": "one"}))


def test_only_a_field_that_may_be_empty_is_called_optional():
    text = {"type": "string"}
    guess = {"type": "string", "description": "your guess, or an empty text"}
    form = make_form(Fields({"description": text, "guess": guess}))
    assert [(field.required, field.optional) for field in form.fields] == [
        (False, False),
        (False, True),
    ]
    assert form.depends_on_question
    assert not make_form(Amount("coins", 0, 20)).depends_on_question
    for alone in (text, guess):  # an empty form is not accepted
        (field,) = make_form(Fields({"answer": alone})).fields
        assert (field.required, field.optional) == (True, False)


def test_a_free_reply_is_one_text():
    (field,) = make_form(Amount("coins", 0, 20), free=True).fields
    assert (field.kind, field.required) == ("text", True)


def test_the_question_is_shown_without_the_format_and_replies_in_words():
    reader = Amount("coins", 0, 20)
    form = make_form(reader)
    turns = [
        Turn("user", f"The rules.\n\nHow many?\n\n{Choice('move', ('a', 'b')).hint}"),
        Turn("assistant", '{"reason": "half", "coins": 7, "more": {"sure": true, "why": ""}}'),
        Turn("user", f"Your reply could not be read: it is late. {reader.hint}"),
    ]
    shown = show_turns(View(SEAT, 1, 1, turns, b"", reader, None), form)
    assert [turn.text for turn in shown] == [
        "The rules.\n\nHow many?",
        "Reason: half\nCoins: 7\nMore · Sure: yes",
        "Your reply could not be read: it is late.",
    ]
    assert [turn.own for turn in shown] == [False, True, False]
    assert describe_reply("plain words") == "plain words"
    assert hide_format("Say `x`.", "") == "Say `x`."


@pytest.mark.parametrize(
    ("reader", "typed", "wanted"),
    [
        (Choice("hunt", ("stag", "hare")), "2\nhungry\n", "hare"),
        (Choice("hunt", ("stag", "hare")), "Stag\n\n", "stag"),
        (LetterChoice(CHOICES), "2\n", "B"),
        (LetterChoice(CHOICES), "c\n", "C"),
        (Code(), "def f():\n\n    return 1\n.\n", "def f():\n\n    return 1"),
        (Text(), "\none\ntwo\n\n", "one\ntwo"),
        (Word(), "apple\n", "apple"),
        (Fields({"ann": RATING}), "clear\n8\n", {"ann": {"basis": "clear", "score": 8}}),
        (ActionReader(), "Think: done\n\nAct: finish\n.\n", Action("finish")),
    ],
)
def test_the_terminal_asks_for_each_field(monkeypatch, capsys, reader, typed, wanted):
    monkeypatch.setattr(sys, "stdin", StringIO(typed))
    view = View(SEAT, 1, 0, [Turn("user", f"Go.\n\n{reader.hint}")], b"", reader, None)
    assert reader.read(converse(view)) == wanted
    assert "JSON" not in capsys.readouterr().err


@pytest.mark.parametrize("levels", [30, 300, 980, 5000])
def test_deeply_nested_json_stays_text(levels):
    objects, lists = '{"a":' * levels + "1" + "}" * levels, "[" * levels + "]" * levels
    for reply in (objects, lists, f'{{"k":{lists}}}'):
        assert describe_reply(reply) == reply
    wanted = {"type": "array", "items": {"type": "object"}}
    form = make_object_form({"type": "object", "properties": {"x": wanted}})
    assert orjson.loads(form.write({"x": lists})) == {"x": lists}
