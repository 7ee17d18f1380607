"""Readers: the form stated, replies read, nonsense refused with a reason."""

import json
import time
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley import Amount, Choice, Code, Fields, TaskError, Text, Word
from parley.errors import OutOfBounds, Unreadable
from parley.match import read
from parley.parsing import mended
from parley.pool import Seat
from parley.referee import Ask

COINS = Amount("coins", 0, 10)
MARKS = Fields({"score": {"type": "integer", "minimum": 1, "maximum": 10}, "basis": {"type": "string"}})
MOVE = Choice("move", ("cooperate", "defect"))
READERS = [
    COINS,
    Amount("coins", 0, 10, whole=True),
    Amount("share", 0.1, 0.9),
    MARKS,
    MOVE,
    Text(),
    Word(),
    Word(longest=4, letters="人天"),
    Code(),
]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ('{"reason": "fair", "coins": 5}', 5),
        ('{"coins": 2.5}', 2.5),
        ('{"coins": "7"}', 7),
        ('Sure!\n```json\n{"reason": "x", "coins": 10}\n```\nGood luck', 10),
        ('First {"coins": 1}, no: {"coins": 2}', 2),
        ('{"plan": {"coins": 9}, "coins": 3}', 3),
        ('Sure: {"plan": {"coins": 9}, "coins": 3} is it.', 3),
        ('{"answer": {"coins": 6}}', 6),
        ('{"reason": "a \n real line break", "coins": 4}', 4),
        ("6", 6),
        (" 0.5. ", 0.5),
    ],
)
def test_an_amount_is_found_in_what_models_write(words, value):
    assert COINS.read(words) == value


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("", Unreadable),
        ("five", Unreadable),
        ("I invest 5 coins, because the others will too.", Unreadable),
        ('{"reason": "x"}', Unreadable),
        ('{"coins": null}', Unreadable),
        ('{"coins": true}', Unreadable),
        ('{"coins": NaN}', Unreadable),
        ('{"coins": [5]}', Unreadable),
        ('{"coins": 11}', OutOfBounds),
        ('{"coins": -0.1}', OutOfBounds),
        ('{"coins": 1' + "0" * 3000 + "}", OutOfBounds),
        ('{"coins": 1' + "0" * 9000 + "}", Unreadable),
        ("{" * 100_000, Unreadable),
        ('{"a":' * 50_000, Unreadable),
        ('[{"coins": 5}' * 20_000 + "{", None),
    ],
)
def test_what_is_no_amount_is_refused_with_a_reason(words, kind):
    if kind is None:
        assert COINS.read(words) == 5
        return
    with pytest.raises(kind) as refused:
        COINS.read(words)
    assert type(refused.value) is kind
    assert 0 < len(str(refused.value)) < 200


def test_a_whole_amount_takes_no_fraction():
    reader = Amount("coins", 0, 10, whole=True)
    assert reader.read('{"coins": 5.0}') == 5
    with pytest.raises(OutOfBounds, match="whole"):
        reader.read('{"coins": 5.5}')


@pytest.mark.parametrize("words", ['{"move": "Defect"}', "defect", " **Defect.** ", '{"reason": "-", "move": "defect!"}'])
def test_a_choice_is_read_whatever_its_dress(words):
    assert MOVE.read(words) == "defect"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("", Unreadable),
        ("both", Unreadable),
        ("I would rather defect.", Unreadable),
        ('{"move": 1}', Unreadable),
        ('{"moves": "defect"}', Unreadable),
        ('{"move": "defect or cooperate"}', OutOfBounds),
    ],
)
def test_a_choice_outside_the_options_is_refused_as_what_it_is(words, kind):
    with pytest.raises(Unreadable) as refused:
        MOVE.read(words)
    assert type(refused.value) is kind


def test_fields_follow_their_schema():
    assert MARKS.read('x {"score": 7, "basis": "clear", "extra": 1}') == {"score": 7, "basis": "clear"}
    for wrong in ('{"score": 7}', '{"score": 11, "basis": ""}', '{"score": "7", "basis": ""}', '{"score": 7, "basis": 1}'):
        with pytest.raises(Unreadable):
            MARKS.read(wrong)


def test_code_is_the_longest_block_of_its_language_or_the_whole_reply():
    assert (
        Code().read("Here:\n```python\nx = 1\ny = 2\n```\nand\n```\nlonger than the first one, but no python\n```")
        == "x = 1\ny = 2"
    )
    assert Code().read("print(1)") == "print(1)"
    assert Code().read("```\nprint(2)") == "print(2)"
    with pytest.raises(Unreadable):
        Code().read("```python\n```")


@pytest.mark.parametrize("said", ["word", " word\n", "**word**", "“word”.", "_word_", "- word!", "《ｗｏｒｄ》", "→ word 。"])
def test_a_word_is_read_without_the_marks_around_it(said):
    assert Word(longest=4).read(said) == "word"


@pytest.mark.parametrize("said", ["", " ?! ", "a word", "words", "word, word", "wo-rd", '{"word": "word"}'])
def test_what_is_not_one_word_alone_is_refused(said):
    with pytest.raises(Unreadable, match="no word" if len(said) < 5 and "w" not in said else "one word alone"):
        Word(longest=4).read(said)


def test_a_long_reply_does_not_keep_a_reader_of_words_busy():
    begun = time.perf_counter()
    for said in (" " * 200_000 + "a", "a" + " " * 200_000 + "b"):
        with suppress(Unreadable):
            Word().read(said)
    assert time.perf_counter() - begun < 1


def test_free_text_is_anything_but_silence():
    assert Text().read("  hello \n") == "hello"
    with pytest.raises(Unreadable):
        Text().read(" \n\t")


@pytest.mark.parametrize("reader", READERS, ids=lambda r: type(r).__name__)
@given(seed=st.integers(0, 10_000))
def test_what_a_reader_writes_it_reads(reader, seed):
    value = reader.sample(Random(seed))
    assert reader.read(reader.write(value, "why not")) == value


@pytest.mark.parametrize("reader", READERS, ids=lambda r: type(r).__name__)
@given(words=st.text(max_size=300))
def test_any_text_is_either_read_or_refused(reader, words):
    with suppress(Unreadable):
        reader.read(words)


@given(
    value=st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_any_json_is_either_read_or_refused(value):
    for reader in READERS:
        for words in (json.dumps(value), json.dumps({"coins": value, "score": value, "basis": value, "move": value})):
            with suppress(Unreadable):
                reader.read(words)


@pytest.mark.parametrize("reader", [COINS, MARKS, MOVE], ids=lambda r: type(r).__name__)
def test_hint_and_schema_name_the_same_fields(reader):
    for name in reader.schema["required"]:
        assert f'"{name}"' in reader.hint


def test_readers_that_cannot_work_are_refused_when_made():
    for make in (
        lambda: Amount("x", 2, 1),
        lambda: Amount("x", 0.1, 0.9, whole=True),
        lambda: Choice("x", ("a", "A")),
        lambda: Choice("x", ()),
        lambda: Fields({}),
    ):
        with pytest.raises(TaskError):
            make()


@pytest.mark.parametrize("words", ["```" + "a" * 190_000, "`" * 190_000, "```\n" * 60_000, "``` " * 40_000 + "\n"])
def test_no_text_keeps_a_reader_of_code_busy(words):
    began = time.process_time()
    with suppress(Unreadable):
        Code().read(words)
    assert time.process_time() - began < 0.5  # it is linear; a quadratic one takes minutes


@pytest.mark.parametrize("reader", READERS, ids=lambda r: type(r).__name__)
def test_what_is_nested_too_deeply_is_unreadable(reader):
    for depth in (60, 900, 100_000):
        deep = "[" * depth + "]" * depth
        words = f'{{"coins": {deep}, "score": {deep}, "basis": {deep}, "move": {deep}, "share": {deep}}}'
        if reader.schema is not None:
            with pytest.raises(Unreadable):
                reader.read(words)


def test_fenced_blocks_may_stand_anywhere_and_stay_open():
    assert Code().read("Here it is: ```python\r\nx = 1\r\n``` and that is all") == "x = 1"
    assert Code().read("```py\nshort = 1\n```\n```text\nsomething much longer than the program\n```") == "short = 1"


BROKEN = {
    "unclosed": '{"coins": 5, "reason": "fair"',
    "unquoted": "{reason: fair, coins: 5}",
    "python": "{'reason': 'fair', 'coins': 5,}",
    "in words": 'My move: {"reason": "a "quoted" word", "coins": 5} as agreed',
}


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
def test_broken_json_is_mended_counted_and_not_asked_for_again(said):
    reading = read(Ask((Seat("a"),), "?", COINS, None, (), 2, True), said, cut=False, last=False)
    assert (reading.value, reading.settled, reading.kind, reading.outcome) == (5, True, "repaired", "kept")


@pytest.mark.parametrize(
    "said",
    [
        "{", "{ hello", "{coins}", "no braces", '{"coins": "many"', "{" * 5000, '{"coins": [' * 400, '{"coins": 5',
        '{"coins": 10 - 3}', '{"coins": 1 not 9}', '{"coins": 2 0}', '{"coins": 5 or maybe 6}', '{"coins": 7%}', '{"coins": 1e',
        '{"reason": "x", "coins": 1', "The set {0..9} then coins: 7", '{"a":' + "(" * 9000,
    ],
)  # fmt: skip
def test_what_is_broken_beyond_repair_stays_unreadable(said):
    began = time.perf_counter()
    reading = read(Ask((Seat("a"),), "?", COINS, None, (), 2, True), said, cut=False, last=False)
    assert not reading.settled
    assert reading.kind in ("unreadable", "out_of_bounds")
    assert time.perf_counter() - began < 2


@given(st.text(alphabet='{}[]":, abc5\n\\', max_size=300))
@settings(deadline=2000)
def test_mending_never_crashes(said):
    assert mended(said) is None or mended(said).startswith("{")
