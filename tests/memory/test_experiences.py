"""Which experiences a memory holds, and how recorded matches become demonstrations."""

import pytest

from parley.memory.experiences import (
    Experience,
    MemoryOwner,
    MemoryPolicy,
    choose_held_out,
    item_order,
    memory_version,
    select_experiences,
)
from parley.memory.interactions import RecordedMatch, RecordedReply, collect_interactions
from parley.memory.same_items import ItemNumbers
from parley.rules.pool import Example

OWNER = MemoryOwner("a", "student", "evolve", 1)


def made(match, item="q1", stage=0, success=True, **facts):
    arm = facts.pop("arm", "evolve" if stage else "")
    turns = (Example(f"{item}?", f"answer {match}"),)
    facts = {"alias": "a", "role": "student", "series": 1, "cue": item, **facts}
    return Experience(
        match, "student", item=item, stage=stage, arm=arm, turns=turns, success=success,
        right=success, **facts,
    )  # fmt: skip


def numbers(*experiences, stage=2, policy=None, held_out=frozenset()):
    found = select_experiences(experiences, OWNER, stage, policy or MemoryPolicy(), held_out)
    return [each.match for each in found]


def test_a_memory_holds_only_what_its_owner_did_in_earlier_stages():
    strangers = [
        made(1, alias="b"),
        made(2, role="teacher"),
        made(3, series=2),
        made(4, stage=1, arm="other"),
        made(5, stage=2),
        made(6, stage=3),
    ]
    assert numbers(*strangers, made(7), made(8, item="q2", stage=1)) == [7, 8]


def test_a_newer_success_replaces_the_older_one_and_a_failure_removes_nothing():
    assert numbers(made(1), made(2, stage=1)) == [2]
    assert numbers(made(1), made(2, stage=1, success=False)) == [1]
    # the order in which matches were read does not matter
    assert numbers(made(2, stage=1), made(1)) == [2]


def test_with_replace_only_the_stage_before_counts():
    policy = MemoryPolicy(refresh="replace")
    assert numbers(made(1), made(2, item="q2", stage=1), policy=policy) == [2]


def test_failures_are_kept_beside_successes_if_all_are():
    policy = MemoryPolicy(keep="all")
    assert numbers(made(1), made(2, stage=1, success=False), policy=policy) == [1, 2]


def test_held_out_items_and_the_control_of_a_stream_are_not_remembered():
    assert numbers(made(1), made(2, item="q2"), held_out=frozenset({"q1"})) == [2]
    policy = MemoryPolicy(stream=True)
    assert numbers(made(1), made(2, item="q2", stage=1), policy=policy) == [2]


def test_what_was_transferred_is_older_than_everything_and_of_all_series():
    transferred = made(-1, series=3, stage=4)
    assert numbers(transferred) == [-1]
    assert numbers(transferred, made(1)) == [1]


def test_a_memory_is_in_the_order_of_items_whatever_came_first():
    found = [made(1, item="q10"), made(2, item="q2"), made(3, item="q1")]
    assert numbers(*found) == numbers(*found[::-1]) == [3, 2, 1]
    assert item_order("a2") < item_order("a10")
    one, two = (select_experiences(each, OWNER, 1, MemoryPolicy()) for each in (found, found[::-1]))
    assert memory_version(one) == memory_version(two) != memory_version(one[:2])


def test_strata_of_one_item_hold_out_their_share_together():
    strata = {f"subject {number}": [f"q{number}"] for number in range(57)}
    assert len(choose_held_out(strata, 0.3, 0)) == 17
    turned = dict(reversed(strata.items()))
    assert choose_held_out(turned, 0.3, 0) == choose_held_out(strata, 0.3, 0)
    assert choose_held_out(strata, 0.3, 1) != choose_held_out(strata, 0.3, 0)


def test_every_stratum_holds_out_its_share_in_whatever_order():
    strata = {"x": [f"x{n}" for n in range(10)], "y": [f"y{n}" for n in range(20)]}
    found = choose_held_out(strata, 0.3, 7)
    assert [sum(item[0] == name for item in found) for name in "xy"] == [3, 6]
    turned = {name: items[::-1] for name, items in strata.items()}
    assert choose_held_out(turned, 0.3, 7) == found != choose_held_out(strata, 0.3, 8)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("What is it?\nred\ngreen", "what is it\ngreen\nred", True),
        ("What is it?\nred", "What is it?\nblue", False),
        ("", "", False),
    ],
)
def test_the_same_item_is_the_same_words_in_any_order_of_choices(one, other, same):
    numbers = ItemNumbers()
    assert (numbers.number("q1", one) == numbers.number("q2", other)) == same
    assert numbers.number("q1", one) == numbers.number("q1", one)


def test_ids_of_another_run_mean_nothing_here():
    numbers = ItemNumbers()
    assert numbers.number("q1", "") != numbers.number("q1", "", foreign=True)


def recorded(messages, replies, not_taken=()):
    said = {
        place: RecordedReply(*(each if isinstance(each, tuple) else (each, "stop")))
        for place, each in replies.items()
    }
    return collect_interactions(RecordedMatch(1, messages, said, frozenset(not_taken)))


RULES = [0, "tell", None, ["a", "b"], "the rules", 0]


def ask(round, seat, words):
    return [round, "ask", None, [seat], words, 0]


def reply(round, seat, attempt=0):
    return [round, "reply", seat, [], None, attempt]


def test_an_interaction_has_the_rules_once_and_then_turn_by_turn():
    found = recorded(
        [
            RULES,
            ask(1, "a", "first?"),
            reply(1, "a"),
            [1, "tell", None, ["a"], "b said no", 0],
            ask(2, "a", "second?"),
            reply(2, "a"),
        ],
        {(1, "a", 0): "yes", (2, "a", 0): "well"},
    )
    told, turns = found["a"]
    assert told == "the rules"
    assert turns == (Example("first?", "yes"), Example("b said no\n\nsecond?", "well"))
    assert "b" not in found  # nobody asked it


def test_of_replies_that_were_asked_for_again_only_the_readable_one_is_kept():
    messages = [
        ask(1, "a", "q?"),
        reply(1, "a"),
        [1, "again", None, ["a"], "in the right form, please", 1],
        reply(1, "a", 1),
    ]
    replies = {(1, "a", 0): "mumble", (1, "a", 1): "B"}
    found = recorded(messages, replies, {(1, "a", 0)})
    assert found["a"].turns == (Example("q?", "B"),)
    # a free first reply is the one that belongs to the question
    assert recorded(messages, replies)["a"].turns == (Example("q?", "mumble"),)


def test_what_was_cut_or_never_readable_is_no_example():
    messages = [ask(1, "a", "q?"), reply(1, "a")]
    assert recorded(messages, {(1, "a", 0): ("long", "length")}) == {"a": None}
    assert recorded(messages, {(1, "a", 0): "mumble"}, {(1, "a", 0)}) == {"a": None}
