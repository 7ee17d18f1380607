"""The reader of JSON in replies: it finds what is there, and whatever else a model writes is
unreadable, never another error."""

import json
import math

from hypothesis import example, given
from hypothesis import strategies as st

from parley.errors import Unreadable
from parley.rules.parsing import find_fenced_blocks, find_object, finite_number, repair_object
from tests.fuzz.bounded import few_or_many, of_size

NAMES = {"coins", "reason"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
OBJECTS = st.fixed_dictionaries({"coins": VALUES, "reason": VALUES})
# pieces of which replies are made: whole objects, halves of them, and what stands around
PIECES = (
    OBJECTS.map(json.dumps)
    | st.sampled_from(
        ['{"coins"', '"reason":', "{", "}", "[", "]", '"', "\\", ",", ":", "```json\n", "\n```\n"]
        + ["NaN", "Infinity", "1e999", "-", "'coins': 5", "//", "<think>", "\u202e", "\ud800", "{}"]
        + ['{"coins": 5, "coins": 6}', "{" * 60, "[" * 600, "9" * 400]
    )
    | st.text(max_size=10)
)
REPLIES = st.lists(PIECES, max_size=12).map("".join)


def numbers_in(value):
    """All numbers in a value."""
    if isinstance(value, float | int):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(each)


@few_or_many
def test_a_reply_is_read_or_unreadable(sized):
    @of_size(sized)
    @given(REPLIES)
    @example('{"coins": ' + "[" * 100_000)
    @example("{" * 50_000)
    @example('{"coins": 1e999, "reason": ""}')
    @example('{"coins": ' + "9" * 5000 + ', "reason": ""}')
    def check(reply):
        try:
            found = find_object(reply, NAMES)
        except Unreadable:
            return
        assert found.keys() >= NAMES
        assert all(math.isfinite(number) for number in numbers_in(found))

    check()


@few_or_many
def test_an_object_among_words_is_read_as_it_is(sized):
    words = st.text(st.characters(exclude_characters="{}[]\"'`:,\\", codec="utf-8"), max_size=30)

    @of_size(sized)
    @given(words, OBJECTS, words, st.booleans())
    def check(before, wanted, after, fenced):
        said = json.dumps(wanted)
        said = f"```json\n{said}\n```" if fenced else said
        assert find_object(f"{before}\n{said}\n{after}", NAMES) == wanted

    check()


@few_or_many
def test_what_is_repaired_is_json_and_says_the_same(sized):
    @of_size(sized)
    @given(REPLIES)
    def check(reply):
        if (found := repair_object(reply)) is not None:
            assert found.startswith("{")
            find_fenced_blocks(found)

    check()


@few_or_many
def test_whatever_is_given_as_a_number_is_finite_or_none(sized):
    @of_size(sized)
    @given(st.one_of(VALUES, st.text(), st.floats(), st.from_regex(r"[-+]?[0-9._eE]{1,20}\.?")))
    @example("1e999")
    @example("nan")
    @example("١٢")
    @example("1_000")
    def check(value):
        found = finite_number(value)
        assert found is None or math.isfinite(found)

    check()
