"""Question answering: a benchmark in its usual form, multiple choice or exact answers, with worked
examples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from parley import (
    BotView,
    Demonstrations,
    Example,
    Items,
    Metric,
    Prompt,
    Question,
    Referee,
    Role,
    Scores,
    Seat,
    Task,
)
from parley.tasks._common.answers import (
    ExactAnswer,
    LetterChoice,
    Likeliest,
    WeighedChoice,
    is_right,
)

Share = Annotated[float, (0, 1)]


@dataclass(frozen=True)
class QA(Task):
    """Answer one question, right or wrong (KIEval's benchmark accuracy, LLM-Evolve's round 0).

    shots       number of worked examples before a question (default: 5, for GSM8K 8, fewer if the dataset has fewer)
    shots_from  dataset or file to take worked examples from, instead of the run's own dataset
    by          how a choice is read: from the reply (text), or as its most likely first letter (logprobs)
    question    the question
    choices     its choices, one per line
    answer      the answer of a worked example
    """  # noqa: E501

    name = "qa"
    shots: int | None = None
    shots_from: str = ""
    by: Literal["text", "logprobs"] = "text"

    roles = {"student": Role()}
    items = Items(Question)
    temperature_zero = True

    def works(self) -> Mapping[str, Demonstrations]:
        return {} if self.shots == 0 else {"shots": Demonstrations(self.shots_from, self.shots)}

    async def play(self, referee: Referee, student: Seat) -> Scores:
        item: Question = referee.item
        shown = [] if self.shots == 0 else await referee.consult("shots", "before", item.subject)
        examples = [
            make_example(referee, Question(**{**each, "choices": tuple(each["choices"])}))
            for each in shown
        ]

        said = await referee.ask(
            student,
            render_question(referee, item),
            expect=question_reader(item, self.by),
            default=None,
            examples=examples,
            attempts=2,
        )
        right = is_right(said, item)
        referee.note(answer=said, right=right, subject=item.subject)
        sure = (
            {"confidence": said.chances.get(item.answer, 0.0)}
            if isinstance(said, Likeliest)
            else {}
        )
        return {student: {"accuracy": float(right), **sure}}

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        accuracy = Metric("accuracy", 0, 1, epsilon=0.03, success=1, spread=0.5, digits=3)
        return (
            [accuracy, Metric("confidence", 0, 1, epsilon=0.03, digits=3)]
            if self.by == "logprobs"
            else [accuracy]
        )

    def cue(self, item: Question) -> str:
        return "\n".join([item.question, *item.choices])

    def reject_reason(self, item: Question) -> str:
        return (
            "without choices, although `by=logprobs` needs choices"
            if self.by == "logprobs" and not item.choices
            else ""
        )

    def __post_init__(self) -> None:
        if self.shots is not None and self.shots < 0:
            raise ValueError(f"`shots` must be at least 0, not {self.shots}")
        if self.shots == 0 and self.shots_from:
            raise ValueError(
                "`shots_from` has no effect with `shots=0`: remove one of them, or set `shots` "
                "to 1 or more"
            )


def render_question(referee: Referee, item: Question) -> str:
    words = CHOOSE if item.choices else SOLVE
    return referee.render(
        words[prompt_language(item)], question=item.question, choices=item.lettered
    )


def make_example(referee: Referee, item: Question) -> Example:
    """A question with its answer, in the form that the reader expects."""
    answer = referee.render(ANSWER[prompt_language(item)], answer=item.answer)
    reply = item.answer if item.choices else "\n".join(filter(None, [item.explanation, answer]))
    return Example(render_question(referee, item), reply, question_reader(item).hint)


def question_reader(item: Question, by: str = "text") -> LetterChoice | ExactAnswer:
    spoken = prompt_language(item)
    if item.choices:
        return (WeighedChoice if by == "logprobs" else LetterChoice)(
            item.choices, LETTER[spoken], AGAIN.get(spoken)
        )
    return ExactAnswer(LINE[spoken], AGAIN.get(spoken))


def prompt_language(item: Question) -> str:
    """The language of the prompts: Chinese for Chinese questions, English for all others."""
    return "zh" if item.language.partition("_")[0] == "zh" else "en"


CHOOSE = {
    "en": Prompt("choose_en", "{question}\n\n{choices}"),
    "zh": Prompt("choose_zh", "{question}\n\n{choices}"),
}
SOLVE = {"en": Prompt("solve_en", "{question}"), "zh": Prompt("solve_zh", "{question}")}
LETTER = {
    "en": "Answer with the letter of the right choice and nothing else.",
    "zh": "只回答正确选项的字母，不要有任何其他内容。",
}
LINE = {
    "en": (
        "Think it through step by step. Then end with a line that says `Answer:` and, after it, "
        "the answer alone."
    ),
    "zh": "请一步一步地思考。最后另起一行，写“答案：”，后面只写答案。",
}
ANSWER = {
    "en": Prompt("answer_en", "Answer: {answer}"),
    "zh": Prompt("answer_zh", "答案：{answer}"),
}
AGAIN = {"zh": Prompt("again_zh", "你的回答无法识别。{hint}")}


def student(bot: BotView, knowledge: Share = 0.5, memorised: Share = 0.0, memory: int = 0) -> str:
    """Knows the share `knowledge` of all questions, has memorised the share `memorised` of answers, and guesses the rest.

    It knows the same questions in every match; another `memory` selects other questions.
    """  # noqa: E501
    item: Question = bot.item
    if bot.fate("knows", memory) < knowledge or bot.fate("memorised", memory) < memorised:
        return item.answer
    return bot.rng.choice(item.letters) if item.choices else str(bot.rng.randint(0, 1000))


def sure(bot: BotView) -> str:
    """Knows every answer; plays KIEval's interactor or evaluator while questions are screened."""
    return str(bot.item.answer)


def learner(bot: BotView, knowledge: Share = 0.4, uptake: Share = 0.5, memory: int = 0) -> str:
    """Knows the share `knowledge` of all questions, and the share `uptake` of the others if it sees a demonstration of the same subject."""  # noqa: E501
    item: Question = bot.item
    shown = bot.view.examples[1] if bot.view.examples else ()
    if bot.fate("knows", memory) < knowledge:
        return item.answer
    related = any(is_related(each.question, item) for each in shown)
    if related and bot.rng.random() < uptake:
        return item.answer
    return bot.rng.choice(item.letters) if item.choices else str(bot.rng.randint(0, 1000))


def copier(bot: BotView, knowledge: Share = 0.4, memory: int = 0) -> str:
    """Knows the share `knowledge` of all questions, copies the answer if the question itself is shown as a demonstration, and guesses the rest."""  # noqa: E501
    item: Question = bot.item
    for each in bot.view.examples[1] if bot.view.examples else ():
        if item.question in each.question and all(c in each.question for c in item.choices):
            return str(bot.view.expect.read(each.answer))
    if bot.fate("knows", memory) < knowledge:
        return item.answer
    return bot.rng.choice(item.letters) if item.choices else str(bot.rng.randint(0, 1000))


def is_related(question: str, item: Question) -> bool:
    """Whether a question seems to be on the item's subject: it names the subject, or shares two
    long words with the item's question."""
    if item.subject and item.subject.casefold() in question.casefold():
        return True
    return len(long_words(question) & long_words(item.question)) >= 2


def long_words(text: str) -> set[str]:
    """The words with five or more letters."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) >= 5}


QA.bots = {
    "student": student,
    "learner": learner,
    "copier": copier,
    "interactor": sure,
    "evaluator": sure,
}
