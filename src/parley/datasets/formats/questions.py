"""Questions: the published formats of ARC, HellaSwag, MMLU, C-Eval, CMMLU and GSM8K, and rows with
the fields of a `Question`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from parley.datasets.files import LETTERED, LocatedRow
from parley.datasets.formats import ColumnValues, Form, Row
from parley.datasets.formats.problems import unpack_list
from parley.datasets.reference_programs import with_unix_newlines
from parley.errors import UsageError, describe_type
from parley.rules.items.question import LETTERS, Question
from parley.rules.numerals import normalise_numeral, parse_number
from parley.tables import plural, shorten

NAMED = 5  # row numbers to list in a note
SPLIT = re.compile(r"_(?:dev|val|test|train)$")  # follows the subject in the name of a file
ANNOTATION = re.compile(r"<<[^<>]*>>")  # GSM8K's calculator annotations
MARK = re.compile(r"\[[^\[\]]*\]")  # remains of WikiHow headings in HellaSwag
HAN, WORD = re.compile(r"[\u3400-\u9fff]"), re.compile(r"[A-Za-z]{2,}")
MORE = ("id", "subject", "language", "explanation")
# columns of choices: a common word, then a number or letter
NUMBERED = re.compile(r"(choice|option|opt|op)[ _.-]?(\d{1,2}|[a-j])", re.IGNORECASE)
# columns that may hold choices, but whose names are not recognised
LIKE_CHOICES = re.compile(
    r"(?:(?:choice|option|opt|alternative|distractor|candidate|ending)s?"
    r"|(?:wrong|incorrect|false)[ _.-]?(?:answer|choice|option)s?)(?:[ _.-]?(?:\d{1,2}|[a-j]))?"
    r"|answers?(?:[ _.-]?\d{1,2}|[ _.-][a-j])",
    re.IGNORECASE,
)

LAST_MARK = re.compile(r"(?:\d{1,2}|[A-Ja-j])$")  # distinguishes columns of choices


def arc_fields(row: Row) -> dict[str, Any]:
    """ARC: choices have labels, A to E or 1 to 4. In ARC's own files they are inside the
    question."""
    inside = (
        row["question"]
        if isinstance(row["question"], Mapping)
        else {"stem": row["question"], "choices": row.get("choices")}
    )
    labels, texts = labels_and_texts(inside.get("choices"))
    key = text_or_number(row["answerKey"], "answerKey")
    if key not in labels:
        raise ValueError(
            f"`answerKey` must be one of the labels {', '.join(labels)}, not {shorten(key)!r}"
        )
    return question_fields(row, inside.get("stem"), texts, LETTERS[labels.index(key)])


def labels_and_texts(choices: Any) -> tuple[list[str], list[Any]]:
    """Labels and texts of choices, given as a list of pairs or as two lists."""
    if isinstance(choices, Mapping):
        labels, texts = choices.get("label"), choices.get("text")
    elif isinstance(choices, Sequence) and all(isinstance(each, Mapping) for each in choices):
        labels, texts = ([each.get(name) for each in choices] for name in ("label", "text"))
    else:
        labels = texts = None
    if not isinstance(labels, list) or not isinstance(texts, list) or len(labels) != len(texts):
        raise ValueError(f"every choice must have text and a label, found {shorten(repr(choices))}")
    named = [text_or_number(each, "a label") for each in labels]
    if len(set(named)) != len(named):
        raise ValueError(f"two choices have the same label: {', '.join(named)}")
    return named, texts


def hellaswag_fields(row: Row) -> dict[str, Any]:
    """HellaSwag: a beginning and four endings. The markup of its sources is removed, as is
    usual."""
    ends, beginning = unpack_list(row["endings"]), row["ctx"]
    if isinstance(row.get("ctx_a"), str) and isinstance(row.get("ctx_b"), str):
        beginning = f"{row['ctx_a']} {row['ctx_b'].capitalize()}".strip()
    subject = text_or_number(row.get("activity_label") or "", "activity_label")
    told = (
        f"{subject}: {text_or_number(beginning, 'ctx')}"
        if subject
        else text_or_number(beginning, "ctx")
    )
    texts = [
        without_markup(text_or_number(each, "an ending")) for each in choice_texts(ends, "endings")
    ]
    own = {"subject": subject, **{name: row[name] for name in MORE if row.get(name)}}
    return question_fields(
        own,
        f"{GOES_ON}\n\n{without_markup(told)}",
        texts,
        read_answer_letter(row["label"], texts, "label"),
    )


GOES_ON = "Which of the endings continues this text best?"


def without_markup(text: str) -> str:
    return " ".join(MARK.sub("", text.replace(" [title]", ". ")).split())


def four_column_fields(row: Row) -> dict[str, Any]:
    """One column for each of four choices, as in the files of MMLU and C-Eval. Answers are letters
    or numbers from 0."""
    texts = [row[letter] for letter in LETTERED[1:-1]]
    return question_fields(row, row["question"], texts, find_right_letter(row["answer"], texts))


def cmmlu_fields(row: Row) -> dict[str, Any]:
    """CMMLU: the same with other column names."""
    return four_column_fields({**row, "question": row["Question"], "answer": row["Answer"]})


def with_subject_from_file(found: LocatedRow) -> Row:
    """A row whose file is named after its subject: `anatomy_test.csv`."""
    subject = SPLIT.sub("", found.file)
    return with_file_as_subject(found, subject) if subject != found.file else dict(found.row)


def with_file_as_subject(found: LocatedRow, subject: str = "") -> Row:
    """A row with its file as subject. The subject is also part of its id, because ids start again
    in every file."""
    subject = subject or SPLIT.sub("", found.file)
    own = found.row.get("id")
    named = {"id": f"{subject}/{found.number if own in (None, '') else own}"} if subject else {}
    return {"subject": subject, **found.row, **named}


def mmlu_fields(row: Row) -> dict[str, Any]:
    """MMLU on the Hugging Face Hub: the answer is the number of a choice, from 0. Some questions
    contain a choice twice."""
    if not isinstance(row["answer"], int) or not row["choices"]:
        return choice_question_fields(row)
    texts = choice_texts(unpack_list(row["choices"]), "choices")
    return question_fields(row, row["question"], texts, read_answer_letter(row["answer"], texts))


def choice_question_fields(row: Row) -> dict[str, Any]:
    """The fields of a question with choices. The answer is a letter, the number of a choice (from
    0), or its whole text."""
    if row["choices"] in (None, "", "[]", [], ()):
        return exact_question_fields(row)
    texts = [
        text_or_number(each, "a choice")
        for each in choice_texts(unpack_list(row["choices"]), "choices")
    ]
    if doubles := [each for at, each in enumerate(texts) if each in texts[:at]]:
        raise ValueError(f"two choices are the same: {shorten(doubles[0])!r}")
    said = text_or_number(row["answer"], "answer")
    if isinstance(row["choices"], ColumnValues):
        letter = find_letter_by_column(said, texts, row["choices"].columns)
        return question_fields(row, row["question"], texts, letter)
    if said not in texts:
        letter = find_right_letter(said, texts, f"or {WHOLE_TEXT}")
        return question_fields(row, row["question"], texts, letter)
    by_text = LETTERS[texts.index(said)]
    if by_text != read_answer_letter(said, texts, otherwise=by_text):
        raise ValueError(TWO_MEANINGS.format(shorten(said)))
    return question_fields(row, row["question"], texts, by_text)


WHOLE_TEXT = "the whole text of a choice"
TWO_MEANINGS = (
    "answer {!r} is ambiguous, because it is the text of one choice and the letter or number "
    "of another: write the letter of the right choice"
)


def find_right_letter(said: Any, texts: Sequence[Any], also: str = "") -> str:
    """The letter of the right choice. A whole number that is the text of a choice must also be the
    number of that choice. `also` names other accepted forms in the error."""
    letter = read_answer_letter(said, texts, also=also)
    word = text_or_number(said, "answer")
    alike = [
        LETTERS[at]
        for at, text in enumerate(texts)
        if word.isdigit() and parse_number(text_or_number(text, "a choice")) == int(word)
    ]
    if alike and letter not in alike:
        raise ValueError(TWO_MEANINGS.format(shorten(word)))
    return letter


def find_choice_columns(row: Row) -> list[str]:
    """The columns of a row that hold one choice each, in order: `choice0`, `choice1`, … or
    `option_a`, `option_b`, … or `A`, `B`, …; empty if there is no such series, or a list of
    choices."""
    if "choices" in row:
        return []
    series: dict[str, dict[str, str]] = {}
    for column in map(str, row):
        if match := NUMBERED.fullmatch(column.strip()):
            series.setdefault(match[1].lower(), {})[match[2].lower()] = column
        elif len(column) == 1 and column.upper() in LETTERS:
            series.setdefault("upper" if column.isupper() else "lower", {})[column.lower()] = column
    for word, marks in series.items():
        least = 3 if word == "lower" else 2  # just `a` and `b` could mean anything
        for first in ("0", "1", "a"):
            wanted = [
                str(int(first) + at) if first.isdigit() else LETTERS[at].lower()
                for at in range(len(marks))
            ]
            if len(wanted) >= least and set(wanted) == marks.keys():
                return [marks[mark] for mark in wanted]
    return []


def find_other_choice_columns(row: Row) -> list[str]:
    """The same, except for the four columns of MMLU and C-Eval."""
    columns = find_choice_columns(row)
    return [] if columns == LETTERED[1:-1] else columns


def column_per_choice_fields(row: Row) -> dict[str, Any]:
    """One column for each choice. The answer is a letter, the name or number of a column, or the
    whole text of a choice. With lettered columns, numbers count from 0."""
    columns = find_choice_columns(row)
    texts = [row[column] for column in columns]
    while texts and (texts[-1] is None or not str(texts[-1]).strip()):
        texts.pop()  # the question has fewer choices than others; `note_empty_choices` says so
    texts = [text_or_number(each, "a choice") for each in choice_texts(texts, ", ".join(columns))]
    word = text_or_number(row["answer"], "answer")
    letter = find_letter_by_column(word, texts, columns[: len(texts)])
    return question_fields(row, row["question"], texts, letter)


def note_empty_choices(rows: Sequence[LocatedRow]) -> list[str]:
    """A note on questions whose last columns of choices are empty, so that they have fewer."""
    columns = find_choice_columns(rows[0].row)
    few = [str(each.number) for each in rows if not str(each.row.get(columns[-1]) or "").strip()]
    if not few:
        return []
    named = ", ".join([*few[:NAMED], *(["…"] if len(few) > NAMED else [])])
    return [
        f"{plural(len(few), 'question has', 'questions have')} fewer than {len(columns)} "
        f"choices, because the column `{columns[-1]}` is empty (row {named})"
    ]


def find_letter_by_column(word: str, texts: Sequence[str], columns: Sequence[str]) -> str:
    """The letter of the right choice if each choice has a column: by its letter, the name or number
    of its column, or its whole text."""
    names = [column.lower() for column in columns]
    by_text = LETTERS[texts.index(word)] if texts.count(word) == 1 else None
    if word.lower() in names:
        by_name = LETTERS[names.index(word.lower())]
        by_letter = None if word.isdigit() else read_answer_letter(word, texts, otherwise=by_name)
        if {by_text, by_letter} - {by_name, None}:
            raise ValueError(
                f"answer {shorten(word)!r} is ambiguous, because it is the name of one column "
                "and means the choice in another: write the letter or the whole text of the "
                "right choice"
            )
        return by_name
    if word.isdigit() and all(name.endswith(str(n)) for n, name in enumerate(names, 1)):
        return letter_from_1(word, texts)
    if by_text is not None:
        if by_text != read_answer_letter(word, texts, otherwise=by_text):
            raise ValueError(TWO_MEANINGS.format(shorten(word)))
        return by_text
    return find_right_letter(word, texts, f"the name of a column, or {WHOLE_TEXT}")


def settle_numbers(rows: Sequence[LocatedRow]) -> list[LocatedRow]:
    """Replace answers that are certainly numbers of columns by letters.

    A number may be the position of one choice and the text of another. If every answer of a dataset
    can be a position, and not every one can be a text, they are positions.
    """
    letters, texts = [], True
    for each in rows:
        if not isinstance(each.row, Mapping) or not (columns := find_choice_columns(each.row)):
            return list(rows)
        word, first = str(each.row.get("answer", "")).strip(), int(columns[0].endswith("1"))
        if not word.isdigit() or not 0 <= int(word) - first < len(columns):
            return list(rows)
        letters.append(LETTERS[int(word) - first])
        texts = texts and word in [str(each.row[column]).strip() for column in columns]
    if texts:
        return list(rows)
    return [
        each._replace(row={**each.row, "answer": letter})
        for each, letter in zip(rows, letters, strict=True)
    ]


def letter_from_1(word: str, texts: Sequence[str]) -> str:
    """The letter of the choice with this number, if columns are numbered from 1."""
    if not 1 <= int(word) <= len(texts):
        raise ValueError(
            f"answer {shorten(word)!r} is not a choice, because the columns with choices are "
            f"numbered from 1 to {len(texts)}: if your answers count from 0, rename the columns "
            "so that they start at 0, too"
        )
    if word in texts and texts.index(word) != int(word) - 1:
        raise ValueError(TWO_MEANINGS.format(shorten(word)))
    return LETTERS[int(word) - 1]


def plain_question_fields(row: Row) -> dict[str, Any]:
    """A question with an exact answer, in a row without choices."""
    columns = [str(column) for column in row]
    letters = [column for column in columns if len(column) == 1 and column.upper() in LETTERS]
    like = [column for column in columns if LIKE_CHOICES.fullmatch(column.strip())]
    if like := [*like, *(letters if len(letters) > 1 else [])]:
        raise ValueError(
            f"the columns {', '.join(like)} look like choices, but Parley would not read them: "
            f"if they are choices, add --column choices={','.join(like)}; if the question has "
            "no choices, add --column choices="
        )
    return exact_question_fields(row)


def refuse_unread_choices(rows: Sequence[LocatedRow]) -> Sequence[LocatedRow]:
    """Refuse rows with exact answers if every answer seems to name a choice in columns that are not
    read."""
    first = rows[0]
    read = {"question", "answer", *MORE}
    unread = [str(each) for each in first.row if each not in read and str(each).strip()]
    exact = [each.row for each in rows if isinstance(each.row, Mapping) and "answer" in each.row]
    if unread and all(seems_to_name_choice(row, unread) for row in exact):
        names = guess_choice_columns(unread)
        raise UsageError(
            f"{first.where}: every answer looks like the label of a choice (here "
            f"{shorten(str(first.row['answer']))!r}), but Parley would not read the columns "
            f"{', '.join(unread)}: if they are choices, add --column choices={','.join(names)}; "
            "if the questions have no choices, add --column choices="
        )
    return rows


def seems_to_name_choice(row: Row, unread: Sequence[str]) -> bool:
    """Whether an answer is a letter, the number of a column, or the content of one."""
    word = str(row["answer"]).strip().strip("()").removesuffix(".")
    cells = [row.get(column) for column in unread]
    if len(word) == 1 and word.upper() in "ABCDEFGH":
        return len(cells) > 1 or parse_number(str(cells[0])) is None
    listed = [part for cell in map(unpack_list, cells) if isinstance(cell, list) for part in cell]
    if len(cells) < 2 and not listed:
        return False
    texts = [str(each).strip() for each in (*cells, *listed)]
    by_number = re.fullmatch(r"\d{1,2}", word) and int(word) <= max(len(cells), len(listed))
    return bool(by_number) or str(row["answer"]).strip() in texts


def guess_choice_columns(unread: Sequence[str]) -> list[str]:
    """The columns that differ only in a number or letter at the end; all columns if none do."""
    groups: dict[str, list[str]] = {}
    for column in unread:
        groups.setdefault(LAST_MARK.sub("", column), []).append(column)
    longest = max(groups.values(), key=len)
    return longest if len(longest) > 1 else list(unread)


def exact_question_fields(row: Row) -> dict[str, Any]:
    """A question without choices. An answer that ends in `#### 18` is GSM8K's: the solution, then
    the number."""
    said = text_or_number(row["answer"], "answer")
    working, mark, final = said.rpartition("####")
    if not mark:
        return question_fields(row, row["question"], (), normalise_numeral(said) or said)
    if parse_number(final) is None:
        raise ValueError(
            f"`answer` must have a number after ####, found {shorten(final.strip())!r}"
        )
    explanation = row.get("explanation") or ANNOTATION.sub("", working).strip()
    return question_fields(
        {**row, "explanation": explanation}, row["question"], (), normalise_numeral(final)
    )


def question_fields(
    row: Row, question: Any, choices: Sequence[Any], answer: str | None
) -> dict[str, Any]:
    """The fields of a question. Its language is detected by its characters unless a column names
    it."""
    texts = [text_or_number(each, "a choice") for each in choices]
    told = text_or_number(question, "question")
    own = {
        name: text_or_number(row[name], name) for name in MORE if row.get(name) not in (None, "")
    }
    return {
        "language": detect_language(" ".join([told, *texts])),
        **own,
        "question": told,
        "choices": texts,
        "answer": answer,
    }


def detect_language(text: str) -> str:
    """Chinese if there are more Chinese characters than English words, otherwise English."""
    return "zh" if len(HAN.findall(text)) > len(WORD.findall(text)) else "en"


def read_answer_letter(
    said: Any,
    choices: Sequence[Any],
    column: str = "answer",
    otherwise: str | None = None,
    also: str = "",
) -> str:
    """The letter of the right choice, given as a letter or as a number from 0. `also` names other
    accepted forms in the error."""
    word = text_or_number(said, column).strip("()").removesuffix(".")
    if not word and otherwise is None:
        raise ValueError(
            f"the column `{column}` is empty (some published test sets withhold their answers): "
            "use a split that has answers"
        )
    if len(word) == 1 and word.upper() in LETTERS[: len(choices)]:
        return word.upper()
    if re.fullmatch(r"\d{1,2}", word) and int(word) < len(choices):
        return LETTERS[int(word)]
    if otherwise is not None:
        return otherwise
    last = LETTERS[len(choices) - 1] if choices else "A"
    raise ValueError(
        f"{column} {shorten(word)!r} is not a choice: expected a letter from A to {last}, "
        + (f"a number from 0, {also}" if also else "or a number from 0")
    )


def choice_texts(found: Any, column: str) -> list[Any]:
    if not isinstance(found, list | tuple) or len(found) < 2:
        raise ValueError(
            f"the column `{column}` must be a list of two or more texts, not {shorten(repr(found))}"
        )
    return list(found)


def text_or_number(found: Any, column: str) -> str:
    """A text, or a number as text."""
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        raise ValueError(f"the column `{column}` must be text, not {describe_type(found)}")
    return with_unix_newlines(str(found)).strip()


FORMS = (
    Form(Question, "ARC", ("question", "answerKey"), arc_fields, ("choices", "id")),
    Form(
        Question,
        "HellaSwag",
        ("ctx", "endings", "label"),
        hellaswag_fields,
        ("activity_label", "ctx_a", "ctx_b"),
    ),
    Form(
        Question,
        "CMMLU",
        ("Question", *LETTERED[1:-1], "Answer"),
        cmmlu_fields,
        placed=with_file_as_subject,
    ),
    Form(
        Question,
        "one column per choice",
        ("question", "answer"),
        column_per_choice_fields,
        MORE,
        placed=with_subject_from_file,
        compared=settle_numbers,
        series=find_other_choice_columns,
        notes=note_empty_choices,
    ),
    Form(
        Question,
        "MMLU and C-Eval",
        tuple(LETTERED),
        four_column_fields,
        MORE,
        placed=with_subject_from_file,
        compared=settle_numbers,
    ),
    Form(
        Question,
        "MMLU on the Hub",
        ("question", "subject", "choices", "answer"),
        mmlu_fields,
        MORE,
    ),
    Form(
        Question,
        "questions with choices",
        ("question", "choices", "answer"),
        choice_question_fields,
        MORE,
    ),
    Form(
        Question,
        "exact answers, GSM8K",
        ("question", "answer"),
        plain_question_fields,
        MORE,
        compared=refuse_unread_choices,
    ),
)
