"""What holds for every memory, whatever was played."""

from hypothesis import given, settings
from hypothesis import strategies as st

from parley.memory.experiences import Experience, MemoryOwner, MemoryPolicy, select_experiences
from parley.rules.pool import Example

TURNS = (Example("question", "answer"),)


@st.composite
def experiences(draw):
    match = draw(st.integers(-5, 50).filter(bool))
    stage = 0 if match < 0 else draw(st.integers(0, 3))
    arm = draw(st.sampled_from(["one", "two"])) if stage else ""
    alias, role = draw(st.sampled_from("ab")), draw(st.sampled_from("xy"))
    item, series = f"q{draw(st.integers(0, 4))}", draw(st.integers(1, 2))
    success, right = draw(st.booleans()), draw(st.booleans())
    return Experience(
        match, "seat", alias, role, item, stage, arm, series, "cue", TURNS, success, right
    )


policies = st.builds(
    MemoryPolicy,
    st.sampled_from(["positive", "all"]),
    st.sampled_from(["merge", "replace"]),
    st.booleans(),
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(experiences(), max_size=25, unique_by=lambda each: each.match),
    st.integers(1, 4),
    policies,
    st.randoms(),
)
def test_a_memory_is_the_owners_own_and_does_not_depend_on_order(found, stage, policy, rng):
    owner, held_out = MemoryOwner("a", "x", "one", 1), frozenset({"q0"})
    memory = select_experiences(found, owner, stage, policy, held_out)
    for each in memory:
        assert (each.alias, each.role) == ("a", "x")
        assert each.item != "q0"
        assert each.success or policy.keep == "all"
        if each.match > 0:
            assert each.series == 1
            assert each.stage < stage
            assert each.arm in ("", "one")
            assert each.stage > 0 or not policy.stream
            assert each.stage == stage - 1 or policy.refresh == "merge"
    shuffled = rng.sample(found, len(found))
    assert select_experiences(shuffled, owner, stage, policy, held_out) == memory
    if policy.refresh == "merge":
        later = select_experiences(found, owner, stage + 1, policy, held_out)
        assert {each.item for each in memory} <= {each.item for each in later}
