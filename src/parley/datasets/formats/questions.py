"""Questions: ARC, HellaSwag, MMLU, C-Eval, CMMLU and GSM8K as they are published, and rows with the
fields of a `Question`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from parley.datasets.files import LETTERED, Located
from parley.datasets.formats import Form, Row
from parley.datasets.formats.problems import unpacked
from parley.datasets.reference_programs import unix
from parley.rules.items import LETTERS, Question
from parley.rules.numerals import number, numeral
from parley.tables import clip

SPLIT = re.compile(r"_(?:dev|val|test|train)$")  # what follows the subject in the name of a file
ANNOTATION = re.compile(r"<<[^<>]*>>")  # GSM8K's own sums, for a calculator
MARK = re.compile(r"\[[^\[\]]*\]")  # what is left of WikiHow's headings in HellaSwag
HAN, WORD = re.compile(r"[\u3400-\u9fff]"), re.compile(r"[A-Za-z]{2,}")
MORE = ("id", "subject", "language", "explanation")


def arc(row: Row) -> dict[str, Any]:
    """ARC: choices with labels of their own, A to E or 1 to 4; in its files they stand inside the
    question."""
    inside = (
        row["question"]
        if isinstance(row["question"], Mapping)
        else {"stem": row["question"], "choices": row.get("choices")}
    )
    labels, texts = labelled(inside.get("choices"))
    key = text_in(row["answerKey"], "answerKey")
    if key not in labels:
        raise ValueError(f"answerKey {clip(key)!r} is none of the labels {', '.join(labels)}")
    return asked(row, inside.get("stem"), texts, LETTERS[labels.index(key)])


def labelled(choices: Any) -> tuple[list[str], list[Any]]:
    """Labels and texts, which stand in a list of pairs, or in two lists."""
    if isinstance(choices, Mapping):
        labels, texts = choices.get("label"), choices.get("text")
    elif isinstance(choices, Sequence) and all(isinstance(each, Mapping) for each in choices):
        labels, texts = ([each.get(name) for each in choices] for name in ("label", "text"))
    else:
        labels = texts = None
    if not isinstance(labels, list) or not isinstance(texts, list) or len(labels) != len(texts):
        raise ValueError(f"choices want a text and a label each, found {clip(repr(choices))}")
    named = [text_in(each, "a label") for each in labels]
    if len(set(named)) != len(named):
        raise ValueError(f"two choices have one label: {', '.join(named)}")
    return named, texts


def hellaswag(row: Row) -> dict[str, Any]:
    """HellaSwag: a beginning and four ways to go on; the marks of its sources are taken out, as is
    usual."""
    ends, beginning = unpacked(row["endings"]), row["ctx"]
    if isinstance(row.get("ctx_a"), str) and isinstance(row.get("ctx_b"), str):
        beginning = f"{row['ctx_a']} {row['ctx_b'].capitalize()}".strip()
    subject = text_in(row.get("activity_label") or "", "activity_label")
    told = f"{subject}: {text_in(beginning, 'ctx')}" if subject else text_in(beginning, "ctx")
    texts = [unmarked(text_in(each, "an ending")) for each in texts_in(ends, "endings")]
    own = {"subject": subject, **{name: row[name] for name in MORE if row.get(name)}}
    return asked(
        own, f"{GOES_ON}\n\n{unmarked(told)}", texts, letter_in(row["label"], texts, "label")
    )


GOES_ON = "Which of the endings continues this text best?"


def unmarked(text: str) -> str:
    return " ".join(MARK.sub("", text.replace(" [title]", ". ")).split())


def lettered(row: Row) -> dict[str, Any]:
    """A column for each of four choices, as in MMLU's and C-Eval's files; answers are letters, or
    whole numbers from 0."""
    texts = [row[letter] for letter in LETTERED[1:-1]]
    return asked(row, row["question"], texts, meant_in(row["answer"], texts))


def cmmlu(row: Row) -> dict[str, Any]:
    """CMMLU: the same with other names of columns."""
    return lettered({**row, "question": row["Question"], "answer": row["Answer"]})


def by_subject(found: Located) -> Row:
    """A row whose file is named after its subject: `anatomy_test.csv`."""
    subject = SPLIT.sub("", found.file)
    return of_file(found, subject) if subject != found.file else dict(found.row)


def of_file(found: Located, subject: str = "") -> Row:
    """A row with its file as its subject, which is a part of its id too: ids begin anew in every
    file."""
    subject = subject or SPLIT.sub("", found.file)
    own = found.row.get("id")
    named = {"id": f"{subject}/{found.number if own in (None, '') else own}"} if subject else {}
    return {"subject": subject, **found.row, **named}


def mmlu(row: Row) -> dict[str, Any]:
    """MMLU as the hub has it: the right choice by its number, from 0. Some of its questions have a
    choice twice."""
    if not isinstance(row["answer"], int) or not row["choices"]:
        return plain(row)
    texts = texts_in(unpacked(row["choices"]), "choices")
    return asked(row, row["question"], texts, letter_in(row["answer"], texts))


def plain(row: Row) -> dict[str, Any]:
    """The fields of a question with choices; the answer is a letter, the number of a choice, from
    0, or its whole text."""
    if row["choices"] in (None, "", "[]", [], ()):
        return exact(row)
    texts = [text_in(each, "a choice") for each in texts_in(unpacked(row["choices"]), "choices")]
    if doubles := [each for at, each in enumerate(texts) if each in texts[:at]]:
        raise ValueError(f"two choices are the same: {clip(doubles[0])!r}")
    said = text_in(row["answer"], "answer")
    if said not in texts:
        return asked(row, row["question"], texts, meant_in(said, texts))
    by_text = LETTERS[texts.index(said)]
    if by_text != letter_in(said, texts, otherwise=by_text):
        raise ValueError(TWO_MEANINGS.format(clip(said)))
    return asked(row, row["question"], texts, by_text)


TWO_MEANINGS = "answer {!r} is the text of one choice and stands for another: write the letter"


def meant_in(said: Any, texts: Sequence[Any]) -> str:
    """The letter of the right choice; a whole number that is itself a choice must be the number of
    that choice."""
    letter, word = letter_in(said, texts), text_in(said, "answer")
    alike = [
        LETTERS[at]
        for at, text in enumerate(texts)
        if word.isdigit() and number(text_in(text, "a choice")) == int(word)
    ]
    if alike and letter not in alike:
        raise ValueError(TWO_MEANINGS.format(clip(word)))
    return letter


def exact(row: Row) -> dict[str, Any]:
    """A question without choices; an answer that ends in `#### 18` is GSM8K's: its working, then
    the number."""
    said = text_in(row["answer"], "answer")
    working, mark, final = said.rpartition("####")
    if not mark:
        return asked(row, row["question"], (), numeral(said) or said)
    if number(final) is None:
        raise ValueError(f"answer wants a number after ####, found {clip(final.strip())!r}")
    explanation = row.get("explanation") or ANNOTATION.sub("", working).strip()
    return asked({**row, "explanation": explanation}, row["question"], (), numeral(final))


def asked(row: Row, question: Any, choices: Sequence[Any], answer: str | None) -> dict[str, Any]:
    """The fields of a question; what language it is in is seen by its letters, where nobody says
    it."""
    texts = [text_in(each, "a choice") for each in choices]
    told = text_in(question, "question")
    own = {name: text_in(row[name], name) for name in MORE if row.get(name) not in (None, "")}
    return {
        "language": language_of(" ".join([told, *texts])),
        **own,
        "question": told,
        "choices": texts,
        "answer": answer,
    }


def language_of(text: str) -> str:
    """Chinese or English: by which there is more of, characters or words."""
    return "zh" if len(HAN.findall(text)) > len(WORD.findall(text)) else "en"


def letter_in(
    said: Any, choices: Sequence[Any], column: str = "answer", otherwise: str | None = None
) -> str:
    """The letter of the right choice, given as such or by its number, from 0."""
    word = text_in(said, column).strip("()").removesuffix(".")
    if not word and otherwise is None:
        raise ValueError(f"{column} is empty: published test sets may keep their answers back")
    if len(word) == 1 and word.upper() in LETTERS[: len(choices)]:
        return word.upper()
    if re.fullmatch(r"\d{1,2}", word) and int(word) < len(choices):
        return LETTERS[int(word)]
    if otherwise is not None:
        return otherwise
    last = LETTERS[len(choices) - 1] if choices else "A"
    raise ValueError(
        f"{column} {clip(word)!r} is no choice: wanted a letter from A to {last}, "
        f"or a number from 0"
    )


def texts_in(found: Any, column: str) -> list[Any]:
    if not isinstance(found, list | tuple) or len(found) < 2:
        raise ValueError(f"{column} wants a list of two texts or more, found {clip(repr(found))}")
    return list(found)


def text_in(found: Any, column: str) -> str:
    """A text, or a number as one."""
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        raise ValueError(f"{column} wants a text, found {type(found).__name__}")
    return unix(str(found)).strip()


FORMS = (
    Form(Question, "ARC", ("question", "answerKey"), arc, ("choices", "id")),
    Form(
        Question,
        "HellaSwag",
        ("ctx", "endings", "label"),
        hellaswag,
        ("activity_label", "ctx_a", "ctx_b"),
    ),
    Form(Question, "CMMLU", ("Question", *LETTERED[1:-1], "Answer"), cmmlu, placed=of_file),
    Form(Question, "MMLU and C-Eval", tuple(LETTERED), lettered, MORE, placed=by_subject),
    Form(Question, "MMLU of the hub", ("question", "subject", "choices", "answer"), mmlu, MORE),
    Form(Question, "questions with choices", ("question", "choices", "answer"), plain, MORE),
    Form(Question, "exact answers, GSM8K", ("question", "answer"), exact, MORE),
)
