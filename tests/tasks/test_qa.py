"""Questions and answers: how replies are read, the rule by feeding replies, worked examples,
planted knowledge, whole runs."""

import asyncio
import math
import re
import time
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley import BotView, Question, Seat, UsageError, resume, run, run_async
from parley.datasets.catalogue import load_items
from parley.datasets.open_references import open_references
from parley.errors import ReplayError, Unreadable
from parley.match.protocol import Reply
from parley.rules.numerals import fold_widths, is_same_answer, normalise_numeral, parse_number
from parley.rules.pool import Example
from parley.tasks._common.answers import ExactAnswer, LetterChoice, WeighedChoice, is_right
from parley.tasks.qa import QA
from parley.testing import check_planted, check_task
from parley.testing.by_hand import ByHand, Speaking, play
from parley.testing.server import Server, says
from tests.cli.test_cli import parley as command

STUDENT = Seat("student")
CITIES = ("Paris", "London", "Rome", "New York")
CITY = Question("uk", "What is the capital of the United Kingdom?", "B", CITIES, "geography")
EGGS = Question(
    "eggs", "A farmer has 9 hens with 2 eggs each. How many eggs?", "18", explanation="9 * 2 = 18."
)
LAKE = Question("湖", "下列哪一个是湖？", "A", ("青海湖", "黄河", "泰山", "长城"), "地理", "zh")
WORD = Question("word", "Which river flows through Cairo?", "the Nile")
SAMPLES = load_items("samples", Question)


def said(task, item, *replies, **options):
    """A match in which these are the replies, the last for ever."""
    seat = Speaking(lambda view: replies[min(view.reply_count, len(replies) - 1)])
    return play(task, {STUDENT: seat}, item=item, works=open_references(task), **options), seat


# --- readers --------------------------------------------------------------------------------------

LONDON = """B|b|(B)|B.|**B**|`B`|$B$|Ｂ|[B]|B: because|B)|**B.** London|B. London|b) London|London|london.|"London"|\
The answer is (B)|The answer is **B**.|The answer is option B.|The answer is the letter B|Answer: B|**Answer:** B|\
The correct answer is London.|Final answer: (B) London|I would say (B).|I think B is right|The right choice is B|\
\\boxed{B}|\\boxed{\\text{B}}|答案是B|答案：B|答案为 (B)|选B|故选B。|{"answer": "B"}|{"reason": "x", "choice": "b"}|\
```json\n{"answer": "London"}\n```|Answer:\nB|B\n\nExplanation: it is London. A is Paris.|\
If the answer is A, then no.\nThe answer is B.|A. Paris\nB. London\nC. Rome\nThe answer is B.|\
Option A is wrong.\nOption C is wrong.\nSo B."""  # noqa: E501
NEITHER = """|A or B|A, B|The answer is A or B|The answer is A/B|Paris or London|B. Rome|The answer is not B.|It isn't B|\
答案不是B|不选B|E|The answer is E|42|I do not know|A good question|I have no idea|A. Paris\nB. London|{"answer": "E"}|\
{"answer": "A or B"}|Neither"""  # noqa: E501

LIST = "A. Paris is in France.\nB. London\nC. Rome\nD. New York\n\n"
CONCLUSIONS = """Therefore, the correct option is C.|So the correct choice is **C. Rome**.|I choose C.|\
Thus, the answer is clearly C.|The answer has to be C.|Answer is: option (C)|所以正确选项是C。|C|**C**|So C.|Answer: C, I think.|\
Rome|The answer is C because A is wrong.|It is not hard to see that the answer is C|The answer to question 2 is C."""  # noqa: E501
ROME = """正确选项是C|故选C项。|选C，不选A|我不选A，我选C|排除A、B，选C|C. Rome is right; A is not.|Answer: C. A is wrong.|\
【答案】C\n【解析】选项A错误，选项B错误|Neither A nor B, so C.|C (not A)|C, not A|not A but C|\
Answer C is correct. Answer A is wrong because it is in France.|The correct answer is C. The answer A is a common mistake.|\
答案是C。不能选A，因为它不对。|答案是C。不应选A。|答案是C，而不选择A。|答案：C\n若误选A，则忽略了|答案：C。有的同学会选A，这是错误的。|\
The answer is C. Some students would answer A.|{"answer": "C", "reason": "the answer A is wrong"}|\
{"answer": "C"}\nThe answer is C.|{"answer": "C"} {"answer": "Rome"}|## Answer\n\nC|I do not think the answer is A.\nAnswer: C"""  # noqa: E501
NOT_PARIS = """Answer: A is incorrect, so it must be C|The answer is A? No, C.|Wrong answer: A|The incorrect answer is A|\
Any answer but A|The answer cannot be A|I cannot answer A|不应该选A，C是对的|错误答案：A|Answer: A (or maybe C)|Answer: A; or C|\
Answer: A & C|Answer: A + C|A; or C|A & C|A + C|A (or maybe C)|I don't think the answer is A|有的同学会选A|若误选A，则忽略了|\
Draft: {"answer": "A"} … Final: {"answer": "C"}|{"answer": "A"}\nFinal answer: C|The answer isn't A|A is not the answer|\
Answer A is not correct.|Answer: A, but this is wrong|如果选A，那么|A. Paris\nB. London\nC. Rome\nD. New York|A\nC|\
Hmm, answer: A. Actually no, it's C.|The answer is A - no, C.|The answer is A... no wait, C|Answer: A -> C|\
Answer: A C|(A)(C)|\
The answer is A; sorry, C|Is the answer A?|答案是A或C|答案是A和C|Answer: AC|\
Answer: A (wrong)|Answer: A - incorrect|答案：A（错误）|Answer: A ✗|A. Wrong|\
The worst answer is A|My first answer was A, now C|The answer was A but now C|\
I would choose A if it were France|Everything except A|If the answer is A, then no."""  # noqa: E501


@pytest.mark.parametrize(
    "text", [*ROME.split("|"), *(LIST + each for each in CONCLUSIONS.split("|"))]
)
def test_a_conclusion_counts_and_what_is_denied_or_listed_does_not(text):
    assert LetterChoice(CITIES).read(text) == "C"


@pytest.mark.parametrize("text", NOT_PARIS.split("|"))
def test_what_is_denied_doubted_or_contradicted_is_unreadable(text):
    with pytest.raises(Unreadable):
        LetterChoice(CITIES).read(text)


@pytest.mark.parametrize("text", LONDON.split("|"))
def test_a_choice_is_read_however_it_is_said(text):
    assert LetterChoice(CITIES).read(text) == "B"


@pytest.mark.parametrize("text", NEITHER.split("|"))
def test_what_names_no_choice_or_two_is_unreadable(text):
    with pytest.raises(Unreadable):
        LetterChoice(CITIES).read(text)


def test_the_articles_and_the_letters_of_choices_do_not_mislead():
    blood = LetterChoice(("A", "B", "AB", "O"))
    assert [blood.read(text) for text in ("D", "The answer is D. O", "AB", "The answer is O")] == [
        "D",
        "D",
        "C",
        "D",
    ]
    assert blood.read("The answer is B") == "B"
    many = LetterChoice(tuple(map(str, range(10))))
    assert [many.read(text) for text in ("I", "(I)", "The answer is J.", "7")] == [
        "I",
        "I",
        "J",
        "H",
    ]
    with pytest.raises(Unreadable):
        many.read("I cannot say")
    truth = LetterChoice(("True", "False"))
    assert [
        truth.read(text)
        for text in ("B. False", "Answer: B (False)", "False", "The answer is B. False.")
    ] == ["B"] * 4
    assert LetterChoice(("B", "A")).read("B) A") == "B"
    twice = LetterChoice(("4", "5", "4"))
    assert twice.read("A. 4") == "A"
    assert twice.read("A") == "A"
    with pytest.raises(Unreadable, match="more than one choice: A, C"):
        twice.read("4")


EIGHTEEN = """18|18.|$18|18.00|Answer: 18|**Answer: 18**|Answer: **18**|#### 18|So 9*2 = 18|The answer is 18 eggs.|\
Answer: 9 * 2 = 18|\\boxed{18}|{"answer": 18}|{"answer": "18"}|First 3 and 4.\nSo she has 18.|答案：18|答案是18元|\
The answer is 20. No: the answer is 18.|＃＃＃＃ １８|Answer: 18\nI hope this answer helps with problem 2!|\
The answer to question 2 is 18|Answer: 18 = 9 * 2|答案：18\n解析：本题选3个|Answer: $18.00|\
Answer: \\(18\\)|\\boxed{18 \\text{ eggs}}|\
\\boxed{\\frac{36}{2}}|\\[ \\boxed{18} \\]|## Answer\n18|Answer: "18"|<answer>18</answer>|\
The answer is:\n\\[\n18\n\\]|Answer: 18 cm²|\
所以一共是18个。|Answer: 18 km/h|{"answer": 18}\nThe answer is 18 eggs."""  # noqa: E501


@pytest.mark.parametrize("text", EIGHTEEN.split("|"))
def test_a_number_is_read_after_any_reasoning(text):
    assert is_right(ExactAnswer().read(text), EGGS)


@pytest.mark.parametrize(
    "text",
    [
        "many",
        "She has 18 of 20.",
        "Answer: eighteen",
        "Answer: 3 boxes of 6 make 18",
        "Answer: between 17 and 18",
        "Answer: not 18",
    ]
    + [
        "I cannot answer this: 18 eggs",
        "Wrong answer: 18",
        "Answer: -18",
        "Answer: –18",
        "Answer: minus 18",
        "Answer: x + 18",
    ]
    + [
        "Answer: 18²",
        "Answer: 18x",
        "Answer: 18 million",
        "Answer: 18万",
        "Answer: 18:30",
        "Answer: 1/18",
        "Answer: 18e3",
        "18!",
    ]
    + [
        "Answer: 18 000",
        "\\boxed{\\frac{18}{5}}",
        "Answer: .18",
        "Answer: 18-18",
        "Answer: 18k",
        "Answer: 18 dozen",
        "18^18",
    ],
)
def test_what_names_no_number_or_several_is_not_right(text):
    assert not is_right(ExactAnswer().read(text), EGGS)


@pytest.mark.parametrize(
    "text", ["", "18\nor so", "It is long.\nIt is the Nile", "Of 3 and 4\nI take 5 or 6"]
)
def test_what_does_not_say_which_answer_it_gives_is_unreadable(text):
    with pytest.raises(Unreadable, match="which answer it gives"):
        ExactAnswer().read(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": 9}. Final Answer: 18',
        'Draft: {"answer": 9}. Then {"answer": 18}',
        '{"answer": "-18"}\nAnswer: 18',
    ],
)
def test_two_different_answers_are_unreadable(text):
    with pytest.raises(Unreadable, match="two different answers"):
        ExactAnswer().read(text)


def test_words_are_read_where_they_are_announced_or_alone():
    texts = ("the Nile", "I think.\nAnswer: the Nile.", "Answer: 'the Nile'", '{"answer": "Nile"}')
    assert [ExactAnswer().read(text) for text in texts] == [
        "the Nile",
        "the Nile",
        "'the Nile'",
        "Nile",
    ]
    assert all(is_right(ExactAnswer().read(text), WORD) for text in texts)


def test_words_that_were_cut_are_no_answer_and_a_letter_alone_is_whole():
    cut = ExactAnswer().read("Answer: 18")
    cut.cut = True
    assert not is_right(cut, EGGS)
    assert is_right(LetterChoice(CITIES).read("B"), CITY)
    assert not is_right(None, CITY)


def test_numbers_and_words_that_are_the_same():
    for one, other in [
        ("1,234.50", "1234.5"),
        ("0.75", "3/4"),
        ("-3", "−3"),
        ("50%", "50"),
        ("$1,000", "1000"),
        ("Nile", "the Nile."),
        ("18 eggs", "18"),
        ("London!", '"London"'),
        ("(London)", "**London**."),
        ("(0, 1)", "(0, 1)"),
    ]:
        assert is_same_answer(one, other)
    for one, other in [
        *[
            ("1234", "12345"),
            ("1,23", "123"),
            ("18", "18 eggs"),
            ("Nile", "Niger"),
            ("3", "-3"),
            ("1 of 18", "18"),
            (".5", "5"),
        ],
        *[
            ("(0,1)", "[0,1]"),
            ("n!", "n"),
            ("f'", "f"),
            ("Vitamin", "Vitamin A"),
            ("b", "a b"),
            ("50%", ".5"),
            ("102", "10²"),
        ],
    ]:
        assert not is_same_answer(one, other)
        assert not is_same_answer(other, one) or other == "18 eggs"
    assert [normalise_numeral(text) for text in ("1,234.50", "-3/4", "1/3", "007", "x")] == [
        "1234.5",
        "-0.75",
        "1/3",
        "7",
        "",
    ]


SPELT = r"""\frac{1}{2}=0.5 ½=0.5 \dfrac{1}{2}=0.5 \frac12=0.5 -\frac{3}{4}=-0.75 -½=-0.5 minus_5=-5 –5=-5 −5=-5 -$5=-5 .5=0.5 \
1e6=1000000 1{,}234=1234 12\,000=12000 12_000=12000 1_000_000=1000000 5_million=5000000 5万=50000 \
10²= 1½= 2\frac12= 2^10= 3:30= 5!= 2x="""  # noqa: E501


@pytest.mark.parametrize("pair", SPELT.replace("\\\n", "").split())
def test_a_number_is_understood_or_is_none(pair):
    text, _, wanted = pair.replace("_", " ").rpartition("=")
    assert normalise_numeral(text) == wanted
    assert ExactAnswer().read(f"So it is.\n\\boxed{{{text}}}") == fold_widths(text)
    assert is_same_answer(text, wanted or "5") is bool(wanted)


@given(st.fractions(max_denominator=1000), st.integers(0, 10**12))
def test_a_numeral_says_its_number(fraction, whole):
    assert parse_number(normalise_numeral(str(fraction))) == fraction
    assert normalise_numeral(f"{whole:,}") == str(whole)


@given(st.text(max_size=80))
def test_readers_read_or_refuse_anything(text):
    for reader in (LetterChoice(CITIES), ExactAnswer()):
        with suppress(Unreadable):
            assert reader.read(text)


@given(st.permutations(CITIES), st.integers(0, 3))
def test_the_letter_and_the_text_of_a_choice_say_the_same(choices, at):
    reader = LetterChoice(tuple(choices))
    assert {
        reader.read(text) for text in ("ABCD"[at], choices[at], f"{'ABCD'[at]}. {choices[at]}")
    } == {"ABCD"[at]}


@pytest.mark.parametrize(
    "text",
    [
        "answer ",
        "word ",
        "{",
        "(",
        "1,",
        "A. ",
        "选择",
        "*",
        " ",
        "\n",
        "a '",
        "答案 是",
        "A or ",
        '{"answer":',
        "not A ",
        "the answer to ",
        "answer: A,",
    ]
    + [
        "18 = ",
        "不选A",
        "any ",
        "\\\\frac{",
        "\\\\boxed{",
        "1 000",
        "²",
        "½",
        "if the ",
        "A. x\n",
        "I choose ",
        "is a ",
        "A is a b c ",
        '"',
        "***((",
    ],
)
def test_long_replies_take_no_time(text):
    began = time.process_time()
    for reader in (LetterChoice(CITIES), ExactAnswer()):
        with suppress(Unreadable):
            assert not is_right(reader.read(text * (100_000 // len(text))), EGGS)
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    "opening",
    [
        "A)",
        "A or",
        "not",
        "A is",
        "Answer: A",
        '{"answer": "A',
        "B. London\nso not A",
        "I",
        "不选",
        "18",
    ],
)
def test_long_gaps_take_no_time(opening):
    began = time.process_time()
    for gap in (" ", "(", "*", "x", "\n", "A ", "a ", ", ", ".", "?"):
        for reader in (LetterChoice(CITIES), ExactAnswer()):
            with suppress(Unreadable):
                reader.read(f"{opening}{gap * 30_000}x")
                reader.read(f'{opening}{gap * 30_000}x"}}')
    assert time.process_time() - began < 3


# --- the rule -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "right", "wrong"),
    [
        (CITY, "B", "A"),
        (EGGS, "Answer: 18", "Answer: 17"),
        (LAKE, "A", "D"),
        (WORD, "Nile", "Niger"),
    ],
)
def test_right_is_one_and_wrong_is_nought(item, right, wrong):
    for reply, score in [(right, 1), (wrong, 0)]:
        outcome, _ = said(QA(), item, reply)
        assert (outcome.scores[STUDENT], outcome.rounds, outcome.violations) == (
            {"accuracy": score},
            1,
            [],
        )
        assert outcome.notes[0].facts["right"] is bool(score)


def test_the_question_its_choices_and_the_form_are_shown_and_the_answer_is_not():
    _, seat = said(QA(), EGGS, "Answer: 18")
    assert "18" not in seat.views[0].text
    table = ByHand(QA(shots=0), item=CITY)
    assert table.asked.text == f"{CITY.question}\n\nA. Paris\nB. London\nC. Rome\nD. New York"
    assert "letter" in table.asked.expect.hint
    assert "字母" in ByHand(QA(shots=0), item=LAKE).asked.expect.hint


def test_an_unreadable_reply_is_asked_for_once_more_and_then_wrong():
    outcome, seat = said(QA(), CITY, "A or B", "B")
    assert outcome.scores[STUDENT]["accuracy"] == 1
    assert "more than one choice: A, B" in seat.views[1].text
    outcome, seat = said(QA(), CITY, "I cannot say.")
    assert (outcome.state, outcome.scores[STUDENT]["accuracy"], len(seat.views)) == ("done", 0, 2)
    assert [(each.kind, each.outcome) for each in outcome.violations] == [
        ("unreadable", "asked again"),
        ("unreadable", "default"),
    ]
    assert "你的回答无法识别" in said(QA(), LAKE, "？")[1].views[1].text


@pytest.mark.parametrize(
    ("reply", "score", "asked"), [("B", 1, 1), ("The answer is A if… The answer is B", 0, 2)]
)
def test_a_reply_that_was_cut_counts_only_if_it_was_the_letter(reply, score, asked):
    class Cut(Speaking):
        async def reply(self, view, call):
            return Reply(await super().reply(view, call), finish="length")

    seat = Cut(lambda view: reply)
    outcome = play(QA(shots=0), {STUDENT: seat}, item=CITY)
    assert (outcome.scores[STUDENT]["accuracy"], len(seat.views)) == (score, asked)
    assert {each.kind for each in outcome.violations} == {"cut"}


@pytest.mark.parametrize("params", [{"shots": -1}, {"shots": 0, "shots_from": "samples"}])
def test_parameters_are_looked_at(params):
    with pytest.raises(ValueError, match="shots"):
        QA(**params)


# --- worked examples ------------------------------------------------------------------------------


def test_examples_stand_before_the_question_in_its_own_form():
    _, seat = said(QA(shots=2, shots_from="samples"), CITY, "B")
    at, examples = seat.views[0].examples
    assert (at, len(examples)) == (0, 2)
    for example in examples:
        assert re.fullmatch(
            r".+\n\nA\. .+\nB\. .+\nC\. .+\nD\. .+\n\nAnswer with the letter.+", example.question
        )
        assert example.answer in "ABCD"
    _, seat = said(QA(shots=1, shots_from="samples-maths"), EGGS, "18")
    (example,) = seat.views[0].examples[1]
    assert isinstance(example, Example)
    assert example.answer.endswith("= 29.\nAnswer: 29")
    assert said(QA(), CITY, "B")[1].views[0].examples is None


def test_examples_ask_for_no_form_where_the_first_reply_is_free():
    task = QA(shots=2, shots_from="samples")
    outcome, seat = said(task, CITY, "Let me think.", "B", standardise="always")
    assert outcome.scores[STUDENT]["accuracy"] == 1
    for example in seat.views[0].examples[1]:
        assert re.fullmatch(r".+\n\nA\. .+\nB\. .+\nC\. .+\nD\. .+", example.question)


@pytest.mark.parametrize("params", [{"shots_from": "samples"}, {"shots": 0}])
def test_conformance(params):
    check_task(QA(**params), items=[CITY, EGGS, LAKE, WORD], seeds=(1, 2))


# --- planted knowledge ----------------------------------------------------------------------------


def fate(item, memory):
    return BotView(None, None, item, None).fate("knows", memory)


def test_a_student_knows_a_question_in_every_match_or_in_none(tmp_path):
    known, others = ([item.id for item in SAMPLES if fate(item, memory) < 0.7] for memory in (0, 1))
    for seed in (1, 2, 3):
        models = {"a": {"model": "bot/student", "knowledge": 0.7}}
        result = run(QA(shots=0), models, seed=seed, store=tmp_path)
        right = {
            match["item"] for match in result.matches if match["scores"]["student"]["accuracy"] == 1
        }
        assert set(known) <= right
    assert known != others


def test_accuracy_is_shown_by_subject(tmp_path):
    result = run(QA(shots=0), {"a": {"model": "bot/student", "knowledge": 1}}, store=tmp_path)
    assert {row["topic"]: row["mean"] for row in result.data["topics"]} == dict.fromkeys(
        {item.subject for item in SAMPLES}, 1
    )


def test_three_students_rank_in_order(tmp_path):
    models = {
        name: {"model": "bot/student", "knowledge": knows}
        for name, knows in {"good": 0.95, "fair": 0.6, "poor": 0.1}.items()
    }
    facts = run("qa", models, seed=1, store=tmp_path).data
    means = {each["alias"]: each["mean"] for each in facts["results"]}
    assert means["good"] > means["fair"] > means["poor"]
    # Holm-adjusted, paired
    assert all(each["p"] < 0.05 and each["low"] * each["high"] > 0 for each in facts["pairs"])
    assert {each["alias"]: (each["low"], each["high"]) for each in facts["ranks"]} == {
        "good": (1, 1),
        "fair": (2, 2),
        "poor": (3, 3),
    }


def test_planted_knowledge_is_found_and_equals_are_not_told_apart():
    order = [
        "bot/student:knowledge=.9,memory=1",
        ["bot/student:knowledge=.4,memory=2", "bot/student:knowledge=.4,memory=2"],
    ]
    check_planted(QA(shots=0), order, items=SAMPLES, runs=40, blocks=40)


# --- whole runs -----------------------------------------------------------------------------------


def test_the_command_plays_the_bundled_questions(tmp_path):
    done = command(
        "run",
        "qa",
        "-m",
        "bot/student",
        "-M",
        "student.knowledge=.7",
        "--dataset",
        "samples",
        "--json",
        cwd=tmp_path,
    )
    (result,) = done.json["results"]
    assert (result["metric"], result["matches"], result["missing"]) == ("accuracy", 64, 0)
    assert 0.55 < result["low"] < result["mean"] < result["high"] < 0.95
    assert "shots:5,samples@" in result["signature"]
    assert "shots 5 before each question, from samples (8 available)" in done.err


def test_a_run_without_examples_says_so(tmp_path):
    (tmp_path / "own.jsonl").write_text('{"question": "1 + 1?", "answer": 2}\n')
    done = command(
        "run", "qa", "-m", "bot/student", "--dataset", "own.jsonl", "--json", cwd=tmp_path
    )
    assert "shots none, because the dataset has no worked examples; to add some, use" in done.err
    assert "|shots:0|" in done.json["results"][0]["signature"]
    wrong = command(
        "run",
        "qa",
        "-m",
        "bot/student",
        "--dataset",
        "own.jsonl",
        "--set",
        "shots=3",
        cwd=tmp_path,
        code=2,
    )
    assert "this run needs 3 worked examples, but own.jsonl has none" in wrong.err


def test_a_run_goes_on_with_questions_that_a_file_could_not_have(tmp_path):
    odd = [
        Question("double", "2 + 2?", "B", ("3", "4", "4")),
        Question("letters", "Which is the first letter?", "B", ("B", "A")),
    ]
    begun = run("qa", ["bot/student"], items=odd, store=tmp_path, max_calls=1)
    assert resume(begun.path, max_calls=5).data["run"]["state"] == "done"


def test_a_run_goes_on_with_the_same_examples(tmp_path):
    (tmp_path / "dev.jsonl").write_text('{"question": "1 + 1?", "answer": 2}\n')
    shots = str(tmp_path / "dev.jsonl")
    options = {
        "dataset": "samples-maths",
        "store": tmp_path,
        "shots_from": shots,
        "max_calls": 5,
        "name": "maths",
    }
    replies = {"me": lambda view: "Answer: 3"}
    begun = run("qa", replies, **options)
    assert begun.data["run"]["state"] == "stopped"
    (tmp_path / "dev.jsonl").write_text('{"question": "1 + 2?", "answer": 3}\n')
    with pytest.raises(ReplayError, match="shots"):
        resume("maths", functions=replies, store=tmp_path, max_calls=100)
    (tmp_path / "dev.jsonl").write_text('{"question": "1 + 1?", "answer": 2}\n')
    assert (
        resume("maths", functions=replies, store=tmp_path, max_calls=100).data["run"]["state"]
        == "done"
    )


# --- by log-probabilities -------------------------------------------------------------------------


def chat(**tokens):
    """A chat completion that began with one of these tokens, the first of them; `_` stands for a
    space."""
    found = [
        {"token": token.replace("_", " "), "logprob": chance} for token, chance in tokens.items()
    ]
    content = [
        {"token": " ", "logprob": 0.0, "top_logprobs": []},
        {**found[0], "top_logprobs": found},
    ]
    answer = says("Certainly!")
    answer["choices"][0] |= {"logprobs": {"content": content}, "finish_reason": "length"}
    return answer


def completion(**tokens):
    top = {token.replace("_", " "): chance for token, chance in tokens.items()}
    return {
        "choices": [
            {
                "text": "x",
                "finish_reason": "length",
                "logprobs": {"top_logprobs": [{"\n": -0.1}, top]},
            }
        ]
    }


@pytest.mark.parametrize(
    ("family", "answer"), [("openai-compatible", chat), ("completion", completion)]
)
def test_the_likeliest_letter_is_the_answer_whatever_the_reply_says(family, answer, tmp_path):
    async def played():
        # B twice is likelier than A
        tokens = {"A": -1.2, "B": -1.3, "_B": -1.4, "Bern": -0.9, "C": -5.0}
        async with Server(answer(**tokens)) as server:
            model = {"model": f"{family}/m", "base_url": server.url}
            return await run_async(
                "qa", {"m": model}, items=[CITY], by="logprobs", store=tmp_path
            ), server.asked

    result, asked = asyncio.run(played())
    (match,) = result.matches
    assert (match["scores"]["student"]["accuracy"], match["violations"]) == (1, [])
    wanted = {"logprobs": True, "top_logprobs": 20} if answer is chat else {"logprobs": 20}
    assert asked[0].body.items() >= wanted.items()
    assert resume(result.path).data["results"] == result.data["results"]


@pytest.mark.parametrize(
    "answer", [says("B"), {"choices": [{"message": {"content": "B"}, "logprobs": {"content": []}}]}]
)
def test_a_free_first_reply_is_not_weighed(answer, tmp_path):
    """Only the request for the form asks for log-probabilities."""

    async def played():
        async with Server(answer, chat(B=-0.1)) as server:
            model = {"model": "openai-compatible/m", "base_url": server.url}
            return await run_async(
                "qa",
                {"m": model},
                items=[CITY],
                by="logprobs",
                standardise="always",
                store=tmp_path,
            ), server.asked

    result, asked = asyncio.run(played())
    assert result.data["results"][0]["mean"] == 1
    assert ["logprobs" in each.body for each in asked] == [False, True]


@pytest.mark.parametrize(
    "answer", [says("B"), {"choices": [{"message": {"content": "B"}, "logprobs": {"content": []}}]}]
)
def test_an_endpoint_without_log_probabilities_is_an_error_and_no_wrong_answer(answer, tmp_path):
    async def played():
        async with Server(answer) as server:
            model = {"model": "openai-compatible/m", "base_url": server.url}
            return await run_async("qa", {"m": model}, items=[CITY], by="logprobs", store=tmp_path)

    found = asyncio.run(played()).data
    assert found["run"]["state"] == "stopped"
    assert (
        "this task needs log-probabilities, but the endpoint returned none: use --set by=text"
        in found["run"]["stop"]["reason"]
    )
    assert not [row for row in found["results"] if row["mean"] is not None]


@pytest.mark.parametrize(("options", "wanted"), [({}, 0), ({"temperature": 0.7}, 0.7)])
def test_questions_are_asked_at_temperature_0_and_with_seeds_of_the_run(options, wanted, tmp_path):
    async def played(seed):
        async with Server(says("B")) as server:
            model = {"model": "openai-compatible/m", "base_url": server.url, **options}
            items = [CITY, replace(CITY, id="again")]
            await run_async("qa", {"m": model}, items=items, seed=seed, store=tmp_path)
            assert {each.body["temperature"] for each in server.asked} == {wanted}
            return {each.body["seed"] for each in server.asked}

    first, again, other = (asyncio.run(played(seed)) for seed in (1, 1, 2))
    assert len(first) == 2
    assert first == again
    assert not first & other


def test_nothing_is_asked_for_that_is_not_wanted(tmp_path):
    async def played():
        async with Server(says("B")) as server:
            model = {"model": "openai-compatible/m", "base_url": server.url}
            return await run_async("qa", {"m": model}, items=[CITY], store=tmp_path), server.asked

    result, asked = asyncio.run(played())
    assert result.data["results"][0]["mean"] == 1
    assert not [name for name in asked[0].body if "logprobs" in name]


def test_letters_are_weighed():
    reader = WeighedChoice(CITIES)
    assert (
        reader.read(
            reader.weigh({" A": -0.5, "(A": -3.0, "B.": -0.6, "Paris": -0.1, "b": -0.1, "E": -0.1})
        )
        == "A"
    )
    assert reader.read(reader.write("C")) == "C"
    sure = reader.read(reader.weigh({"The": -0.02, "A": -4.6, " A": -4.6, "B": -7.0}))
    # not shares of what is left
    assert sure.chances == pytest.approx({"A": 2 * math.exp(-4.6), "B": math.exp(-7)})
    scores = said(QA(by="logprobs"), CITY, '{"A": -4.6, "B": -7}')[0].scores[STUDENT]
    assert scores == {"accuracy": 0, "confidence": pytest.approx(math.exp(-7))}
    for tokens in ({}, {"Paris": -0.1}, {"A": -1.0, "B": -1.0}):
        with pytest.raises(Unreadable, match="likeliest"):
            reader.read(reader.weigh(tokens))
    assert said(QA(by="logprobs"), CITY, '{"B": -0.1, "A": -2}')[0].scores[STUDENT]["accuracy"] == 1
    check_task(QA(by="logprobs"), items=[CITY], seeds=(1,))
    with pytest.raises(
        UsageError,
        match="fits the task qa with these parameters: 1 item without choices",
    ):
        run("qa", ["bot/student"], items=[EGGS], by="logprobs")
