"""Questions: the published forms, what is wrong with rows, named datasets with their examples, the
bundled samples, checks."""

import csv
import json
import os
import re
import sys
from collections import Counter
from fractions import Fraction
from importlib import import_module
from types import ModuleType

import pytest

from parley import Question, UsageError
from parley.config.selection import stored_items
from parley.datasets import Dataset
from parley.datasets.catalogue import (
    all_datasets,
    datasets_named,
    describe_reading,
    item_type_of_dataset,
    load_items,
)
from parley.datasets.formats.questions import GOES_ON
from parley.datasets.item_rows import item_from_row
from parley.datasets.open_references import open_references
from parley.tasks.qa import QA
from tests.cli.test_cli import parley as command
from tests.datasets.test_datasets import written

SAMPLES = ("samples", "samples-zh", "samples-maths")
SKY = ("green", "blue", "red", "white")
PLAIN = {
    "id": "sky",
    "question": "What colour is the sky?",
    "choices": list(SKY),
    "answer": "B",
    "subject": "nature",
}
ARC = {
    "id": "Mercury_7",
    "question": {
        "stem": "Which is a gas?",
        "choices": [
            {"text": "ice", "label": "A"},
            {"text": "air", "label": "B"},
            {"text": "sand", "label": "C"},
        ],
    },
    "answerKey": "B",
}
ARC_HUB = {
    "id": "MCAS_1",
    "question": "Which is a gas?",
    "choices": {"text": ["ice", "sand", "salt", "air"], "label": ["1", "2", "3", "4"]},
    "answerKey": "4",
}
SWAG = {
    "ind": 24,
    "activity_label": "Baking bread",
    "ctx_a": "A woman kneads a dough.",
    "ctx_b": "she",
    "ctx": "A woman kneads a dough. she",
    "endings": [
        "reads it [substeps] aloud.",
        "flies away.",
        "sells her car.",
        "puts it into the oven.",
    ],
    "label": "3",
    "split_type": "indomain",
}
HUB = {
    "question": "What is 2 + 2?",
    "subject": "elementary_mathematics",
    "choices": ["3", "4", "4", "22"],
    "answer": 1,
}
CEVAL = {
    "id": "0",
    "question": "下列哪种气体是空气的主要成分？",
    "A": "氧气",
    "B": "氮气",
    "C": "氦气",
    "D": "氖气",
    "answer": "B",
    "explanation": "约占78%。",
}
CMMLU = {
    "": "0",
    "Question": "下列哪种气体是空气的主要成分？",
    "A": "氧气",
    "B": "氮气",
    "C": "氦气",
    "D": "氖气",
    "Answer": "B",
}
GSM = {
    "question": "She sold 1,200 eggs and then 34. How many?",
    "answer": "She sold 1,200+34=<<1200+34=1234>>1,234.\n#### 1,234",
}


def only(path, row):
    (found,) = load_items(written(path, [row]), Question)
    return found


# --- forms ----------------------------------------------------------------------------------------


def test_arc_is_read_from_its_files_and_from_the_hub(tmp_path):
    assert only(tmp_path / "ARC.jsonl", ARC) == Question(
        "Mercury_7", "Which is a gas?", "B", ("ice", "air", "sand")
    )
    found = only(tmp_path / "hub.jsonl", ARC_HUB)
    assert (found.answer, found.right, found.letters) == ("D", "air", ("A", "B", "C", "D"))


@pytest.mark.parametrize("label", ["3", 3])
def test_hellaswag_is_cleaned_of_its_marks(tmp_path, label):
    found = only(tmp_path / "swag.jsonl", SWAG | {"label": label})
    assert found.question == f"{GOES_ON}\n\nBaking bread: A woman kneads a dough. She"
    assert found.choices[0] == "reads it aloud."
    assert (found.answer, found.subject) == ("D", "Baking bread")
    titled = SWAG | {
        "ctx_a": None,
        "ctx": "[header] How to bake [title] Heat the oven. [step] Turn it on.",
    }
    assert only(tmp_path / "how.jsonl", titled).question.endswith(
        "bread: How to bake. Heat the oven. Turn it on."
    )


def test_mmlu_files_have_no_header_and_are_named_after_their_subject(tmp_path):
    for subject in ("anatomy", "world_religions"):
        with (tmp_path / f"{subject}_test.csv").open("w", newline="") as file:
            csv.writer(file).writerows(
                [[f"What is {subject},\n1?", *SKY, "B"], ["Second?", "A", "B", "AB", "O", "D"]]
            )
    found = load_items(str(tmp_path), Question)
    assert [each.id for each in found] == [
        "anatomy/1",
        "anatomy/2",
        "world_religions/1",
        "world_religions/2",
    ]
    assert (found[0].question, found[0].subject, found[0].right) == (
        "What is anatomy,\n1?",
        "anatomy",
        "blue",
    )
    # a letter is a letter, whatever the choices are
    assert (found[1].answer, found[1].right) == ("D", "O")


def test_mmlu_mirrors_have_a_header_and_count_from_0(tmp_path):
    row = {
        "question": "What colour is the sky?",
        **dict(zip("ABCD", SKY, strict=True)),
        "answer": 1,
    }
    assert only(tmp_path / "astronomy_dev.csv", row) == Question(
        "astronomy/1", row["question"], "B", SKY, "astronomy"
    )
    assert only(tmp_path / "mine.csv", row) == Question("1", row["question"], "B", SKY)
    assert only(
        tmp_path / "turned.csv", {"question": row["question"], "answer": "B", **row}
    ) == Question("1", row["question"], "B", SKY)
    # the text and the number of one choice
    assert only(tmp_path / "index.csv", row | {"A": 5, "B": 1}).answer == "B"
    # as the hub has it
    assert (
        only(tmp_path / "two.jsonl", HUB | {"choices": ["1", "2", "3", "4"], "answer": 2}).answer
        == "C"
    )
    # four questions of the published test set have a choice twice
    found = only(tmp_path / "hub.jsonl", HUB)
    assert (found.answer, found.subject, found.choices) == (
        "B",
        "elementary_mathematics",
        ("3", "4", "4", "22"),
    )


def test_ceval_and_cmmlu_are_chinese_and_named_after_their_subject(tmp_path):
    first = only(tmp_path / "physics_val.csv", CEVAL)
    assert first == Question(
        "physics/0",
        CEVAL["question"],
        "B",
        ("氧气", "氮气", "氦气", "氖气"),
        "physics",
        "zh",
        "约占78%。",
    )
    other = only(tmp_path / "agronomy.csv", CMMLU)
    assert (other.id, other.subject, other.language, other.right) == (
        "agronomy/1",
        "agronomy",
        "zh",
        "氮气",
    )


def test_gsm8k_has_its_number_behind_the_mark(tmp_path):
    found = only(tmp_path / "test.jsonl", GSM)
    assert found == Question("1", GSM["question"], "1234", explanation="She sold 1,200+34=1,234.")
    assert (
        only(tmp_path / "own.jsonl", {"question": "Capital of Peru?", "answer": "Lima"}).right
        == "Lima"
    )
    assert (
        only(
            tmp_path / "none.jsonl",
            {"question": "1 + 1?", "choices": [], "answer": 2, "subject": "sums"},
        ).answer
        == "2"
    )
    assert only(tmp_path / "half.jsonl", {"question": "Half of 1?", "answer": 0.50}).answer == "0.5"


@pytest.mark.parametrize("answer", ["B", "b", "(B)", "B.", 1, "1", "blue"])
def test_rows_with_the_fields_of_a_question(tmp_path, answer):
    assert only(tmp_path / "own.jsonl", PLAIN | {"answer": answer}) == Question(
        "sky", PLAIN["question"], "B", SKY, "nature"
    )
    assert (
        only(tmp_path / "own.csv", PLAIN | {"answer": answer, "choices": json.dumps(SKY)}).right
        == "blue"
    )


def test_any_other_file_is_mapped(tmp_path):
    path = written(tmp_path / "exam.csv", [{"stem": "2 + 2?", "a": 3, "b": 4, "c": 5, "key": "B"}])
    (found,) = load_items(
        path, Question, {"question": "stem", "choices": ["a", "b", "c"], "answer": "key"}
    )
    assert found == Question("1", "2 + 2?", "B", ("3", "4", "5"))
    with pytest.raises(
        UsageError,
        match=r"unknown field of Question in the columns .*: 'choice'; did you mean 'choices'",
    ):
        load_items(path, Question, {"choice": ["a"]})


NAMES = [
    "choice0 choice1 choice2 choice3",
    "choice_1 choice_2 choice_3 choice_4",
    "choice_a choice_b choice_c choice_d",
    "Choice A,Choice B,Choice C,Choice D",
    "option_a option_b option_c option_d",
    "optionA optionB optionC optionD",
    "option1 option2 option3 option4",
    "opa opb opc opd",
    "A B C D",
    "a b c d",
]


@pytest.mark.parametrize("names", NAMES)
def test_choices_are_read_from_columns_with_the_usual_names(tmp_path, names):
    columns = names.split("," if "," in names else None)
    row = {"question": PLAIN["question"], **dict(zip(columns, SKY, strict=True))}
    first = 1 if "1" in columns[0] else 0
    for answer in ("B", "b", 1 + first, *(["blue", columns[1]] if len(columns[0]) > 1 else [])):
        for ending in ("csv", "jsonl"):
            found = only(tmp_path / f"own.{ending}", row | {"answer": answer})
            assert (found.choices, found.right) == (SKY, "blue")


def test_there_may_be_more_or_fewer_than_four_choices(tmp_path):
    five = {"question": "x?", **dict(zip("ABCDE", "vwxyz", strict=True)), "answer": "E"}
    assert only(tmp_path / "five.csv", five).right == "z"
    fewer = five | {"D": "", "E": "", "answer": "C"}
    assert only(tmp_path / "fewer.csv", fewer).choices == ("v", "w", "x")
    exact = {"question": "x?", "option_a": "v", "answer": "9"}
    path = written(tmp_path / "exact.csv", [exact])
    assert load_items(path, Question, {"choices": []}) == [Question("1", "x?", "9")]


UNREAD = {
    "letters": (
        {"Antwort_A": "red", "Antwort_B": "blue", "Quelle": "x"},
        "B",
        "Antwort_A,Antwort_B",
    ),
    "numbers": ({"a1": "red", "a2": "blue"}, "2", "a1,a2"),
    "texts": ({"foo": "red", "bar": "blue"}, "blue", "foo,bar"),
    "a list": ({"Antworten": ["red", "blue"]}, "b", "Antworten"),
}


@pytest.mark.parametrize(("more", "answer", "names"), UNREAD.values(), ids=UNREAD)
def test_choices_in_columns_that_nobody_reads_are_not_dropped(tmp_path, more, answer, names):
    row = {"Frage": "What colour is the sky?", **more, "Loesung": answer}
    path = written(tmp_path / "own.jsonl", [row])
    named = {"question": "Frage", "answer": "Loesung"}
    with pytest.raises(
        UsageError, match=f"add --column choices={names}; if .* add --column choices="
    ):
        load_items(path, Question, named)
    columns = names.split(",")
    choices = columns if len(columns) > 1 else columns[0]
    (found,) = load_items(path, Question, named | {"choices": choices})
    assert (found.choices, found.right) == (("red", "blue"), "blue")
    (exact,) = load_items(path, Question, named | {"choices": []})
    assert (exact.choices, exact.answer) == ((), answer)


def test_other_columns_are_left_alone_and_listed_by_check(tmp_path):
    rows = [
        {"question": "Capital of Peru?", "level": "2", "source": "own", "answer": "Lima"},
        {"question": "Grade of this?", "level": "1", "source": "own", "answer": "B"},
    ]
    path = written(tmp_path / "own.csv", rows)
    done = command("datasets", "check", path, cwd=tmp_path)
    assert f"dataset {path}: Parley does not use the columns level, source" in done.err
    assert "questions without choices: 2" in done.out


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_table_may_be_separated_by_semicolons_or_tabs(tmp_path, mark, name):
    file = tmp_path / "own.csv"
    lines = ["question,option_a,option_b,answer", "Half of 3 in German?,1.5,1~5,B"]
    file.write_text("\n".join(lines).replace(",", mark).replace("~", ",") + "\n")
    done = command("datasets", "check", str(file), cwd=tmp_path)
    assert f"dataset {file}: Parley read this file as separated by {name}" in done.err
    assert load_items(str(file), Question)[0].right == "1,5"
    file.write_text(file.read_text() + f"x?{mark}1{mark}2{mark}3{mark}A\n")
    with pytest.raises(
        UsageError,
        match=f"row 2: this row does not have the same number of fields .* separated by {name}",
    ):
        load_items(str(file), Question)


def test_a_header_that_may_be_separated_in_two_ways_is_refused(tmp_path):
    (tmp_path / "own.csv").write_text("question;x\tanswer\n1;2\t3\n")
    with pytest.raises(UsageError, match="by semicolons or tabs: save the file with commas"):
        load_items(str(tmp_path / "own.csv"), Question)


def test_named_columns_of_choices_are_answered_by_their_names(tmp_path):
    named = {"choices": ["w", "x", "y", "z"]}
    row = {"question": "Sky?", **dict(zip("wxyz", SKY, strict=True))}
    for answer in ("x", "B", 1, "blue"):
        path = written(tmp_path / "own.csv", [row | {"answer": answer}])
        assert load_items(path, Question, named)[0].right == "blue"
    path = written(tmp_path / "own.csv", [row | {"answer": "v"}])
    with pytest.raises(UsageError) as wrong:
        load_items(path, Question, named)
    assert "the name of a column, or the whole text of a choice" in str(wrong.value)
    assert str(wrong.value).endswith("the columns are question, w, x, y, z, answer")
    path = written(tmp_path / "turned.csv", [{"question": "x?", "b": 1, "a": 2, "answer": "a"}])
    with pytest.raises(UsageError, match="the name of one column and means the choice in an"):
        load_items(path, Question, {"choices": ["b", "a"]})
    path = written(
        tmp_path / "numbered.csv", [{"question": "x?", "v1": "p", "v2": "q", "answer": 1}]
    )
    assert load_items(path, Question, {"choices": ["v1", "v2"]})[0].right == "p"


def test_check_says_which_questions_have_fewer_choices(tmp_path):
    rows = [
        {"question": f"{n}?", "choice0": "a", "choice1": "b", "choice2": last, "answer": 1}
        for n, last in enumerate(["c", "", "d"], 1)
    ]
    path = written(tmp_path / "own.csv", rows)
    done = command("datasets", "check", path, cwd=tmp_path)
    noted = "1 question has fewer than 3 choices, because the column `choice2` is empty (row 2)"
    assert f"dataset {path}: {noted}" in done.err
    assert describe_reading(path, Question) == [f"dataset {path}: {noted}"]
    assert "questions with fewer than 3 choices: 1 (2)" in done.out


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_are_places_where_not_all_of_them_can_be_texts(tmp_path, first):
    """In MMLU many choices are numbers themselves."""
    columns = [f"choice{n + first}" for n in range(4)]
    rows = [
        {"question": "3 - 3?", **dict(zip(columns, "2310", strict=True)), "answer": 3 + first},
        {"question": "1 + 2?", **dict(zip(columns, "2310", strict=True)), "answer": 1 + first},
    ]
    with pytest.raises(UsageError, match="or number of another: write the letter"):
        load_items(written(tmp_path / "one.csv", rows[1:]), Question)
    rows.append({"question": "?", **dict(zip(columns, "wxyz", strict=True)), "answer": first})
    found = load_items(written(tmp_path / "all.csv", rows), Question)
    assert [question.right for question in found] == ["0", "3", "w"]


def test_the_nearest_form_is_named_without_what_is_read(tmp_path):
    path = written(tmp_path / "x.csv", [{"question": "x", "choice1": 3, "choice2": 4, "answr": 1}])
    with pytest.raises(UsageError) as wrong:
        load_items(path, Question)
    said = str(wrong.value).partition("row 1: ")[2]
    assert said == (
        "Parley does not know this format; the nearest known format for Question items has the "
        "columns question, answer (one column per choice); this file has the columns question, "
        "choice1, choice2, answr; Parley does not use the column 'answr'; did you mean 'answer'?; "
        "to map a column, use --column answer=COLUMN (the key `columns` in an experiment file)"
    )


def test_rows_of_a_folder_are_called_by_their_file_and_number(tmp_path):
    rows = [{"question": f"{n}?", "answer": n} for n in (1, 2)]
    for name in ("first.csv", "second.jsonl"):
        written(tmp_path / name, rows)
    found = [question.id for question in load_items(str(tmp_path), Question)]
    assert found == ["first/1", "first/2", "second/1", "second/2"]


def test_columns_are_named_on_the_command_line(tmp_path):
    rows = [
        {"stem": "2 + 2?", "x": 3, "y": 4, "key": "B"},
        {"stem": "1?", "x": 1, "y": 2, "key": "A"},
    ]
    path = written(tmp_path / "exam.csv", rows)
    wrong = command("datasets", "check", path, cwd=tmp_path, code=2).err
    assert len(wrong.splitlines()) == 1
    assert len(wrong) < 400
    named = ("--column", "question=stem", "--column", "choices=x,y", "--column", "answer=key")
    done = command("datasets", "check", path, *named, "--json", cwd=tmp_path)
    assert (done.json["item_type"], done.json["items"]) == ("Question", 2)
    played = ("run", "qa", "-m", "bot/null", "--dataset", path, "--set", "shots=0")
    done = command(*played, *named, "--json", cwd=tmp_path)
    assert done.json["run"]["state"] == "done"
    wrong = command("run", "qa", "-m", "bot/null", *named, cwd=tmp_path, code=2).err
    assert "--dataset PATH" in wrong


@pytest.mark.parametrize("row", [PLAIN, ARC, ARC_HUB, SWAG, HUB, CEVAL, GSM])
def test_a_question_is_kept_by_a_run_and_read_again(tmp_path, row):
    question = only(tmp_path / "x.jsonl", row)
    ((_, text),) = stored_items([question])
    assert item_from_row(json.loads(text), Question, "row 1", 1) == question


def test_a_file_of_questions_is_known_by_its_columns(tmp_path):
    for n, row in enumerate([PLAIN, ARC, ARC_HUB, SWAG, HUB, CEVAL, GSM]):
        assert item_type_of_dataset(written(tmp_path / f"{n}.jsonl", [row])) is Question


WRONG = {
    "no such choice": (PLAIN | {"answer": "E"},
                       r"row 2 \(.*\): answer 'E' is not a choice: expected a letter from A to D"),
    "a number too high": (PLAIN | {"answer": 4}, "answer '4' is not a choice"),
    "no answer": (PLAIN | {"answer": ""}, "the column `answer` is empty"),
    "null": (PLAIN | {"answer": None}, "the column `answer` must be text, not null"),
    "double": (PLAIN | {"choices": ["a", "b", "a "]}, "two choices are the same: 'a'"),
    "empty choice": (PLAIN | {"choices": ["a", "b", " "]}, "row 2: choice C is empty"),
    "one choice": (PLAIN | {"choices": ["a"]}, "`choices` must be a list of two or more texts"),
    "no list": (PLAIN | {"choices": "a"}, "must be a list of two or more texts, not 'a'"),
    "text or number": (PLAIN | {"choices": ["1", "2", "3"], "answer": "1"},
                       "it is the text of one choice and the letter or number of another"),
    "a number or its text": ({"question": "1 + 1?", "choices": [1, 2, 3], "answer": 2},
                             "row 2 .*: answer '2' is .*letter"),
    "a column's": (CEVAL | {"A": "10", "B": "3", "C": "2", "D": "1", "answer": 3},
                   "row 2 .*: answer '3' is ambiguous, because it is the text of one"),
    "another spelling": (CEVAL | {"A": "10", "B": "3.0", "C": "2", "D": "1", "answer": "3"},
                         "write the letter"),
    "no question": (PLAIN | {"question": " "}, "row 2: the question is empty"),
    "label": (ARC | {"answerKey": "D"}, r"\(ARC\): `answerKey` must be .* A, B, C, not 'D'"),
    "labels": (ARC_HUB | {"choices": {"text": ["x"], "label": ["A", "B"]}},
               "every choice must have text and a label"),
    "same labels": (ARC_HUB | {"choices": {"text": ["x", "y"], "label": ["A", "A"]}},
                    "two choices have the same label"),
    "kept back": (SWAG | {"label": ""},
                  "`label` is empty .some published test sets withhold their answers"),
    "no number": (GSM | {"answer": "a lot\n#### many"},
                  "`answer` must have a number after ####, found 'many'"),
    "columns": ({"question": "x", "key": "A"},
                r"row 2: Parley does not know .* columns question, answer \(exact answers, "
                r"GSM8K\); this file has the columns question, key; .*--column answer=COLUMN"),
    "a gap": ({"question": "x", "choice1": "a", "choice3": "b", "answer": "A"},
              "choice1, choice3 look like choices, but .*--column choices="),
    "one column": ({"question": "x", "option_a": "a", "answer": "A"}, "option_a look like choices"),
    "other names": ({"question": "x", "wrong_answer_1": "a", "wrong_answer_2": "b", "answer": "c"},
                    "wrong_answer_1, wrong_answer_2 look like choices, but Parley would"),
    "odd letters": ({"question": "x", "B": "a", "D": "b", "answer": "A"}, "B, D look like choices"),
    "not from 1": ({"question": "x", "choice1": "a", "choice2": "b", "answer": 0},
                   "answer '0' is not a choice, because the columns with choices are numbered"),
    "1 or 2": ({"question": "x", "choice1": "2", "choice2": "1", "answer": 1},
               "it is the text of one choice and the letter or number of another"),
    "no text": ({"question": "x", "choice0": "a", "choice1": "b", "answer": "c"},
                "answer 'c' is not a choice"),
    "empty between": ({"question": "x", "A": "a", "B": "", "C": "c", "answer": "C"},
                      "choice B is empty"),
}  # fmt: skip


@pytest.mark.parametrize(("row", "words"), WRONG.values(), ids=WRONG)
def test_a_row_that_does_not_fit_is_named(tmp_path, row, words):
    with pytest.raises(UsageError, match=words) as wrong:
        load_items(written(tmp_path / "wrong.jsonl", [PLAIN, row]), Question)
    assert str(tmp_path / "wrong.jsonl") in str(wrong.value)


# --- named datasets and their examples ------------------------------------------------------------


def test_published_sizes():
    sizes = {
        "arc-easy": 2376,
        "arc-challenge": 1172,
        "hellaswag": 10042,
        "mmlu": 14042,
        "ceval": 1346,
        "cmmlu": 11582,
        "gsm8k": 1319,
    }
    found = {
        each.name: each
        for each in all_datasets()
        if each.item_type is Question and each.name not in SAMPLES
    }
    assert {name: each.count for name, each in found.items()} == sizes
    assert all(each.examples is not None for each in found.values())


def test_a_dataset_of_the_hub_is_asked_for_by_split_and_edition(monkeypatch):
    wanted = []

    def load_dataset(name, edition, split, revision=None):
        wanted.append((name, edition, split))
        rows = {
            "allenai/ai2_arc": ARC_HUB,
            "cais/mmlu": HUB,
            "ceval/ceval-exam": CEVAL,
            "Rowan/hellaswag": SWAG,
        }
        return [
            rows[name] | ({"id": str(n)} if "id" in rows[name] else {})
            for n in range(1 if "ceval" in name else 1172)
        ]

    library = ModuleType("datasets")
    library.load_dataset = load_dataset
    library.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "datasets", library)
    assert len(datasets_named("arc-challenge")[0].items()) == 1172
    assert wanted.pop() == ("allenai/ai2_arc", "ARC-Challenge", "test")
    with pytest.raises(
        UsageError,
        match="mmlu should have 14042 items, but the source has 1172, so it is a different",
    ):
        datasets_named("mmlu")[0].items()
    examples = list(datasets_named("ceval")[0].examples())
    assert len(examples) == len({each["id"] for each in examples}) == 52
    assert wanted[-1] == ("ceval/ceval-exam", "veterinary_medicine", "dev")
    shots = open_references(QA(shots=5), "hellaswag")["shots"]
    assert wanted[-1] == ("Rowan/hellaswag", "default", "train[:64]")
    assert len(shots.before("Baking bread")) == 5


def test_gsm8k_is_played_with_eight_examples_unless_a_number_is_set(monkeypatch):
    rows = [{"question": f"{n} and 1?", "answer": f"#### {n + 1}"} for n in range(64)]
    library = ModuleType("datasets")
    library.load_dataset = lambda name, edition, split, revision=None: rows
    library.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "datasets", library)
    for shots, count in ((None, 8), (3, 3)):
        found = open_references(QA(shots=shots), "gsm8k")["shots"]
        assert len(found.before("")) == count


def some(subject, count, start=0):
    return [
        Question(f"{subject}{n}", f"{subject} {n}?", "A", ("yes", "no"), subject)
        for n in range(start, start + count)
    ]


def shots_of(tmp_path, examples, asked=(), **params):
    rows = [{**vars(each), "choices": list(each.choices)} for each in examples]
    path = written(tmp_path / "dev.jsonl", rows)
    return open_references(QA(shots_from=path, **params), None, asked)["shots"]


def test_examples_are_those_of_the_subject_where_there_are_enough(tmp_path):
    shots = shots_of(tmp_path, [*some("law", 3), *some("art", 5)])
    assert [each["id"] for each in shots.before("art")] == [f"art{n}" for n in range(5)]
    assert [each["id"] for each in shots.before("law")] == ["law0", "law1", "law2", "art0", "art1"]
    assert [each["id"] for each in shots_of(tmp_path, some("law", 3), shots=2).before("")] == [
        "law0",
        "law1",
    ]


def test_no_example_is_itself_asked(tmp_path):
    asked = Question("other", "LAW  1?", "B", ("no", "yes"))
    shots = shots_of(tmp_path, some("law", 4), [asked])
    assert [each["id"] for each in shots.before("law")] == ["law0", "law2", "law3"]
    assert "1 left out, because this run asks the same question" in shots.told
    others = [
        Question("o", "Ｌａｗ 1", "A", ("Yes.", "No.")),
        Question("p", "“Law 2”？", "A", ("Perhaps", "never")),
    ]
    assert [each["id"] for each in shots_of(tmp_path, some("law", 4), others).before("law")] == [
        "law0",
        "law3",
    ]
    assert (
        shots_of(tmp_path, some("law", 4), [Question("q", "Law -1?", "A", ("yes", "no"))]).left_out
        == 0
    )


def test_examples_that_are_not_there_are_an_error_only_if_they_were_wanted(tmp_path):
    assert (
        open_references(QA())["shots"].count
        == open_references(QA(), str(tmp_path / "mine.jsonl"))["shots"].count
        == 0
    )
    assert open_references(QA(shots=0)) == {}
    for params, dataset, words in [
        ({"shots": 5}, None, "this run needs 5 worked examples, but the dataset has none"),
        (
            {"shots": 9},
            "samples",
            "this run needs 9 worked examples, but samples has only 8 whose questions this run "
            "does not ask",
        ),
    ]:
        with pytest.raises(UsageError, match=words):
            open_references(QA(**params), dataset)
    with pytest.raises(UsageError, match="unknown dataset 'sampels'; did you mean 'samples'"):
        open_references(QA(shots_from="sampels"))


# --- the bundled samples --------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_bundled_questions_are_sound_and_differ(name, tmp_path):
    (dataset,) = datasets_named(name, Question)
    items, examples = dataset.items(), open_references(QA(), name, dataset.items())["shots"]
    assert (examples.count, examples.left_out) == (5, 0)
    assert len(
        {each.question for each in items} | {each["question"] for each in examples.examples}
    ) == len(items) + len(examples.examples)
    assert all(len(set(each.choices)) == (0 if name == "samples-maths" else 4) for each in items)
    assert {each.language for each in items} == {"zh" if name == "samples-zh" else "en"}
    done = command("datasets", "check", name, "--task", "qa", cwd=tmp_path)
    assert f"{len(items)} checked, 0 failed" in done.out


def test_bundled_questions_are_many_and_balanced():
    english, chinese = (load_items(name, Question) for name in SAMPLES[:2])
    assert Counter(each.answer for each in english) == dict.fromkeys("ABCD", 16)
    assert set(Counter(each.subject for each in english).values()) == {8}
    assert len({each.subject for each in english}) == 8
    # the first few are of all subjects
    assert {each.subject for each in english[:8]} == {each.subject for each in english}
    assert set(Counter(each.answer for each in chinese).values()) <= {7, 8}
    assert len({each.subject for each in chinese}) == 5
    longest = sum(
        each.right == max(each.choices, key=len)
        for each in english
        if len(set(map(len, each.choices))) == 4
    )
    assert longest < 16  # the right choice cannot be told by its length
    levels = {
        row["level"] for name in SAMPLES[:2] for row in datasets_named(name, Question)[0].rows()
    }
    assert levels == {1, 2, 3}


def test_every_sum_in_the_bundled_mathematics_is_right():
    items = load_items("samples-maths", Question)
    assert len(items) >= 60
    for item in items:
        sums = re.findall(r"([\d(][\d.+\-*/() ]*) = (\d+(?:\.\d+)?)", item.explanation)
        assert sums, item.id
        for left, right in sums:
            value = eval(
                re.sub(r"\d+(?:\.\d+)?", lambda found: f"Fraction('{found[0]}')", left),
                {"Fraction": Fraction},
            )
            assert value == Fraction(right), item.explanation
        assert sums[-1][1] == item.answer


# --- checks ---------------------------------------------------------------------------------------


def test_a_check_finds_questions_asked_twice_and_double_choices(tmp_path):
    again = PLAIN | {
        "id": "again",
        "choices": SKY[::-1],
        "answer": "C",
        "question": "What  colour is the SKY?",
    }
    rows = [PLAIN, again, HUB | {"id": "sum"}, GSM]
    done = command(
        "datasets", "check", written(tmp_path / "own.jsonl", rows), "--json", cwd=tmp_path, code=5
    )
    assert done.json["failed"] == [
        {"id": "again", "fault": "this item asks the same question as sky"},
        {"id": "sum", "fault": "this question lists the right choice twice: '4'"},
    ]
    assert done.json["remarks"] == [
        "how often each letter is the right answer: B 2, C 1",
        "questions without choices: 1",
        "subjects: 2, with 1 to 2 questions each",
    ]


def test_a_dataset_of_another_package_brings_its_examples():
    riddles = Dataset("riddles", Question, 1, "here", "CC0", lambda: [PLAIN], lambda: [GSM])
    assert (riddles.items()[0].id, list(riddles.examples())) == ("sky", [GSM])


def test_parquet_files_are_read_where_pyarrow_is_there(tmp_path):
    # there it must be, and nothing is skipped
    needed = import_module if os.environ.get("PARLEY_HEAVY") else pytest.importorskip
    arrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    row = {"question": "2 + 2?", "choices": ["3", "4"], "answer": 1, "subject": "sums"}
    parquet.write_table(arrow.Table.from_pylist([row]), tmp_path / "sums.parquet")
    (found,) = load_items(str(tmp_path / "sums.parquet"), Question)
    assert (found.answer, found.choices, found.subject) == ("B", ("3", "4"), "sums")
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "sums.parquet").read_bytes()[:-9])
    with pytest.raises(UsageError, match=r"torn\.parquet cannot be read"):
        load_items(str(tmp_path / "torn.parquet"), Question)


def test_parquet_files_need_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "sums.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match=r"Parquet files need the package pyarrow: pip install"):
        load_items(str(tmp_path / "sums.parquet"), Question)
