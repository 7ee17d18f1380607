"""Word guessing: turns, breaches, ends and scores; who hears what; who sits where; planted
abilities."""

import csv
import json
import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from parley import Result, Seat, UsageError, WordPair
from parley.audit.audit import audit_run
from parley.datasets.catalogue import load_items
from parley.plans.arrangements import SeatingProblem, seat_all_together
from parley.results.parts.external import read_scores
from parley.rules.bot_view import QUOTED
from parley.rules.pool import text_of
from parley.statistics.intervals import compute_interval
from parley.tasks._common.word_matching import mentions_word
from parley.tasks.word_guessing.analysis import mean_over_matches
from parley.tasks.word_guessing.bots import associated_words
from parley.tasks.word_guessing.rule import EMPTY, OWN_WORD, REPEATED, WordGuessing
from parley.testing import Listed, Speaking, check_planted, play

PAIR = WordPair("1", "cake", "bread", "food", ("gateau",), ("loaf",))
ITEMS = load_items("samples", WordPair)


class Played:
    """A match in which each seat says what a function of its number, its word and its count of asks
    returns."""

    def __init__(self, says, players=2, seed=1, item=PAIR, **params):
        seats = [Seat("players", number) for number in range(1, players + 1)]
        counts = Counter()

        def speak(view):
            told = view[0]["content"]
            word = item.a if f"“{item.a}”" in told else item.b
            counts[view.seat] += 1
            said = says(view.seat.number, word, counts[view.seat])
            if isinstance(said, str):
                return said
            others = {f"player_{seat.number}": "" for seat in seats if seat != view.seat}
            return json.dumps(
                {"description": f"thing {view.seat.number} {counts[view.seat]}", **others, **said}
            )

        self.cast = {seat: Speaking(speak) for seat in seats}
        self.tape = Listed()
        self.outcome = play(
            WordGuessing(**params), self.cast, seed=seed, item=item, record=self.tape
        )
        note = self.outcome.notes[0].facts
        self.words = {Seat.of(key): word for key, word in note["guessing"]["words"].items()}
        self.firsts = [note["guessing"]["firsts"][seat.key] for seat in seats]
        self.rounds, self.both = note["guessing"]["rounds"], note["guessing"]["both"]
        self.scores = [self.outcome.scores[seat] for seat in seats]
        self.faults = [(each.seat.number, each.kind) for each in self.outcome.violations]

    def shown(self, number):
        """All that the referee said to a seat."""
        view = self.cast[Seat("players", number)].views[-1]
        return "\n".join(turn["content"] for turn in view if turn["role"] == "user")


def partner(word):
    return {"cake": "bread", "bread": "cake"}[word]


def right_at(**asks):
    """Everybody guesses right from the ask on that is named for its number."""

    def says(number, word, ask):
        guess = partner(word) if ask >= asks.get(f"p{number}", math.inf) else "milk"
        return {f"player_{seat}": guess for seat in range(1, 11) if seat != number}

    return says


def test_first_correct_guesses_are_counted_in_turns_of_all_players():
    match = Played(right_at(p1=2, p2=2), rounds=5)
    assert match.firsts == [3, 4]
    assert (match.both, match.rounds) == (2, 5)
    first, second = match.scores
    assert first == pytest.approx(
        {
            "comprehension": 0.5,
            "confusion": math.log(4, 11),
            "age": first["age"],
            "first_guess": 3,
        }
    )
    assert second["comprehension"] == pytest.approx(1 / math.log2(5))
    assert second["confusion"] == pytest.approx(math.log(3, 11))
    assert first["age"] == pytest.approx(2 * 0.5 * math.log(4, 11) / (0.5 + math.log(4, 11)))


@pytest.mark.parametrize(
    ("params", "firsts", "comprehension", "confusion"),
    [
        ({"unit": "round"}, [3, None], [0.5, 0], [1, math.log(3, 6)]),
        (
            {"unit": "round", "never": "l+1"},
            [3, None],
            [0.5, 1 / math.log2(7)],
            [1, math.log(3, 6)],
        ),
        ({"never": "l+1"}, [5, None], [1 / math.log2(6), 1 / math.log2(12)], [1, math.log(5, 11)]),
        ({}, [5, None], [1 / math.log2(6), 0], [1, math.log(5, 11)]),
    ],
)
def test_units_and_who_never_guesses(params, firsts, comprehension, confusion):
    match = Played(right_at(p1=3), **params)
    assert match.firsts == firsts
    assert match.both is None
    assert [score["comprehension"] for score in match.scores] == pytest.approx(comprehension)
    assert [score["confusion"] for score in match.scores] == pytest.approx(confusion)


@pytest.mark.parametrize(
    ("unit", "length", "confusion"),
    [
        ("turn", "maximum", math.log(4, 11)),
        ("turn", "actual", math.log(4, 7)),
        ("round", "actual", math.log(2, 4)),
    ],
)
def test_a_match_may_end_with_the_round_in_which_both_words_are_guessed(unit, length, confusion):
    match = Played(right_at(p1=3, p2=2), end="all_guessed", unit=unit, length=length)
    assert match.rounds == 3
    assert match.scores[0]["confusion"] == pytest.approx(confusion)
    assert Played(right_at(p1=3), end="all_guessed").rounds == 5


def test_only_successful_matches_count_where_that_is_wanted():
    for says, end, successful, late in [
        (right_at(p1=3, p2=1), "rounds", True, True),
        (right_at(p1=3, p2=1), "all_guessed", True, True),
        (right_at(p1=3), "rounds", False, False),
        (right_at(p1=2, p2=1), "rounds", True, False),  # the fastest, which played on
        (right_at(p1=2, p2=1), "all_guessed", False, False),  # ended with the second round
    ]:
        for only, counts in (("successful", successful), ("successful_late", late)):
            match = Played(says, end=end, only=only)
            for score in match.scores:
                assert all((value is not None) is counts for value in score.values())


def test_who_never_guesses_right_has_no_first_guess():
    assert [score["first_guess"] for score in Played(right_at(p1=3)).scores] == [5, None]
    assert Played(right_at(p1=3), unit="round").scores[0]["first_guess"] == 3
    (metric,) = [each for each in WordGuessing().metrics({"players": 4}) if each.unit]
    assert (metric.name, metric.low, metric.high, metric.unit, metric.better) == (
        "first_guess", 1, 20, "turns", "lower",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("players", "minority", "small"), [(3, 0, 1), (5, 0, 2), (5, 1, 1), (4, 1, 1), (6, 3, 3)]
)
def test_groups_may_be_of_unequal_size(players, minority, small):
    rarer, alone = Counter(), Counter()
    for seed in range(40):
        match = Played(
            right_at(p1=1, p2=2), players=players, minority=minority, seed=seed, rounds=2
        )
        sizes = Counter(match.words.values())
        assert sorted(sizes.values()) == [small, players - small]
        rarer.update([min(sizes, key=sizes.get)])
        alone.update(seat for seat, word in match.words.items() if sizes[word] == small)
        told = f"{small} of the players have one of them, {players - small} have the other"
        assert (told in match.shown(1)) is (2 * small != players)
        assert ("Half of the players" in match.shown(1)) is (2 * small == players)
        for seat, score in zip(match.words, match.scores, strict=True):
            rivals = [
                first or players * 2 + 1
                for rival, first in zip(match.words, match.firsts, strict=True)
                if match.words[rival] != match.words[seat]
            ]
            assert score["confusion"] == pytest.approx(math.log(min(rivals), players * 2 + 1))
    assert len(alone) == players
    if 2 * small != players:
        assert min(rarer["cake"], rarer["bread"]) > 5  # either word may be the rarer one


def test_three_and_five_play_at_one_table(tmp_path):
    for models in ("abc", "abcde"):
        found = parley.run(
            "word_guessing",
            models=dict.fromkeys(models, "bot/guesser"),
            items=ITEMS[: len(models)],
            rounds=1,
            store=tmp_path,
        )
        assert {len(match["seats"]) for match in found.matches} == {len(models)}
        assert not audit_run(found.ref).breaches
        for seat in found.matches[0]["seats"]:
            assert {match["seats"][seat] for match in found.matches} == set(models)


def test_a_minority_is_at_most_half(tmp_path):
    with pytest.raises(UsageError, match="`minority=3` needs at least 6 players, but there are 4"):
        parley.run(
            "word_guessing",
            models=dict.fromkeys("abcd", "bot/guesser"),
            items=[PAIR],
            minority=3,
            store=tmp_path,
        )


def test_a_guess_that_holds_both_words_is_none():
    match = Played(lambda number, word, ask: {f"player_{3 - number}": f"{partner(word)} {word}"})
    assert match.firsts == [None, None]


def test_in_groups_of_two_only_the_word_of_the_other_group_counts():
    def own_for_all(number, word, ask):
        return {f"player_{seat}": word for seat in range(1, 5) if seat != number}

    match = Played(own_for_all, players=4)
    assert sorted(match.words.values()) == ["bread", "bread", "cake", "cake"]
    assert match.firsts == [None] * 4
    match = Played(right_at(p1=1, p2=2, p3=3, p4=4), players=4)
    assert match.firsts == [1, 6, 11, 16]
    for seat, score in zip(match.words, match.scores, strict=True):
        rivals = [
            f
            for rival, f in zip(match.words, match.firsts, strict=True)
            if match.words[rival] != match.words[seat]
        ]
        assert score["confusion"] == pytest.approx(math.log(min(rivals), 21))


def test_the_word_of_the_other_group_named_for_a_teammate_does_not_count():
    words = Played(right_at(), players=4).words
    mates = {
        seat.number: other.number
        for seat in words
        for other in words
        if words[seat] == words[other] and seat != other
    }
    match = Played(lambda number, word, ask: {f"player_{mates[number]}": partner(word)}, players=4)
    assert match.words == words
    assert match.firsts == [None] * 4


def test_synonyms_and_spellings_count():
    def says(number, word, ask):
        return {f"player_{3 - number}": {"cake": "a Loaf", "bread": "Gâteau"}[word]}

    assert Played(says).firsts == [1, 2]


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [("My WORD is {word}s.", OWN_WORD), ("  …", EMPTY), ("THING 1 1!", REPEATED)],
)
def test_a_breach_is_recorded_and_asked_for_again_once(wrong, kind):
    def says(number, word, ask):
        return {"description": wrong.format(word=word)} if (number, ask) == (2, 1) else {}

    match = Played(says)
    assert match.faults == [(2, kind)]
    assert "lost its turn" not in match.shown(1)
    assert len(match.cast[Seat("players", 2)].views) == 6
    assert "thing 2 2" in match.shown(1)


def test_after_two_breaches_the_turn_is_void_and_its_guess_too():
    def says(number, word, ask):
        bad = {"description": f"It is {word}!", "player_1": partner(word)}
        return (
            bad
            if number == 2 and ask <= 2
            else {"player_1": partner(word)}
            if number == 2 and ask == 4
            else {}
        )

    match = Played(says)
    assert match.faults == [(2, OWN_WORD)] * 2
    assert match.firsts == [None, 6]  # the void turn is one of the six
    assert match.shown(1).count("lost its turn") == 1


def test_what_cannot_be_read_is_asked_for_again_and_then_the_turn_is_void():
    match = Played(lambda number, word, ask: "no idea" if number == 1 and ask <= 2 else {})
    assert [kind for _, kind in match.faults] == ["unreadable"] * 2
    assert match.shown(2).count("lost its turn") == 1
    assert match.outcome.state == "done"


def test_guesses_are_private_unless_open():
    def says(number, word, ask):
        return {
            f"player_{seat}": "milk" if seat % 2 else word for seat in range(1, 5) if seat != number
        }

    closed, opened = (Played(says, players=4, open_guesses=shown) for shown in (False, True))
    assert "milk" not in closed.shown(1)
    assert "Player 3: milk" in opened.shown(1)
    for seat, word in opened.words.items():
        # it was never guessed by those who do not have it
        assert not mentions_word(opened.shown(seat.number), partner(word))


# The ways in which texts of the next test say a word; looked for letter by letter, and not by the
# code that is tested.
LEAFLIKE = WordPair("2", "leaf", "cookie")
FORMS = {"leaf": ("leaf", "leaves", "leafs"), "cookie": ("cookie", "cookies")}
FRAGMENTS = [
    "leaf",
    "COOKIE",
    "Leaves",
    "cookies",
    "l-e-a-f",
    "c-o-o-k-i-e-s",
    "le\u200baf",
    "ｃｏｏｋｉｅ",
    "the leafs",
]
SAID = st.lists(
    st.sampled_from([*FRAGMENTS, "soft", "sweet", "green", "l", "eaf", "coo", "kie", "kies"]),
    max_size=4,
).map(" ".join)


def told(text, word):
    """Whether a text says a word in one of its forms, whole or in pieces, but not inside
    another."""
    plain = unicodedata.normalize("NFKC", text).replace("\u200b", "").lower()
    return any(
        re.search(rf"(?<![a-z]){'[^a-z]*'.join(form)}(?![a-z])", plain) for form in FORMS[word]
    )


@given(st.data(), st.sampled_from([2, 4]), st.booleans(), st.integers(0, 50))
def test_no_word_reaches_anybody_before_somebody_else_has_said_it(data, players, opened, seed):
    def says(number, word, ask):
        guesses = {
            f"player_{seat}": data.draw(SAID) for seat in range(1, players + 1) if seat != number
        }
        return {"description": data.draw(SAID), **guesses}

    match = Played(says, players=players, seed=seed, item=LEAFLIKE, rounds=2, open_guesses=opened)
    other = {"leaf": "cookie", "cookie": "leaf"}
    spoken = set()  # words that were said by somebody who does not have them
    for message in match.tape.messages:
        if message.sender is not None:
            reply = text_of(
                match.tape.calls[message.round, message.sender, message.attempt].reply.content
            )
            theirs = other[match.words[message.sender]]
            spoken |= (
                {theirs}
                if any(told(text, theirs) for text in json.loads(reply).values())
                else set()
            )
            continue
        words = text_of(message.content or "")
        for _, who, said in QUOTED.findall(words):
            speaker = Seat("players", int(who.split()[1]))
            assert speaker not in message.audience
            assert not told(said, match.words[speaker])
        for seat in message.audience:
            if told(words, other[match.words[seat]]):
                assert other[match.words[seat]] in spoken
        assert not any(
            told(QUOTED.sub("", words), other[match.words[seat]]) for seat in message.audience
        )


@dataclass(frozen=True)
class InEvenNumbers(WordGuessing):
    """A game whose players come in twos."""

    roles = {"players": parley.Role(2, 10, step=2)}


def test_a_number_of_players_that_a_task_does_not_seat_is_refused(tmp_path):
    options = {"models": dict.fromkeys("abc", "bot/guesser"), "items": [PAIR], "store": tmp_path}
    with pytest.raises(
        UsageError,
        match="has 2, 4, 6, 8 or 10 seats for role `players`, but you named 3 models: use "
        "`--plan cycles`",
    ):
        parley.run(InEvenNumbers(), **options)
    with pytest.raises(
        UsageError,
        match="--seats 3 is not possible, because a match of the task word_guessing has 2, 4, 6, 8",
    ):
        parley.run(InEvenNumbers(), plan="round_robin", seats=3, **options)


def test_an_odd_number_of_models_can_meet_in_twos(tmp_path):
    found = parley.run(
        "word_guessing",
        models=dict.fromkeys("abc", "bot/guesser"),
        items=[PAIR],
        plan="cycles",
        seats=2,
        rounds=1,
        store=tmp_path,
    )
    assert [len(match["seats"]) for match in found.matches] == [2, 2, 2]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"rounds": 0}, "at least 1"),
        ({"rounds": 2, "only": "successful"}, "more than 2"),
        ({"rounds": 2, "only": "successful_late"}, "more than 2"),
    ],
)
def test_parameters_that_cannot_be_are_refused(params, said):
    with pytest.raises(ValueError, match=said):
        WordGuessing(**params)


def test_topics_choose_items_and_pairs_that_are_one_word_are_left_out():
    task = WordGuessing(topics=("food", "health"))
    assert {pair.topic for pair in ITEMS if not task.reject_reason(pair)} == {"food", "health"}
    assert "counts as" in WordGuessing().reject_reason(WordPair("1", "cake", "cakes"))


def test_a_misspelt_topic_is_refused_with_the_nearest(tmp_path):
    models, options = (
        dict.fromkeys("ab", "bot/guesser"),
        {"items": ITEMS, "rounds": 1, "store": tmp_path},
    )
    with pytest.raises(UsageError, match="unknown topic 'sprots'; did you mean 'sports'"):
        parley.run("word_guessing", models=models, topics=["food", "sprots"], **options)
    begun = parley.run(
        "word_guessing",
        models=models,
        topics=["food", "sports"],
        **{**options, "items": ITEMS[:11]},
    )
    assert {match["item"].split("/")[0] for match in begun.matches} == {"food", "sports"}
    assert parley.resume(begun.path).state == "done"


def test_who_sits_together_is_in_every_position_once_and_follows_everybody():
    rows = [
        next(iter(seat_all_together(SeatingProblem(WordGuessing(), "abcd", seed=3), turn, None)))
        for turn in range(200)
    ]
    for start in range(0, 200, 4):
        for seat in rows[0]:
            assert {row[seat] for row in rows[start : start + 4]} == set("abcd")
    follows = Counter(pair for row in rows for pair in pairwise(row.values()))
    assert len(follows) == 12
    assert min(follows.values()) > 25


def test_everybody_meets_the_adversary_with_both_words_and_in_both_seats(tmp_path):
    models = {"one": "bot/guesser", "two": {"model": "bot/guesser", "strength": 0.9}}
    result = parley.run(
        "word_guessing",
        models=models,
        adversary={"fixed": "bot/guesser"},
        items=ITEMS[:4],
        rounds=2,
        store=tmp_path,
    )
    run, rows = result.data["run"], result.data["results"]
    assert (run["plan"], run["matches"]["done"]) == ("versus", 4 * 2 * 6)
    assert {row["alias"] for row in rows} == {"one", "two"}
    assert all(row["matches"] == 24 for row in rows)
    assert "|adversary:bot/guesser@" in rows[0]["signature"]
    assert "|field:" not in rows[0]["signature"]
    held = Counter()
    for match in result.matches:
        (note,) = match["notes"]
        seat = next(seat for seat, alias in match["seats"].items() if alias != "fixed")
        held[match["item"], match["seats"][seat], "seat", seat] += 1
        held[match["item"], match["seats"][seat], "word", note["guessing"]["words"][seat]] += 1
    assert len(held) == 4 * 2 * 4
    assert set(held.values()) == {3}
    assert not audit_run(result.ref).breaches


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"plan": "versus"}, "--adversary"),
        (
            {"plan": "together", "adversary": "x=bot/guesser"},
            "--adversary only works with --plan versus",
        ),
        ({"adversary": "a=bot/guesser"}, "give one of them another alias"),
        ({"adversary": "x=bot/guesser", "seats": 4}, "--seats"),
    ],
)
def test_an_adversary_belongs_to_its_plan(options, said, tmp_path):
    with pytest.raises(UsageError, match=said):
        parley.run(
            "word_guessing",
            models=dict.fromkeys("ab", "bot/guesser"),
            items=[PAIR],
            store=tmp_path,
            **options,
        )


def test_associations_are_apart_and_say_no_word():
    for pair in ITEMS[:60]:
        known = associated_words(pair)
        assert len(set(known[pair.a]) | set(known[pair.b])) == 12
        assert not any(
            mentions_word(thing, name)
            for things in known.values()
            for thing in things
            for name in pair.names(pair.a)
        )


def test_planted_abilities_are_found_apart_with_holm_adjusted_differences(tmp_path):
    models = {
        "strong": {"model": "bot/guesser", "strength": 0.95},
        "plain": {"model": "bot/guesser"},
        "guarded": {"model": "bot/guesser", "openness": 0.15},
    }
    result = parley.run(
        "word_guessing",
        models=models,
        adversary="bot/guesser",
        items=ITEMS[:40],
        repeats=1,
        store=tmp_path,
    )
    found = {(pair["metric"], pair["a"], pair["b"]): pair for pair in result.data["pairs"]}
    for rival in ("guarded", "plain"):
        pair = found["comprehension", *sorted((rival, "strong"))]
        assert (pair["difference"] > 0) == (pair["a"] == "strong")
        assert pair["p"] < 0.01
    for rival in ("plain", "strong"):
        pair = found["confusion", "guarded", rival]
        assert pair["difference"] > 0
        assert pair["p"] < 0.01
    assert found["comprehension", "guarded", "plain"]["p"] > 0.05
    assert found["confusion", "plain", "strong"]["p"] > 0.05


def run_of_four(tmp_path, **options):
    models = {x: {"model": "bot/guesser", "strength": n / 4} for n, x in enumerate("abcd", 1)}
    return parley.run("word_guessing", models=models, items=ITEMS[:22], store=tmp_path, **options)


def scores_of(result, alias, metric="age"):
    seats = [
        (match, seat)
        for match in result.matches
        for seat, who in match["seats"].items()
        if who == alias
    ]
    return [match["scores"][seat][metric] for match, seat in seats]


@pytest.mark.parametrize("end", ["rounds", "all_guessed"])
def test_the_part_on_guessing_counts_matches_zeros_and_means(tmp_path, end):
    result = run_of_four(tmp_path, rounds=3, end=end)
    found = result.data["parts"]["word_guessing.guessing"]
    notes = [match["notes"][0]["guessing"] for match in result.matches]
    beyond = [note for note in notes if note["both"] not in (1, 2)]
    third = [note for note in notes if note["rounds"] == 3]
    wanted = [
        (len(third), 22),
        (sum(n["both"] is not None for n in third), len(third)),
        (len(beyond), 22),
        (sum(n["both"] == 3 for n in notes), len(beyond)),
        (sum(n["both"] is not None for n in notes), 22),
    ]
    assert [(each["count"], each["of"]) for each in found["matches"]] == wanted
    assert 0 < wanted[2][0] < 22
    assert (len(third) == 22) is (end == "rounds")
    for each in found["models"]:
        ages = scores_of(result, each["alias"])
        assert each["zeros"]["count"] == ages.count(0)
        assert each["zeros"]["low"] <= each["zeros"]["share"] <= each["zeros"]["high"]
        assert each["age"]["mean"] == pytest.approx(sum(ages) / 22)
        assert each["harmonic"] == pytest.approx(
            2 / (1 / each["comprehension"]["mean"] + 1 / each["confusion"]["mean"])
        )
        assert each["harmonic"] > each["age"]["mean"]
        assert (each["scored"], each["missing"]) == (22, 0)
    shown = result.render(part="guessing")
    assert "a third round was played" in shown
    assert "not both words were guessed in two rounds" in shown


def test_how_a_match_ends_does_not_change_when_words_were_guessed(tmp_path):
    ends = [
        run_of_four(tmp_path / end, rounds=4, end=end).data["parts"]["word_guessing.guessing"][
            "matches"
        ]
        for end in ("rounds", "all_guessed")
    ]
    assert ends[0][2:] == ends[1][2:]


def test_means_and_shares_are_over_matches_where_pairs_of_words_have_unequal_numbers_of_them(
    tmp_path,
):
    models = {
        "a": {"model": "bot/guesser", "strength": 0.3},
        "b": {"model": "bot/guesser", "openness": 0.3},
    }
    options = {
        "items": ITEMS[:8],
        "adversary": "x=bot/guesser",
        "only": "successful_late",
        "store": tmp_path,
    }
    result = parley.run("word_guessing", models=models, **options)
    data = {
        each["alias"]: each for each in result.data["parts"]["word_guessing.guessing"]["models"]
    }
    for alias in "ab":
        scored = [age for age in scores_of(result, alias) if age is not None]
        assert 0 < len(scored) < 48
        assert (data[alias]["scored"], data[alias]["missing"]) == (len(scored), 48 - len(scored))
        assert data[alias]["age"]["mean"] == pytest.approx(sum(scored) / len(scored))
        assert data[alias]["age"]["low"] < data[alias]["age"]["mean"] < data[alias]["age"]["high"]
        (row,) = [
            row for row in result.data["results"] if (row["alias"], row["metric"]) == (alias, "age")
        ]
        # each pair of words once: not the same
        assert abs(row["mean"] - data[alias]["age"]["mean"]) > 1e-4
    for each in [
        *result.data["parts"]["word_guessing.guessing"]["matches"],
        *(each[name] for each in data.values() for name in ("zeros", "guessed")),
    ]:
        assert each["share"] == pytest.approx(each["count"] / each["of"])
    heading, _, first, *_ = result.render(part="guessing").split("\n\n")[1].splitlines()
    assert heading.split()[-3:] == ["scored", "matches", "missing"]
    assert first.split()[-2:] == [str(data["a"]["scored"]), str(data["a"]["missing"])]


def test_the_table_of_the_part_on_guessing_has_matches_and_models_in_rows_of_one_form(tmp_path):
    result = run_of_four(tmp_path, rounds=3)
    rows = list(csv.DictReader(result.render("csv", "guessing").splitlines()))
    found = result.data["parts"]["word_guessing.guessing"]
    for row, each in zip(rows[:5], found["matches"], strict=True):
        assert (row["alias"], row["what"], int(row["count"]), int(row["of"])) == (
            "",
            each["what"],
            each["count"],
            each["of"],
        )
        assert float(row["value"]) == each["share"]
    age = next(row for row in rows if (row["alias"], row["what"]) == ("a", "age"))
    assert float(age["value"]) == found["models"][0]["age"]["mean"]
    assert (age["of"], age["missing"], age["count"]) == ("22", "0", "")


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=6), min_size=2, max_size=12))
def test_blocks_of_any_size_make_one_mean_within_its_interval(blocks):
    rows = [(str(block), value) for block, values in enumerate(blocks) for value in values]
    found = mean_over_matches(rows, "block")
    assert found.mean == pytest.approx(sum(value for _, value in rows) / len(rows))
    assert 0 <= found.low <= found.mean + 1e-9
    assert found.mean - 1e-9 <= found.high <= 1
    alike = mean_over_matches(
        [(str(block), values[0]) for block, values in enumerate(blocks)], "block"
    )
    plain = compute_interval([values[0] for values in blocks], (0, 1))
    assert (alike.low, alike.high) == pytest.approx((plain.low, plain.high))


def test_only_matches_that_count_are_counted(tmp_path):
    """A run that stops by what it sees looks at whole blocks only."""
    models = {"a": "bot/guesser", "b": {"model": "bot/guesser", "strength": 0.9}}
    options = {
        "adversary": "x=bot/guesser",
        "until_stable": True,
        "max_calls": 203,
        "concurrency": 1,
        "store": tmp_path,
    }
    result = parley.run("word_guessing", models=models, items=ITEMS[:60], rounds=2, **options)
    (counted,) = {row["matches"] for row in result.data["results"]}
    assert (
        result.data["parts"]["word_guessing.guessing"]["matches"][0]["of"]
        == 2 * counted
        < result.data["run"]["matches"]["done"]
    )


@pytest.mark.parametrize(("only", "row"), [("successful", 1), ("successful_late", 3)])
def test_what_counts_stands_in_the_signature_and_the_other_matches_are_missing(tmp_path, only, row):
    result = run_of_four(tmp_path, rounds=3, only=only)
    good = result.data["parts"]["word_guessing.guessing"]["matches"][row]["count"]
    assert 0 < good < 22
    rows = [each for each in result.data["results"] if each["metric"] == "age"]
    assert all(
        each["missing"] == 22 - good and f"|only:{only}|" in each["signature"] for each in rows
    )
    assert "|match:jaro>0.8,synonyms,folded|" in rows[0]["signature"]


def test_the_heat_map_has_every_model_and_topic_with_n(tmp_path):
    result = run_of_four(tmp_path)
    rows = [row for row in result.data["topics"] if row["metric"] == "age"]
    assert len(rows) == 44
    assert {row["blocks"] for row in rows} == {2}
    food = [m for m in result.matches if m["item"].startswith("food/")]
    ages = [
        match["scores"][seat]["age"]
        for match in food
        for seat, who in match["seats"].items()
        if who == "a"
    ]
    (row,) = [row for row in rows if (row["topic"], row["alias"]) == ("food", "a")]
    assert row["mean"] == pytest.approx(sum(ages) / 2)
    assert row["low"] <= row["mean"] <= row["high"]
    assert result.render(part="topics").splitlines()[0].split() == [
        "topic",
        "role",
        "a",
        "b",
        "c",
        "d",
        "mean",
    ]


def test_scores_from_elsewhere_are_correlated_by_rank(tmp_path):
    path = run_of_four(tmp_path, rounds=2).path
    means = {
        row["alias"]: row["mean"] for row in Result(path).data["results"] if row["metric"] == "age"
    }
    file = tmp_path / "scores.csv"
    lines = [
        f"{alias},{mean * 100}%,{-mean},{'' if alias == 'a' else 5}"
        for alias, mean in means.items()
    ]
    file.write_text("\n".join(["alias,same,opposite,flat", *lines, "stranger,1,1,1"]))
    rows = {
        row["score"]: row
        for row in Result(path, scores=file).data["external"]
        if row["metric"] == "age"
    }
    assert rows["same"]["rho"] == 1
    assert rows["opposite"]["rho"] == -1
    assert (rows["flat"]["rho"], rows["flat"]["models"], rows["flat"]["left_out"]) == (None, 3, 1)
    assert "same" in Result(path, scores=file).render(part="external")
    assert Result(path).data["external"] == []
    assert "--scores" in Result(path).render(part="external")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alias,mmlu\nnobody,1\n", "no row names a model of this run"),
        ("alias,mmlu\na,high\n", "row 1: column `mmlu` must be a number, not 'high'"),
        ("alias,mmlu\na,nan\n", "row 1: column `mmlu` must be a number"),
        ("alias,mmlu\na,1\na,2\n", "row 2: the model `a` already has scores in .*row 1"),
        ("who,mmlu\na,1\n", "row 1: expected a column `alias`"),
        ("alias\na\n", "at least one column of scores"),
    ],
)
def test_scores_that_cannot_be_read_are_refused_with_their_row(text, said, tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_scores(file, {"a": "bot/guesser"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "option", "order"),
    [("comprehension", "strength", (0.9, 0.4)), ("confusion", "openness", (0.2, 0.8))],
)
def test_planted_orders_hold_over_many_runs(metric, option, order):
    bots = [f"bot/guesser:{option}={value}" for value in order]
    check_planted(
        WordGuessing(), bots, items=ITEMS, metric=metric, plan="round_robin", runs=40, blocks=12
    )
