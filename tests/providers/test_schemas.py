"""Schemas as strict endpoints want them: closed, complete, every word with a type."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.providers import anthropic, azure, google, groq, openai, openrouter
from parley.providers._schemas import make_strict
from parley.rules.readers import Amount, Choice, Fields

DIALECTS = {
    module.__name__.rpartition(".")[2]: module.Provider.schema_limits
    for module in (anthropic, azure, google, groq, openai, openrouter)
}
WORDS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "description",
    "title",
}
NAMES = st.text("abcdefgh", min_size=1, max_size=4)


def node(**parts):
    """Schemas with these keywords, some of them left out."""
    return st.fixed_dictionaries({}, optional=parts)


def typed(kind, **parts):
    return node(
        description=st.just("what it is"), default=st.none(), title=st.just("T"), **parts
    ).map(lambda found: {"type": kind, **found})


LEAVES = st.one_of(
    typed(
        "string",
        minLength=st.just(1),
        maxLength=st.just(9),
        pattern=st.just("^[a-z]+$"),
        format=st.just("date"),
    ),
    typed(
        "integer",
        minimum=st.just(0),
        maximum=st.just(9),
        multipleOf=st.just(3),
        exclusiveMinimum=st.just(-1),
    ),
    typed("number", minimum=st.just(0.5), exclusiveMaximum=st.just(9)),
    typed("boolean"),
    st.lists(st.sampled_from(["a", "b", 1, 2.5, True, None]), min_size=1, unique=True).map(
        lambda words: {"enum": words}
    ),
    st.sampled_from([{"const": "x"}, {"const": 3}, {"type": ["string", "null"]}]),
)


def grown(inner):
    """Lists, objects whose properties may be left out, and either of two."""
    properties = st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(
            inner, node(minItems=st.just(1), maxItems=st.just(3), uniqueItems=st.just(True))
        ).map(lambda found: {"type": "array", "items": found[0], **found[1]}),
        st.tuples(
            properties, node(additionalProperties=st.booleans(), minProperties=st.just(1))
        ).map(lambda found: {"type": "object", "properties": found[0], **found[1]}),
        st.tuples(st.sampled_from(["anyOf", "oneOf"]), inner, inner).map(
            lambda found: {found[0]: [*found[1:]]}
        ),
    )


FIELDS = st.dictionaries(
    NAMES, st.recursive(LEAVES, grown, max_leaves=6), min_size=1, max_size=3
).map(Fields)
READERS = st.one_of(
    FIELDS,
    st.builds(Amount, NAMES, st.just(0), st.integers(1, 9), st.booleans()),
    st.builds(Choice, NAMES, st.lists(NAMES, min_size=1, unique=True).map(tuple)),
)


def assert_strict(schema, limits):
    assert schema.keys() <= WORDS | limits
    assert "type" in schema or "anyOf" in schema
    kinds = schema.get("type", [])
    if "object" in kinds:
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"]) != []
    else:
        assert not {"properties", "required", "additionalProperties"} & schema.keys()
    assert ("array" in kinds) == ("items" in schema)
    for inside in (
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", ()),
        *([schema["items"]] if "items" in schema else []),
    ):
        assert_strict(inside, limits)


@settings(deadline=None)
@given(READERS)
@pytest.mark.parametrize("limits", DIALECTS.values(), ids=DIALECTS)
def test_what_readers_ask_for_can_be_said_by_strict_rules(limits, reader):
    said = make_strict(reader.schema, limits)
    assert said["type"] == "object"
    assert said["properties"].keys() == reader.schema["properties"].keys()
    assert_strict(said, limits)


OPEN = {
    "a map": {"type": "object", "additionalProperties": {"type": "number"}},
    "a map besides": {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "additionalProperties": {"type": "number"},
    },
    "any object": {"type": "object"},
    "anything": {},
    "always": True,
    "a list of anything": {"type": "array"},
    "by pattern": {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "patternProperties": {"^x": {"type": "string"}},
    },
    "all of": {"allOf": [{"type": "string"}, {"maxLength": 3}]},
    "odd words": {"enum": [[1], "a"]},
}


@pytest.mark.parametrize("schema", OPEN.values(), ids=OPEN)
def test_what_strict_rules_have_no_words_for_is_not_said_otherwise(schema):
    assert (
        make_strict(
            {"type": "object", "properties": {"a": {"type": "array", "items": schema}}}, frozenset()
        )
        is None
    )


def test_limits_that_are_not_taken_are_said_in_words():
    schema = {
        "type": "string",
        "description": "a word",
        "maxLength": 3,
        "pattern": "^a",
        "default": "abc",
    }
    assert make_strict(schema, frozenset({"pattern"})) == {
        "type": "string",
        "description": "a word (maxLength 3)",
        "pattern": "^a",
    }
