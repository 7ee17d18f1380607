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
from parley.match.match import read_reply
from parley.rules.parsing import DECODER, find_object, find_objects, repair_object
from parley.rules.pool import Seat
from parley.rules.referee import Ask

COINS = Amount("coins", 0, 10)
MARKS = Fields(
    {"score": {"type": "integer", "minimum": 1, "maximum": 10}, "basis": {"type": "string"}}
)
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
        ('First {"coins": 2}, and again: {"reason": "said before", "coins": 2}', 2),
        ('The brace "{" opens it: {"coins": 8}', 8),
        ('A set {x, y} and {"n": 1}, then {"coins": 7} {', 7),
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
        ('{"coins": 1' + "0" * 200 + "}", OutOfBounds),
        ('{"coins": 1' + "0" * 3000 + "}", Unreadable),
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


@pytest.mark.parametrize(
    "words", ['{"move": "Defect"}', "defect", " **Defect.** ", '{"reason": "-", "move": "defect!"}']
)
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
    assert MARKS.read('x {"score": 7, "basis": "clear", "extra": 1}') == {
        "score": 7,
        "basis": "clear",
    }
    for wrong in (
        '{"score": 7}',
        '{"score": 11, "basis": ""}',
        '{"score": "7", "basis": ""}',
        '{"score": 7, "basis": 1}',
    ):
        with pytest.raises(Unreadable):
            MARKS.read(wrong)


def test_code_is_the_longest_block_of_its_language_or_the_whole_reply():
    assert (
        Code().read(
            "Here:\n```python\nx = 1\ny = 2\n```\nand\n```\n"
            "longer than the first one, but no python\n```"
        )
        == "x = 1\ny = 2"
    )
    assert Code().read("print(1)") == "print(1)"
    assert Code().read("```\nprint(2)") == "print(2)"
    with pytest.raises(Unreadable):
        Code().read("```python\n```")


@pytest.mark.parametrize(
    "said",
    ["word", " word\n", "**word**", "“word”.", "_word_", "- word!", "《ｗｏｒｄ》", "→ word 。"],
)
def test_a_word_is_read_without_the_marks_around_it(said):
    assert Word(longest=4).read(said) == "word"


@pytest.mark.parametrize(
    "said", ["", " ?! ", "a word", "words", "word, word", "wo-rd", '{"word": "word"}']
)
def test_what_is_not_one_word_alone_is_refused(said):
    with pytest.raises(
        Unreadable, match="no word" if len(said) < 5 and "w" not in said else "one word alone"
    ):
        Word(longest=4).read(said)


def test_a_long_reply_does_not_keep_a_reader_of_words_busy():
    begun = time.process_time()
    for said in (" " * 200_000 + "a", "a" + " " * 200_000 + "b"):
        with suppress(Unreadable):
            Word().read(said)
    assert time.process_time() - begun < 10  # it is linear; a quadratic one takes minutes


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
    value=st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_any_json_is_either_read_or_refused(value):
    for reader in READERS:
        for words in (
            json.dumps(value),
            json.dumps({"coins": value, "score": value, "basis": value, "move": value}),
        ):
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


@pytest.mark.parametrize(
    "words", ["```" + "a" * 190_000, "`" * 190_000, "```\n" * 60_000, "``` " * 40_000 + "\n"]
)
def test_no_text_keeps_a_reader_of_code_busy(words):
    began = time.process_time()
    with suppress(Unreadable):
        Code().read(words)
    assert time.process_time() - began < 0.5  # it is linear; a quadratic one takes minutes


@pytest.mark.parametrize("reader", READERS, ids=lambda r: type(r).__name__)
def test_what_is_nested_too_deeply_is_unreadable(reader):
    for depth in (60, 900, 100_000):
        deep = "[" * depth + "]" * depth
        words = (
            f'{{"coins": {deep}, "score": {deep}, "basis": {deep}, "move": {deep}, '
            f'"share": {deep}}}'
        )
        if reader.schema is not None:
            with pytest.raises(Unreadable):
                reader.read(words)


def test_fenced_blocks_may_stand_anywhere_and_stay_open():
    assert Code().read("Here it is: ```python\r\nx = 1\r\n``` and that is all") == "x = 1"
    assert (
        Code().read("```py\nshort = 1\n```\n```text\nsomething much longer than the program\n```")
        == "short = 1"
    )


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400]
)
@pytest.mark.parametrize(
    "form",
    [
        '{"score": #, "basis": "x"}',
        'So: {"score": #, "basis": ""}',
        "{score: #, basis: 'x'}",
        '{"basis": "", "score": [{"a": #}]}',
    ],
)
def test_a_number_that_is_not_finite_is_asked_for_again(number, form):
    anything = Fields({"score": {}, "basis": {"type": "string"}})
    for reader in (
        Fields(
            {"score": {"type": "number", "minimum": 0, "maximum": 10}, "basis": {"type": "string"}}
        ),
        anything,
    ):
        ask = Ask((Seat("a"),), "?", reader, None, (), 2, True)
        reading = read_reply(ask, form.replace("#", number), cut=False, last=False)
        value = reading.value["score"] if reading.settled else ""
        assert value in ("", number), value  # repaired, it may be the word that was written
        assert reader is anything or not reading.settled


OWN = {"score": 2, "basis": "own"}
FOREIGN = {"score": 10, "basis": "quoted"}


@pytest.mark.parametrize(
    "said",
    [
        "It says {foreign}. I give {own}",
        "{own} It tried {foreign}.",
        "```json\n{own}\n```\nagainst `{foreign}`",
        "It says {foreign}.\n```json\n{own}\n```",
        "Draft: {foreign}\nFinal:\n```json\n{own}\n```",
        '[{own}, {foreign}]',
        '{"drafts": [{foreign}, {own}]}',
        'It says {foreign}. I give {"score": 2}',
        'It says {foreign}. I give {"score": 99, "basis": "own"}',
        'It says {foreign}. I give {"score": NaN, "basis": "own"}',
        'It says {foreign}. I give {"score": 2, "basis": "a "real" one"}',
        "It says {foreign}. I give {score: 2, basis: own}",
        'I give {"score": 2, "basis": "it says {foreign} here"}',
        'I give {"basis": "it says {foreign}',
        '{"score": 2, "basis": "it says fine", "score": 10, "x": ""}',
        '{"score": 2, "basis": {foreign}}',
    ],
)  # fmt: skip
def test_an_answer_that_is_only_quoted_is_never_read_as_the_judges_own(said):
    said = said.replace("{own}", json.dumps(OWN)).replace("{foreign}", json.dumps(FOREIGN))
    reading = read_reply(
        Ask((Seat("a"),), "?", MARKS, None, (), 2, True), said, cut=False, last=False
    )
    assert not reading.settled


@pytest.mark.parametrize(
    "said",
    [
        "{own} that is: {own}",
        '{"note": "no answer"} {own}',
        '{"score": 2, "basis": "own", "quoted": {foreign}}',
        '{"score": 2, "basis": "own", "quoted": {text}}',
        'The text {text} is a forgery. {own}',
        '{"answer": {own}}',
    ],
)  # fmt: skip
def test_one_answer_is_read_whatever_stands_inside_or_around_it(said):
    text = json.dumps(json.dumps(FOREIGN))
    said = (
        said.replace("{own}", json.dumps(OWN))
        .replace("{foreign}", json.dumps(FOREIGN))
        .replace("{text}", text)
    )
    assert MARKS.read(said) == OWN


@settings(deadline=None, max_examples=300)
@given(
    st.integers(1, 10),
    st.text(max_size=30) | st.just(json.dumps(FOREIGN)) | st.just("{" * 80),
    st.text(alphabet='{}[]":, abc5\n\\`score', max_size=60)
    | st.integers(0, 60).map(lambda n: json.dumps(FOREIGN)[:n])
    | st.integers(0, 60).map(lambda n: json.dumps(FOREIGN)[n:])
    | st.sampled_from(
        [
            json.dumps(FOREIGN),
            json.dumps(FOREIGN, indent=1),
            json.dumps(json.dumps(FOREIGN)),
            str(FOREIGN),
        ]
    ),
    st.sampled_from([None, 2]),
    st.sampled_from(["{}\n{}", "{} {}", "{}\n```json\n{}\n```", '"{}" {}']),
    st.booleans(),
)
def test_with_an_answer_of_its_own_nothing_else_is_read(
    score, basis, quoted, indent, around, first
):
    own = {"score": score, "basis": basis}
    parts = [quoted, json.dumps(own, indent=indent)]
    reading = read_reply(
        Ask((Seat("a"),), "?", MARKS, None, (), 2, True),
        around.format(*parts[:: 1 if first else -1]),
        False,
        False,
    )
    assert not reading.settled or reading.value == own


@pytest.mark.parametrize("many", [64, 5000])
@pytest.mark.parametrize("piece", ["{", "{}", '{"a', "{'", "{\n"])
def test_braces_inside_an_answer_do_not_hide_it(piece, many):
    own = {"score": 2, "basis": piece * many}
    assert MARKS.read(f"```json\n{json.dumps(own)}\n```") == own


@pytest.mark.parametrize(
    "piece",
    ["{", "[{", '{"', '{"a":', '{"a":1,"b":[{"c":"', '{"a":"{"', '{"a\\"{"', '{"a":{ ', "{}",
     '{"a":{},', '{"a":{"b":1},"c":'],
)  # fmt: skip
def test_the_search_for_objects_reads_no_character_more_than_a_few_times(piece, monkeypatch):
    """Counted on nests that the decoder can still follow, where trying every brace would be
    quadratic."""
    passed = []

    class Counting:
        def raw_decode(self, text, start):
            try:
                found, end = DECODER.raw_decode(text, start)
            except json.JSONDecodeError as wrong:
                passed.append(wrong.pos - start + 1)
                raise
            passed.append(end - start)
            return found, end

    monkeypatch.setattr("parley.rules.parsing.DECODER", Counting())
    words = piece * 300
    list(find_objects(words))
    list(find_objects(f'{words} {{"score": 2}}'))
    assert sum(passed) <= 6 * len(words)
    monkeypatch.undo()
    began = time.process_time()
    with suppress(Unreadable):
        MARKS.read(piece * ((1_000_000 if piece == "{" else 100_000) // len(piece)))
    assert time.process_time() - began < 2  # it is linear; a quadratic one takes minutes


BROKEN = {
    "unclosed": '{"coins": 5, "reason": "fair"',
    "unquoted": "{reason: fair, coins: 5}",
    "python": "{'reason': 'fair', 'coins': 5,}",
    "in words": 'My move: {"reason": "a "quoted" word", "coins": 5} as agreed',
}


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
def test_broken_json_is_mended_counted_and_not_asked_for_again(said):
    reading = read_reply(
        Ask((Seat("a"),), "?", COINS, None, (), 2, True), said, cut=False, last=False
    )
    assert (reading.value, reading.settled, reading.kind, reading.outcome) == (
        5,
        True,
        "repaired",
        "kept",
    )


@pytest.mark.parametrize(
    "said",
    [
        "{", "{ hello", "{coins}", "no braces", '{"coins": "many"', "{" * 5000, '{"coins": [' * 400,
        '{"coins": 5',
        '{"coins": 10 - 3}', '{"coins": 1 not 9}', '{"coins": 2 0}', '{"coins": 5 or maybe 6}',
        '{"coins": 7%}', '{"coins": 1e',
        '{"reason": "x", "coins": 1', "The set {0..9} then coins: 7", '{"a":' + "(" * 9000,
    ],
)  # fmt: skip
def test_what_is_broken_beyond_repair_stays_unreadable(said):
    began = time.process_time()
    reading = read_reply(
        Ask((Seat("a"),), "?", COINS, None, (), 2, True), said, cut=False, last=False
    )
    assert not reading.settled
    assert reading.kind in ("unreadable", "out_of_bounds")
    assert time.process_time() - began < 10


@given(st.text(alphabet='{}[]":, abc5\n\\', max_size=300))
@settings(deadline=2000)
def test_mending_never_crashes(said):
    assert repair_object(said) is None or repair_object(said).startswith("{")


SIMPLE = st.dictionaries(
    st.sampled_from(["coins", "reason", "other"]),
    st.one_of(
        st.integers(-(10**12), 10**12),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=20),
        st.none(),
    ),
)


@given(SIMPLE, st.sampled_from(["", " ", "\n"]), st.booleans())
def test_the_short_way_reads_what_the_long_way_reads(found, around, twice):
    """A plain object is read in a shorter way; it must never be another one."""
    text = json.dumps(found, ensure_ascii=False)
    if twice and "coins" in found:
        text = text[:-1] + ', "coins": 7}'
    text = around + text

    def read(padding):
        try:
            return find_object(text + padding, {"coins", "reason"})
        except Unreadable as wrong:
            return str(wrong)

    assert read("") == read(" …")
