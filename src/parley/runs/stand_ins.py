"""Stand-ins for models in a forecast: they count the tokens of a view and reply in the form asked
for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from parley.match.protocol import Call, Participant
from parley.money import is_free
from parley.participants import _registry as participants
from parley.participants._registry import ModelLimits
from parley.providers import _registry as providers
from parley.rules.pool import Seat, View, text_of
from parley.rules.readers import Code, Reader, ReplyText, Text
from parley.rules.task import Task
from parley.runs.progress import Progress
from parley.runs.seats import LimitedParticipant

LATIN = 4  # characters per token, roughly; each character of Chinese, Japanese or Korean is one
TURN = 4  # tokens around a turn
SAYS = "I look at what was said so far and decide what serves me best in this round. "
CACHE = 1024  # tokens; most providers that cache prompts cache those of this size or more


@dataclass(frozen=True)
class ReplyAssumption:
    """What a forecast assumes of replies: tokens by form, tokens of thinking, share of retries."""

    form: int  # a reply in JSON, its reason included
    text: int
    code: int
    thought: int
    again: float
    # of a block's score, for sequential plans, as a multiple of what the task declares
    spread: float
    apart: float  # how far apart models are, in such spreads
    cached: bool = False  # whether endpoints with a prompt cache read earlier messages from it


LOW = ReplyAssumption(
    form=15, text=30, code=60, thought=100, again=0.0, spread=0.6, apart=2.0, cached=True
)
USUAL = ReplyAssumption(form=40, text=120, code=200, thought=600, again=0.02, spread=1.0, apart=0.5)
HIGH = ReplyAssumption(
    form=120, text=350, code=600, thought=3000, again=0.15, spread=1.4, apart=0.0
)
IDLE = ("", "none", "disabled", "false", "0")  # values of an option that ask for no thinking


class Count(NamedTuple):
    """Calls and tokens of one model in one role."""

    calls: float = 0
    tokens_in: float = 0
    cached: float = 0
    tokens_out: float = 0

    def plus(self, other: Count) -> Count:
        return Count(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, factor: float) -> Count:
        return Count(*(value * factor for value in self))


class StandIn:
    """Takes the place of a participant: counts tokens, and replies in the form asked for."""

    sees_item: bool = True

    def __init__(
        self, alias: str, options: Mapping[str, Any], task: type[Task], assumed: ReplyAssumption
    ) -> None:
        self._assumed = assumed
        self._system = estimate_text_tokens(str(options.get("system") or ""))
        family = str(options["model"]).partition("/")[0]
        thinking = providers.find_traits(family).thinks_by or ()
        self._thinks = any(str(options.get(key, "")).lower() not in IDLE for key in thinking)
        self._most = (
            int(options["max_tokens"]) if str(options.get("max_tokens", "")).isdigit() else None
        )
        # A bot costs nothing and plays itself.
        self._bot = (
            make_bot(alias, options, task) if is_free(options) and family != "human" else None
        )
        self._stand_in = (
            make_bot(alias, {"model": f"bot/{task.stand_in}"}, task) if task.stand_in else None
        )
        self._ranked = [name for name, role in task.roles.items() if not role.instrument]
        self.again = 1.0 if self._bot else 1 + assumed.again  # calls per reply, retries included
        self.counts: dict[str, Count] = {}
        self._before: dict[Seat, float] = {}
        self._longest: dict[str, float] = {}
        self._seed = 0

    def begin(self, seed: int) -> None:
        """Begin another match."""
        self._before, self._seed = {}, seed

    def longest(self, role: str) -> float:
        """The tokens of the longest view in a role."""
        return self._longest.get(role, 0.0)

    async def reply(self, view: View, call: Call) -> str:
        assumed = self._assumed
        shown = (
            sum(estimate_text_tokens(text_of(turn.content)) + TURN for turn in view.turns)
            + self._system
        )
        if view.examples is not None:
            shown += sum(
                estimate_text_tokens(text) + TURN
                for example in view.examples[1]
                for text in (example.question, example.answer)
            )
        by = self._bot or (self._stand_in if view.seat.role in self._ranked else None)
        if by is not None:
            said = await by.reply(view, call)
            words = said if isinstance(said, str) else text_of(said.content)
        else:
            kind = Random if assumed is LOW else FirstChoice
            words = write_reply(
                view.expect,
                kind(f"{self._seed}|{view.seat.key}|{view.round}|{view.attempt}"),
                assumed,
            )
        # a bot may write less than a model
        least = 0 if self._bot or by is None else assumed.form
        out = max(least, estimate_text_tokens(words)) + (assumed.thought if self._thinks else 0)
        out = out if self._most is None else min(out, self._most)
        before = self._before.get(view.seat, 0)
        cached = before if assumed.cached and before >= CACHE else 0
        self._before[view.seat] = shown
        role = view.seat.role
        self._longest[role] = max(self.longest(role), shown)
        self.counts[role] = self.counts.get(role, Count()).plus(Count(1, shown, cached, out))
        return words

    async def close(self) -> None:
        pass


class FirstChoice(Random):
    """A random generator that chooses the first option: in most forms that is the usual one, with
    which the match goes on."""

    def choice(self, seq: Any) -> Any:
        return seq[0]


def make_bot(alias: str, options: Mapping[str, Any], task: type[Task]) -> Participant:
    given = {key: value for key, value in options.items() if key != "model"}
    return LimitedParticipant(
        alias,
        participants.make_participant(str(options["model"]), given, task, alias),
        ModelLimits(),
        Progress(),
    )


def write_reply(expect: Reader[Any], rng: Random, assumed: ReplyAssumption) -> str:
    """Write a reply in the form asked for, of about the assumed length."""
    value = expect.sample(rng)
    if isinstance(expect, Code):
        return expect.write(value, write_filler(assumed.code))
    if isinstance(expect, Text) or isinstance(value, ReplyText):
        return write_filler(assumed.text)
    bare = expect.write(value)
    # some forms have room for a reason
    written = expect.write(value, write_filler(assumed.form - int(estimate_text_tokens(bare))))
    return (
        written
        if estimate_text_tokens(written) >= assumed.form - 2
        else written + " " * (LATIN * int(assumed.form - estimate_text_tokens(written)))
    )


def write_filler(length: int) -> str:
    """Write a text of about `length` tokens."""
    size = LATIN * max(1, length)
    return (SAYS * (size // len(SAYS) + 1))[:size].strip()


def estimate_text_tokens(text: str) -> float:
    """Estimate the tokens of a text: one for four characters, or for one character of Chinese,
    Japanese or Korean."""
    if text.isascii():
        return len(text) / LATIN
    wide = sum(
        "\u2e80" <= mark <= "\u9fff" or "\uac00" <= mark <= "\ud7af" or "\uf900" <= mark <= "\uffef"
        for mark in text
    )
    return wide + (len(text) - wide) / LATIN


async def fake_verdict(program: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict on a program of a stand-in, which is not run: no test passed. A shell gives no
    output, and no check passes."""
    if program.get("kind") == "shell":
        status = int(program["do"] == "check")
        result = {"output": "", "cut": False, "status": status, "timed_out": False}
        return {**result, "users": True, "restarted" if program["do"] == "run" else "errors": ""}
    faults = ["not run"] * len(program.get("tests") or program.get("cases") or ("",))
    return {"passed": False, "faults": faults, "guarantee": "values", "end": "", "cpu": 0.0}
