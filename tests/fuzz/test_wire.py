"""The wire between a judge and the program that it judges: data arrives as it was sent, and
whatever a hostile program sends is a value of plain types or an error."""

import datetime
import json
import math
import os
from collections import deque
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.sandbox.inside.wire import LARGEST, Channel, Ended, pack, refuse_object, unpack
from parley.sandbox.talk import End, end_in
from tests.fuzz.bounded import few_or_many, of_size

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.binary().map(bytearray)
    | st.complex_numbers()
    | st.decimals()
    | st.fractions()
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas()
    | st.builds(range, st.integers(), st.integers(), st.integers(1))
)
HASHABLE = st.none() | st.booleans() | st.integers() | st.text() | st.fractions() | st.dates()
DATA = st.recursive(
    SCALARS | st.sets(HASHABLE) | st.frozensets(HASHABLE),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.lists(inner).map(deque)
        | st.dictionaries(HASHABLE, inner)
    ),
    max_leaves=12,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*"tszdibcnrxv", "of", ""]), inner, max_size=3)
        | st.builds(
            lambda name, held: {"x": name, "v": held},
            st.sampled_from(
                ["decimal.Decimal", "fractions.Fraction", "datetime.date", "datetime.time"]
                + ["datetime.datetime", "datetime.timedelta", "collections.deque", "os.system"]
            ),
            inner | st.from_regex(r"-?[0-9]{1,3}([./eE][-+]?[0-9]{1,12})?", fullmatch=True),
        )
    ),
    max_leaves=12,
)
PLAIN = (
    type(None), bool, int, float, str, bytes, bytearray, complex, range, list, tuple, set,
    frozenset, dict, deque, Decimal, Fraction, datetime.date, datetime.datetime, datetime.time,
    datetime.timedelta,
)  # fmt: skip


def same(one, other):
    """Whether two values are of the same types and equal, NaN too."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, Decimal):
        return one.as_tuple() == other.as_tuple()
    return one == other


def parts_of(value):
    """A value and everything in it."""
    yield value
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple | set | frozenset | deque):
        for each in value:
            yield from parts_of(each)


@few_or_many
def test_data_arrives_as_it_was_sent(sized):
    @of_size(sized)
    @given(DATA)
    @example({1.5: (), None: {"": set()}})
    @example(Decimal("-0E-5"))
    def check(value):
        crossed = json.loads(json.dumps(pack(value, refuse_object)))
        assert same(unpack(crossed, refuse_object), value)

    check()


@few_or_many
def test_whatever_a_program_sends_is_plain_data_or_an_error(sized):
    @of_size(sized)
    @given(JSON)
    @example({"x": "fractions.Fraction", "v": "1/0"})
    @example({"x": "datetime.timedelta", "v": [10**30]})
    @example({"x": "decimal.Decimal", "v": "many"})
    @example({"x": "os.system", "v": "true"})
    @example({"s": [[]]})
    @example({"n": [1, 2, 0]})
    @example({})
    def check(sent):
        try:
            found = unpack(sent, refuse_object)
        except Exception:
            return  # a judge takes any of them for an answer that is no value
        assert all(type(part) in PLAIN for part in parts_of(found))

    check()


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("fractions.Fraction", "1e20000"),  # with more digits it would fill the memory
        ("fractions.Fraction", "1/1e20000"),
        ("fractions.Fraction", "0.5"),
        ("decimal.Decimal", "1" * 10_001),
        ("fractions.Fraction", "9" * 10_001),
    ],
)
def test_a_number_that_takes_more_than_it_was_sent_with_is_refused(name, held):
    with pytest.raises(ValueError, match=r"not a fraction|at most 10000 characters"):
        unpack({"x": name, "v": held}, refuse_object)


@few_or_many
def test_whatever_bytes_arrive_are_a_frame_or_an_error(sized):
    frames = st.binary(max_size=200).map(lambda body: len(body).to_bytes(4, "big") + body)
    texts = JSON.map(lambda value: json.dumps(value).encode())

    @of_size(sized)
    @given(st.binary(max_size=200) | frames | texts.map(lambda b: len(b).to_bytes(4, "big") + b))
    @example((LARGEST + 1).to_bytes(4, "big"))
    @example(b"\0\0\0\2\xff\xff")
    @example((40_000).to_bytes(4, "big") + b"[" * 40_000)
    def check(sent):
        read, write = os.pipe()
        try:
            os.write(write, sent)
            os.close(write)
            channel = Channel(read, -1)
            try:
                found = channel.receive()
            except (Ended, ValueError, RecursionError):
                return
            assert type(found) in (type(None), bool, int, float, str, list, dict)
        finally:
            os.close(read)

    check()


@few_or_many
def test_whatever_is_said_of_an_end_is_an_end(sized):
    told = st.fixed_dictionaries({"end": JSON, "cpu": JSON, "peak": JSON})

    @of_size(sized)
    @given(
        st.binary(max_size=200)
        | JSON.map(lambda v: json.dumps(v).encode())
        | told.map(json.dumps).map(str.encode)
    )
    @example(b"[" * 100_000 + b"}")  # found
    @example(b'{"end": ["exit 0"], "cpu": "much", "peak": null}')  # found
    @example(b'{"end": "exit 0", "cpu": 0.5, "peak": 1000}')
    @example(b'{"end": "exit 0", "cpu": NaN, "peak": 1000}')  # found
    def check(said):
        found = end_in(said)
        assert isinstance(found, End)
        assert isinstance(found.end, str)
        assert isinstance(found.cpu, float | int)
        assert math.isfinite(found.cpu)
        assert isinstance(found.peak, int)

    check()
