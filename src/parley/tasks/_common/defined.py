"""The rule of tasks that files define: a writer and an editor, whose names and words are given
(DynaEval §A.4); its bots."""

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
    """A prompt of which it is settled what must stand in it and what may, whoever words it."""

    def __init__(self, name: str, text: str, needed: Iterable[str], allowed: Iterable[str]) -> None:
        super().__init__(name, text)
        self.needed, self.allowed = tuple(needed), tuple(allowed)
        if missing := set(self.needed) - set(self.variables):
            raise UsageError(f"prompt {name!r} lacks {{{'}, {'.join(sorted(missing))}}}")
        for variable in self.variables:
            if variable not in (*self.needed, *self.allowed):
                raise unknown_name(
                    f"variable of prompt {name!r}:", variable, (*self.needed, *self.allowed)
                )

    def replaced(self, text: str, also: Iterable[str]) -> CheckedPrompt:
        return CheckedPrompt(self.name, text, self.needed, {*self.allowed, *also})


class Measure(NamedTuple):
    """What texts are measured by: its name, a number from 0 to 1 for a text and the item (or none),
    and what it rests on."""

    name: str
    of: Callable[[str, Any], float | None]
    basis: Mapping[str, str]
    # of texts that are held against a reference: what is counted in them is kept
    language: str = ""
    caution: str = ""  # what the user should know


@dataclass(frozen=True)
class Defined(Task):
    """A writer writes, an editor improves, until they agree or the rounds are over; then judges rate both.

    rounds        versions of the text, each with what the editor says to it
    vote          how the marks of several judges become one
    number        which round this is
    said          what the other has just given, quoted
    writer        what the role of who writes is called
    editor        what the role of who edits is called
    over          the word by which the editor ends the work
    asked         the first question to the writer
    roles         the roles to be rated, in the order of this match
    rubric        what each role is rated by, a line each
    conversation  all that both gave, quoted
    """  # noqa: E501

    rounds: int = 1
    vote: VoteRule = "mean"

    parts = "parley.tasks._common.corpus_analysis:PARTS"
    contestants: ClassVar[tuple[str, str]] = ("writer", "editor")
    words: ClassVar[WriterEditorPrompts]
    judge: ClassVar[Prompt]
    rubric: ClassVar[Mapping[str, Prompt]] = {}
    measure: ClassVar[Measure | None] = None
    polishes: ClassVar[bool] = False  # whether the editor answers with a text of its own

    async def cooperate(self, referee: Referee, **seats: Any) -> Scores:
        """The rule of all such tasks; `play` is this under the names of the roles."""
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
        """What is measured of the last texts, and what the editor added; nothing where nothing is
        measured."""
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
        """No item is; but a function that cannot measure a text beside it says so before anybody is
        asked."""
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
            raise ValueError(f"rounds must be at least 1, not {self.rounds}")


LONG = 400  # characters: what is longer is rated no higher
BLANK = "…"  # a word that a bot did not find


def writer(bot: BotView, strength: float = 0.5) -> ReplyText:
    """Finds each word of the reference (without one: of the item's fields) with probability `strength`, and edits likewise."""  # noqa: E501
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
    space = " " if " " in whole else ""  # where words are not apart, characters are taken
    wanted, given = (
        whole.split() if space else list(whole),
        next((said for _, said in reversed(bot.quoted)), ""),
    )
    if view.seat.role == task.contestants[0]:
        if given and task.polishes:
            return ReplyText(given)
        known = [BLANK] * len(wanted)
        strength = 1 - (1 - strength) ** (view.reply_count + 1)  # comments make it look again
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
    """Shows that judging runs, and judges nothing: 1 + 9 × the measure of the last text; without one, longer is better."""  # noqa: E501
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
