"""Idiom solitaire: who loses when and why, the paper's chains, bots in their order, and the
dictionary in the record."""

import os
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

import parley
from parley import ParleyError, Seat
from parley.audit.audit import audit_run
from parley.datasets.dictionaries import Lexicon
from parley.errors import ReplayError
from parley.participants._registry import make_participant
from parley.store import read_run
from parley.tasks.idiom_solitaire import FIRST, LENGTH, REPEATED, TURN, UNKNOWN, IdiomSolitaire
from parley.testing import ByHand, Listed, Speaking, check_planted, check_task, play, transcript
from tests.cli.test_cli import parley as command
from tests.datasets.test_dictionaries import DOUBTFUL, FORMS

EARLY, LATE, CHECKER = Seat("players", 1), Seat("players", 2), Seat("checker")
CHAIN = [
    "海阔天空",
    "空前绝后",
    "后发制人",
    "人定胜天",
    "天下无敌",
    "天外有天",
    "空空如也",
    "人山人海",
]


class Played:
    """A match in which these things are said, in the order in which they are asked for."""

    def __init__(self, *said, start="海阔天空", words=CHAIN, checker=False, **params):
        lexicon = Lexicon.of("small", {**dict.fromkeys(words, 1), start: 9}, FORMS, DOUBTFUL)
        lines = iter(said)
        seats = [EARLY, LATE, *([CHECKER] if checker else [])]
        self.cast = {seat: Speaking(lambda view: next(lines)) for seat in seats}
        self.tape = Listed()
        task = IdiomSolitaire(common=9, **params)
        self.outcome = play(task, self.cast, works={"dictionary": lexicon}, record=self.tape)
        self.win = {seat: self.outcome.scores[seat]["win"] for seat in (EARLY, LATE)}
        self.hits = [self.outcome.scores[seat]["hits"] for seat in (EARLY, LATE)]
        note = self.outcome.notes[0].facts
        self.chain, self.end = note["chain"], note["end"]
        self.lost = [
            (each.seat, each.kind) for each in self.outcome.violations if each.outcome == "ruled"
        ]


@pytest.mark.parametrize(
    ("chain", "last", "why"),
    [
        (
            "高抬明镜 镜花水月 月下老人 人山人海 海阔天空 空前绝后 后发制人 人定胜天 天下无敌",
            "敌不过",
            LENGTH,
        ),
        ("养生送死 死里逃生 生生世世", "世界无敌", UNKNOWN),
        ("怀铅提策", "植树造林", FIRST),
    ],
)
def test_the_chains_of_figure_9_end_where_and_why_the_paper_says(chain, last, why):
    start, *said = chain.split()
    known = [start, *said, "植树造林", "策马飞舆", "敌国外患", "世外桃源"]
    match = Played(*said, last, start=start, words=known)
    loser = EARLY if len(said) % 2 == 0 else LATE
    assert match.chain == [start, *said]
    assert match.end == why
    assert match.lost == [(loser, why)]
    assert match.win == {EARLY: float(loser == LATE), LATE: float(loser == EARLY)}
    assert match.hits == [(len(said) + 1) // 2, len(said) // 2]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("空", LENGTH),
        ("空前绝", LENGTH),
        ("pass", LENGTH),
        ("空前1后", LENGTH),
        ("空中飞人", UNKNOWN),
        ("人定胜天", FIRST),
        ("海阔天空", FIRST),  # also a repetition: the first character is looked at before
        ("天地玄黄", FIRST),  # no idiom either: that is looked at last
    ],
)
def test_a_word_that_breaks_the_rule_loses_at_once(said, why):
    match = Played(said)
    assert match.lost == [(EARLY, why)]
    assert match.win == {EARLY: 0, LATE: 1}
    assert len(match.tape.order) == 1  # nobody is asked again for a rule that was broken


def test_a_repetition_loses():
    match = Played("人定胜天", "天外有天", "天外有天", start="后发制人")
    assert match.lost == [(EARLY, REPEATED)]
    assert match.hits == [1, 1]
    # the start counts, too
    assert Played("天外有天", start="天外有天", words=[*CHAIN, "天下无敌"]).end == REPEATED


@pytest.mark.parametrize(
    "said", ["  空前绝后\n", "“空前绝后”", "《空前绝后》。", "**空前绝后**", "→ 空前绝后！"]
)
def test_marks_and_spaces_around_an_idiom_do_not_count(said):
    assert Played(said, "不知道").chain == ["海阔天空", "空前绝后"]


def test_a_sentence_around_the_idiom_is_asked_again_in_the_language_of_the_game():
    match = Played("我接的成语是：空前绝后。", "空前绝后", "不知道")
    assert match.chain == ["海阔天空", "空前绝后"]
    assert [each.content for each in match.tape.messages if each.kind == "again"] == [
        "请按要求的形式作答。只回答这个成语的四个汉字，不要有任何其他内容。"
    ]
    match = Played(*["I say 空前绝后"] * 3, language="en")
    assert (match.end, match.win[EARLY]) == (LENGTH, 0)
    assert [each.kind for each in match.outcome.violations] == ["unreadable"] * 3
    assert len(match.tape.order) == 3


def test_silence_loses():
    match = Played("", "  ", "")
    assert (match.end, match.win) == (LENGTH, {EARLY: 0, LATE: 1})


def test_an_unreadable_reply_is_one_violation_with_three_attempts(tmp_path):
    (tmp_path / "idioms.txt").write_text("\n".join(CHAIN), encoding="utf-8")
    models = {"a": lambda view: "I cannot say.", "b": lambda view: "空前绝后，如何？"}
    params = {"dictionary": [str(tmp_path / "idioms.txt")], "common": 0}
    found = parley.run("idiom_solitaire", models, repeats=1, store=tmp_path, **params)
    assert found.data["violations"] == [
        {"alias": alias, "kind": "unreadable", "count": 1, "attempts": 3} for alias in "ab"
    ]
    wins = [row for row in found.data["results"] if row["metric"] == "win"]
    assert [row["violations"] for row in wins] == [1, 1]
    assert "a unreadable ×1 (3 attempts)" in found.render()


def test_traditional_characters_count_as_simplified_ones():
    words = ["自立自强", "强中自有", "有龙则灵", "外强中干", "干将莫邪", "旋乾转坤"]
    match = Played("強中自有", "有龍則灵", start="自立自强", words=words)
    assert match.chain == ["自立自强", "强中自有"]  # 則 is not among the few forms of this test
    assert match.end == UNKNOWN
    assert Played("干将莫邪", "不知道", start="外強中乾", words=words).chain[1] == "干将莫邪"
    assert (
        Played("強中自有", start="自立自强", words=["自立自强", "強中自有"], rounds=1).end == "draw"
    )


def test_the_limit_of_rounds_is_a_draw():
    match = Played("空前绝后", "后发制人", "人定胜天", rounds=3)
    assert match.end == "draw"
    assert match.win == {EARLY: 0.5, LATE: 0.5}
    assert match.hits == [2, 1]
    assert match.lost == []


@pytest.mark.parametrize(
    ("verdict", "end"),
    [
        ('{"reason": "", "idiom": "yes"}', "draw"),
        ('{"reason": "", "idiom": "no"}', UNKNOWN),
        ("no", UNKNOWN),
    ],
)
def test_an_instrument_is_asked_about_words_that_no_list_has(verdict, end):
    match = Played("空中楼阁", verdict, checker=True, rounds=1)
    assert match.end == end
    (view,) = match.cast[CHECKER].views
    assert "空中楼阁" in view.text


def test_the_instrument_is_not_asked_about_what_a_list_has_or_what_loses_anyway():
    assert Played("空前绝后", checker=True, rounds=1).cast[CHECKER].views == []
    wrong, yes = Played("海底捞月", checker=True, words=CHAIN), '{"reason": "", "idiom": "yes"}'
    assert (wrong.end, wrong.cast[CHECKER].views) == (FIRST, [])
    twice = Played("空中楼空", yes, "空中楼空", checker=True)
    assert (twice.end, len(twice.cast[CHECKER].views)) == (REPEATED, 1)


def test_no_player_loses_by_an_instrument_that_cannot_be_read():
    lines = iter(["空中楼阁", "?", "?", "?"])
    cast = {seat: Speaking(lambda view: next(lines)) for seat in (EARLY, LATE, CHECKER)}
    lexicon = Lexicon.of("small", dict.fromkeys(CHAIN[:2], 1))
    found = play(IdiomSolitaire(), cast, works={"dictionary": lexicon})
    assert (found.state, found.reason) == ("aborted", "Checker gave no readable reply in round 2")
    assert {value for scores in found.scores.values() for value in scores.values()} == {None}
    assert {each.seat for each in found.violations} == {CHECKER}


def test_the_instrument_is_spoken_to_in_the_language_of_the_game():
    for language, form in {
        "zh": "只回答一个 JSON 对象",
        "en": "Answer with one JSON object",
    }.items():
        match = Played("空中楼阁", "?", '{"idiom": "no"}', checker=True, language=language)
        first, second = (view.text for view in match.cast[CHECKER].views)
        assert form in first
        assert form in second
        assert (language == "zh") == ("Your" not in second and "form" not in second)


def test_the_rule_can_be_fed_by_hand():
    table = ByHand(
        IdiomSolitaire(rounds=2),
        works={"dictionary": Lexicon.of("a", dict.fromkeys(CHAIN[:3], 1))},
        seed=2,
    )
    table.answer(CHAIN[1 + CHAIN.index(table.asked.text.split("\n")[1])])
    table.answer("不")
    assert table.scores == {EARLY: {"win": 1, "hits": 1}, LATE: {"win": 0, "hits": 0}}


def test_parameters_are_looked_at():
    with pytest.raises(ValueError, match="`rounds` must be at least 1"):
        IdiomSolitaire(rounds=0)
    with pytest.raises(ParleyError, match="at least one word list"):
        IdiomSolitaire(dictionary=()).works()


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """All words of the four characters that a reader draws from, so that drawn replies go on."""
    letters = "一心人天"
    path = tmp_path_factory.mktemp("words") / "every.txt"
    path.write_text(
        "\n".join(a + b + c + d for a in letters for b in letters for c in letters for d in letters)
    )
    return str(path)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_it_conforms_in_longer_matches(every, language):
    task = IdiomSolitaire(rounds=6, dictionary=(every,), traditional=False, language=language)
    check_task(task, seeds=(1, 5, 7) if language == "zh" else (5,))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A dictionary like a real one: some characters begin many words, others few."""
    rng, characters = Random(3), [chr(0x4E00 + n) for n in range(60)]
    weights = [1 / (1 + n) ** 0.7 for n in range(60)]
    words = {
        "".join(rng.choices(characters, weights)[0] + "".join(rng.choices(characters, k=3)))
        for _ in range(600)
    }
    path = tmp_path_factory.mktemp("words") / "made.txt"
    path.write_text("\n".join(sorted(words)), encoding="utf-8")
    return str(path)


def test_planted_vocabularies_are_found_in_their_order(made):
    task = IdiomSolitaire(dictionary=(made,), traditional=False)
    equals = ["bot/speaker:strength=0.3", "bot/speaker:strength=0.3"]
    check_planted(task, ["bot/speaker:strength=0.9", equals, "bot/speaker:strength=0.1"], runs=20)
    check_planted(task, ["bot/dead-end:strength=0.4", "bot/speaker:strength=0.4"], runs=20)


@pytest.fixture
def result(made, tmp_path):
    models = {
        name: {"model": "bot/speaker", "strength": share}
        for name, share in {"a": 0.9, "b": 0.3, "c": 0.1}.items()
    }
    return parley.run(
        "idiom_solitaire", models, dictionary=[made], traditional=False, store=tmp_path
    )


def test_a_run_ranks_planted_strengths_and_gives_the_papers_tables(result):
    pairs = {
        (pair["a"], pair["b"]): pair for pair in result.data["pairs"] if pair["metric"] == "win"
    }
    assert {
        names: pair["difference"] > 0 and pair["p"] < 0.05 for names, pair in pairs.items()
    } == {
        ("a", "b"): True,
        ("a", "c"): True,
        ("b", "c"): True,
    }
    win, hits = result.data["tables"]
    assert (win["metric"], hits["metric"]) == ("win", "hits")
    assert {
        (each["first"], each["second"]): each["cell"]["matches"] for each in win["cells"]
    } == dict.fromkeys(permutations("abc", 2), 30)
    assert all(
        each["cell"]["first"] + each["cell"]["second"] == pytest.approx(1) for each in win["cells"]
    )
    assert result.data["ratings"][0]["metric"] == "win"


def test_all_pairs_begin_with_the_same_idioms_in_both_orders(result):
    with read_run(result.ref) as reader:
        starts = {}
        for match in reader.matches.read():
            (note,) = reader.notes.of(match.number)
            starts.setdefault(match.block, set()).add(note.facts["chain"][0])
    assert len(starts) == 30
    assert {len(found) for found in starts.values()} == {1}
    assert len({next(iter(found)) for found in starts.values()}) == 30


def test_a_short_list_of_starts_is_gone_through_before_any_comes_again(tmp_path):
    path = tmp_path / "few.txt"
    path.write_text(
        "\n".join(["海阔天空", "天上人间", "间不容发", "空前绝后", "后发制人"]), encoding="utf-8"
    )
    bots = {"a": "bot/speaker", "b": "bot/speaker"}
    done = parley.run(
        "idiom_solitaire",
        bots,
        dictionary=[str(path)],
        traditional=False,
        repeats=6,
        store=tmp_path,
    )
    with read_run(done.ref) as reader:
        starts = {
            match.block: reader.notes.of(match.number)[0].facts["chain"][0]
            for match in reader.matches.read()
        }
    assert len({starts[str(n)] for n in (1, 2, 3)}) == 3  # three of the five can be followed
    assert [starts[str(n)] for n in (1, 2, 3)] == [starts[str(n)] for n in (4, 5, 6)]
    assert audit_run(done.ref).breaches == []


def test_what_cannot_be_played_leaves_no_file(made, tmp_path):
    own = Path(tmp_path) / "own.txt"
    own.write_text("海阔天空\t3\n空前绝后\n", encoding="utf-8")
    asked = (
        "run",
        "idiom_solitaire",
        "-m",
        "bot/speaker",
        "-m",
        "bot/dead-end",
        "--set",
        "traditional=false",
    )
    done = command(*asked, "--set", f"dictionary={own}", "--set", "common=9", cwd=tmp_path, code=2)
    assert "no word that can start a game occurs at least 9 times" in done.err
    done = command(*asked, "--set", f"dictionary={made}", "--items", "3", cwd=tmp_path, code=2)
    assert "the task idiom_solitaire has no items: use --repeats" in done.err
    assert list(tmp_path.rglob("*.parley")) == []


@pytest.mark.parametrize("bot", ["speaker", "dead-end"])
@pytest.mark.parametrize(
    "words", ["现在的接龙是{chain}请接着说一个成语", "So far “{chain}”: go on!", "{chain}"]
)
def test_bots_find_the_chain_whatever_words_stand_around_it(bot, words):
    lexicon = Lexicon.of("small", dict.fromkeys(CHAIN, 1))
    cast = {
        seat: make_participant(f"bot/{bot}", {"strength": 1}, IdiomSolitaire, bot)
        for seat in (EARLY, LATE)
    }
    told = {"turn_zh": TURN["zh"].replaced(words, ())}
    found = play(IdiomSolitaire(), cast, works={"dictionary": lexicon}, prompts=told, seed=3)
    plain = play(IdiomSolitaire(), cast, works={"dictionary": lexicon}, seed=3)
    assert found.notes == plain.notes
    assert len(found.notes[0].facts["chain"]) > 2


@pytest.mark.parametrize("bot", ["speaker", "dead-end"])
def test_a_strength_is_a_share(bot):
    for wrong in (1.5, -0.1, "3"):
        with pytest.raises(
            ParleyError, match=rf"bot/{bot}.strength must be from 0 to 1, not {wrong}"
        ):
            make_participant(f"bot/{bot}", {"strength": wrong}, IdiomSolitaire, bot)


def test_the_signature_says_which_dictionary_it_was(result):
    signature = result.data["results"][0]["signature"]
    assert "|dictionary:made.txt:600@" in signature
    assert str(Path(result.path).parent) not in signature


def test_a_run_is_replayed_without_its_dictionary(made, tmp_path):
    own = tmp_path / "own.txt"
    own.write_bytes(Path(made).read_bytes())
    done = parley.run(
        "idiom_solitaire",
        {"a": "bot/speaker", "b": "bot/dead-end"},
        dictionary=[str(own)],
        traditional=False,
        store=tmp_path,
    )
    own.unlink()
    found = audit_run(done.ref)
    assert found.breaches == []
    assert found.checked["replay"] == 60


def test_a_run_goes_on_with_the_same_dictionary_only(made, tmp_path):
    own = tmp_path / "own.txt"
    own.write_bytes(Path(made).read_bytes())
    begun = parley.run(
        "idiom_solitaire",
        {"a": "bot/speaker", "b": "bot/dead-end"},
        dictionary=[str(own)],
        traditional=False,
        store=tmp_path,
        max_calls=40,
    )
    own.write_text(own.read_text(encoding="utf-8") + "\n海阔天空", encoding="utf-8")
    with pytest.raises(
        ReplayError, match=r"another dictionary \(own.txt:600@\w+, now own.txt:601@\w+\)"
    ):
        parley.resume(begun.path, max_calls=10_000)
    own.write_bytes(Path(made).read_bytes())
    assert parley.resume(begun.path, max_calls=10_000).data["run"]["state"] == "done"


GOLDEN = {"zh": ["speaker", "dead-end"], "en": ["speaker", "null"]}


@pytest.mark.parametrize("language", GOLDEN)
def test_the_transcript_is_as_reviewed(language):
    lexicon = Lexicon.of("small", {**dict.fromkeys(CHAIN, 1), "海阔天空": 9})
    options = {"speaker": {"strength": 1}, "dead-end": {"strength": 1}}
    cast = {
        seat: make_participant(f"bot/{bot}", options.get(bot, {}), IdiomSolitaire, bot)
        for seat, bot in zip((EARLY, LATE), GOLDEN[language], strict=True)
    }
    tape = Listed()
    task = IdiomSolitaire(language=language, common=9)
    text = transcript(play(task, cast, seed=4, record=tape, works={"dictionary": lexicon}), tape)
    path = Path(__file__).parent / "playthroughs" / f"idiom_solitaire_{language}.txt"
    if os.environ.get("PARLEY_UPDATE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
