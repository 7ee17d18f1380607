"""The rule and bots of tasks that are defined in a file: a writer and an editor with given names
and prompts (DynaEval §A.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from parley import (
    BotView,
    Metric,
    Prompt,
    Referee,
    ReplyText,
    Scores,
    Seat,
    Task,
    TaskError,
    Text,
    UsageError,
)
from parley.errors import unknown_name
from parley.rules.prompts import COMMON
from parley.tasks._common.judge_votes import VoteRule
from parley.tasks._common.writer_editor import (
    Version,
    WriterEditorPrompts,
    ask_judges,
    is_ending,
    judge_metrics,
    last_texts,
    note_overlap,
    play_writer_and_editor,
    quote_conversation,
)


class CheckedPrompt(Prompt):
    """A prompt that must use some variables and may use others, also after it is replaced."""

    def __init__(self, name: str, text: str, needed: Iterable[str], allowed: Iterable[str]) -> None:
        super().__init__(name, text)
        self.needed, self.allowed = tuple(needed), tuple(allowed)
        if missing := set(self.needed) - set(self.variables):
            raise UsageError(
                f"prompt {name!r} must contain {{{'}, {'.join(sorted(missing))}}}: add what is "
                "missing"
            )
        for variable in self.variables:
            if variable not in (*self.needed, *self.allowed):
                raise unknown_name(
                    f"variable of prompt {name!r}:", variable, (*self.needed, *self.allowed)
                )

    def replaced(self, text: str, also: Iterable[str]) -> CheckedPrompt:
        return CheckedPrompt(self.name, text, self.needed, {*self.allowed, *also})


class Measure(NamedTuple):
    """A measure of texts: its name, a function of text and item that returns a number from 0 to 1
    or None, and what it depends on."""

    name: str
    of: Callable[[str, Any], float | None]
    basis: Mapping[str, str]
    # set if texts are compared with a reference: then their counts are noted
    language: str = ""
    caution: str = ""  # a warning for the user


@dataclass(frozen=True)
class Defined(Task):
    """A writer writes and an editor improves the text, until they agree or the rounds are over; judges rate both.

    rounds        maximum number of versions of the text, each with the editor's reply
    vote          how the scores of several judges are combined
    number        number of the current round
    said          the other role's last reply, quoted
    writer        name of the writer's role
    editor        name of the editor's role
    over          word with which the editor ends the work
    asked         the first question to the writer
    roles         the roles to rate, in the order of this match
    rubric        the criterion for each role, one per line
    conversation  everything both roles wrote, quoted
    """  # noqa: E501

    rounds: int = 1
    vote: VoteRule = "mean"

    parts = "parley.tasks._common.corpus_analysis:PARTS"
    contestants: ClassVar[tuple[str, str]] = ("writer", "editor")
    words: ClassVar[WriterEditorPrompts]
    judge: ClassVar[Prompt]
    rubric: ClassVar[Mapping[str, Prompt]] = {}
    measure: ClassVar[Measure | None] = None
    polishes: ClassVar[bool] = False  # whether the editor replies with a text of its own

    async def cooperate(self, referee: Referee, **seats: Any) -> Scores:
        """The rule of all such tasks; `play` calls it with the names of the roles."""
        (writer, editor), judges = (seats[name] for name in self.contestants), seats["judge"]
        item = {} if referee.item is None else vars(referee.item)
        told = {**item, "writer": writer.role, "editor": editor.role, "over": self.words.over}

        versions = await play_writer_and_editor(
            referee, writer, editor, self.rounds, self.words, Text(), **told
        )
        scores = self.measure_texts(referee, writer, editor, versions)
        said = quote_conversation(referee, writer, editor, versions)
        material = {
            **told,
            "asked": referee.render(self.words.write, **told, number=1),
            "conversation": said,
        }
        rubric = {seat: self.rubric[seat.role] for seat in (writer, editor)}
        judged = await ask_judges(referee, judges, self.judge, rubric, self.vote, **material)
        return {seat: {**scores[seat], **judged[seat]} for seat in scores}

    def measure_texts(
        self, referee: Referee, writer: Seat, editor: Seat, versions: Sequence[Version]
    ) -> dict[Seat, dict[str, float | None]]:
        """Measure the last texts and the editor's improvement; empty without a measure."""
        measure = self.measure
        if measure is None:
            return {writer: {}, editor: {}}
        last, polished = last_texts(versions, self.words.over)
        before, after = (last, polished) if self.polishes else (versions[0].text, last)
        if measure.language:
            note_overlap(
                referee, {writer: last, editor: after}, referee.item.reference, measure.language
            )
        value = {text: measure.of(text or "", referee.item) for text in (before, after, last)}
        found, first = value[after], value[before]
        gain = None if found is None or first is None else found - first
        return {
            writer: {measure.name: value[last]},
            editor: {measure.name: found, "improvement": gain},
        }

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        if self.measure is None:
            return judge_metrics(seats)
        gain = Metric("improvement", -1, 1, epsilon=0.02, digits=3, roles=self.contestants[1:])
        return [
            Metric(self.measure.name, 0, 1, epsilon=0.02, digits=3),
            gain,
            *judge_metrics(seats),
        ]

    def reject_reason(self, item: Any) -> str:
        """Reject no item, but raise the error of a measure that fails on one before the first
        call."""
        if self.measure is not None and not self.measure.language:
            try:
                self.measure.of("", item)
            except TaskError as wrong:
                raise UsageError(str(wrong)) from None
        return ""

    def cautions(self, seats: Mapping[str, int]) -> list[str]:
        return [self.measure.caution] if self.measure is not None and self.measure.caution else []

    def unused_prompts(self, seats: Mapping[str, int]) -> list[str]:
        later = [] if self.rounds > 1 else [self.words.revise.name, self.words.review_again.name]
        return [
            *later,
            *(
                []
                if seats["judge"]
                else [each.name for each in (self.judge, *self.rubric.values())]
            ),
        ]

    def score_basis(self) -> Mapping[str, str]:
        return {} if self.measure is None else self.measure.basis

    @classmethod
    def prompts(cls) -> dict[str, Prompt]:
        return {
            each.name: each
            for each in (*COMMON.values(), *cls.words[:4], cls.judge, *cls.rubric.values())
        }

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"`rounds` must be at least 1, not {self.rounds}")


LONG = 400  # characters; longer texts are not rated higher
BLANK = "…"  # stands for a word that a bot did not find


def writer(bot: BotView, strength: float = 0.5) -> ReplyText:
    """Finds each word of the reference (or of the item's fields) with probability `strength`, as a writer and as an editor."""  # noqa: E501
    view, task = bot.view, bot.task
    fields = (
        {}
        if bot.item is None
        else {name: value for name, value in vars(bot.item).items() if name != "id"}
    )
    whole = str(
        fields.get("reference")
        or " ".join(map(str, fields.values()))
        or "Nothing was given to write about."
    )
    space = " " if " " in whole else ""  # without spaces between words, use characters
    wanted, given = (
        whole.split() if space else list(whole),
        next((said for _, said in reversed(bot.quoted)), ""),
    )
    if view.seat.role == task.contestants[0]:
        if given and task.polishes:
            return ReplyText(given)
        known = [BLANK] * len(wanted)
        strength = 1 - (1 - strength) ** (view.reply_count + 1)  # each comment is another try
    elif not task.polishes:
        return ReplyText("Say what is missing.")
    elif view.reply_count and given == whole:
        return ReplyText(task.words.over)
    else:
        known = given.split() if space else list(given)
        known = known if len(known) == len(wanted) else [BLANK] * len(wanted)
    found = [
        right if each == right or bot.rng.random() < strength else BLANK
        for each, right in zip(known, wanted, strict=True)
    ]
    return ReplyText(space.join(found))


def judge_texts(bot: BotView) -> dict[str, Any]:
    """Tries out judging without a model: scores 1 + 9 × the measure of the last text, or without a measure by its length."""  # noqa: E501
    task = bot.task
    last = dict(bot.quoted)
    text, review = (last.get(str(Seat(role)), "") for role in task.contestants)
    edited = text if not task.polishes or is_ending(review, task.words.over) else review
    shares = {}
    for role, measured, said in zip(task.contestants, (text, edited), (text, review), strict=True):
        value = None if task.measure is None else task.measure.of(measured, bot.item)
        shares[role] = min(len(said), LONG) / LONG if value is None else value
    return {
        role: {"basis": "So it is counted.", "score": round(1 + 9 * share, 3)}
        for role, share in shares.items()
    }


Defined.bots = {"writer": writer, "judge": judge_texts}
