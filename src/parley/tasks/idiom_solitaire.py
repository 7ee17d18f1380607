"""Idiom solitaire: two players chain Chinese idioms; the first who cannot continue loses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Literal

from parley import (
    BotView,
    Choice,
    Ended,
    Metric,
    Prompt,
    Referee,
    Role,
    Scores,
    Seat,
    Task,
    Word,
    WordList,
)

# Why a player loses, in the order of the checks. The checker comes last, so it is only asked about
# words that pass all other checks.
LENGTH = "not four characters"
FIRST = "wrong first character"
REPEATED = "repetition"
UNKNOWN = "not in the dictionary"


@dataclass(frozen=True)
class IdiomSolitaire(Task):
    """Say an idiom that begins with the last character of the previous one; the first player who cannot loses (DynaEval §2.4, §A.8).

    rounds       number of turns after which the match is a draw
    language     language of the prompts
    dictionary   idiom lists to use together, by name or as files
    traditional  whether traditional characters count as their simplified form
    common       minimum frequency of the start idiom, if the dictionary has frequencies
    chain        the idioms so far, separated by arrows
    word         the idiom that the checker is asked about
    """  # noqa: E501

    rounds: int = 20
    language: Literal["zh", "en"] = "zh"
    dictionary: tuple[str, ...] = ("jionlp",)
    traditional: bool = True
    common: int = 100

    roles = {"players": Role(2), "checker": Role(0, 1, instrument=True)}
    repeats = 30  # as many different start idioms; all pairs get the same ones, in both orders
    stand_in = "speaker"

    def works(self) -> Mapping[str, WordList]:
        wanted = WordList(
            self.dictionary,
            length=4,
            simplified=self.traditional,
            script="IDEOGRAPH",
            common=self.common,
        )
        return {"dictionary": wanted}

    async def play(self, referee: Referee, players: list[Seat], checker: Seat | None) -> Scores:
        chain = [await referee.consult("dictionary", "opening", self.common)]
        hits, win = dict.fromkeys(players, 0), dict.fromkeys(players, 0.5)
        referee.tell(players, referee.render(RULES[self.language]))

        reason = "draw"
        for turn in range(self.rounds):
            player, other = players[turn % 2], players[1 - turn % 2]
            text = referee.render(TURN[self.language], chain=" → ".join(chain))
            said = await referee.ask(player, text, expect=IDIOM[self.language], default="")
            idiom, fault = await self.check_idiom(referee, said, chain, checker)
            if fault:
                if said:  # an unreadable reply is already recorded as a violation
                    referee.fault(player, fault, said)
                reason, win = fault, {player: 0.0, other: 1.0}
                break
            chain.append(idiom)
            hits[player] += 1

        referee.note(ChainEnded(reason, chain))
        return {player: {"win": win[player], "hits": hits[player]} for player in players}

    async def check_idiom(
        self, referee: Referee, said: str, chain: list[str], checker: Seat | None
    ) -> tuple[str, str]:
        """The idiom as the dictionary spells it, and why it loses, if it does.

        An unreadable reply of the checker ends the match without scores, so that no player loses
        because of an instrument.
        """
        if len(said) != 4 or not all(
            "IDEOGRAPH" in unicodedata.name(character, "") for character in said
        ):
            return said, LENGTH
        entry = await referee.consult("dictionary", "entry", said)
        idiom: str = entry["word"]
        if idiom[0] != chain[-1][-1]:
            return idiom, FIRST
        if idiom in chain:
            return idiom, REPEATED
        if entry["known"]:
            return idiom, ""
        question = referee.render(CHECK[self.language], word=idiom)
        held = (
            checker is not None
            and await referee.ask(checker, question, expect=VERDICT[self.language]) == "yes"
        )
        return idiom, "" if held else UNKNOWN

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        return [
            Metric("win", 0, 1, epsilon=0.05, success=1, spread=0.45),
            Metric("hits", 0, (self.rounds + 1) // 2, epsilon=0.25, unit="idioms"),
        ]

    def __post_init__(self) -> None:
        for name, least in {"rounds": 1, "common": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"`{name}` must be at least {least}, not {getattr(self, name)}")

    def unused_prompts(self, seats: Mapping[str, int]) -> list[str]:
        # players have their own `again` prompt
        nobody_checks = [CHECK[self.language].name, "again", "shorter", "form"]
        return [*super().unused_prompts(seats), *([] if seats["checker"] else nobody_checks)]


@dataclass(frozen=True)
class ChainEnded(Ended):
    """Why the chain ended, and the chain."""

    chain: list[str]


RULES = {
    "zh": Prompt(
        "rules_zh",
        """\
你与另一名玩家进行成语接龙，两人轮流作答，第一个成语由裁判给出。轮到你时，请说出一个四字成语：它的首字必须与上一个成语的末字相同，\
并且在本局中还没有出现过。如果你的回答不是四个字、不是成语、首字不符，或者与前面的成语重复，你就输掉本局，对手获胜。\
接满 {rounds} 次而胜负未分，则为平局。你的目标是获胜。""",
    ),
    "en": Prompt(
        "rules_en",
        """\
You play Chinese idiom solitaire (成语接龙) with one other player. You take turns, and the referee gives the first idiom. \
When it is your turn, say a Chinese idiom of four characters: its first character must be the last character of the idiom \
before it, and it must not have occurred in this game. If what you say is not four characters long, is no idiom, begins \
with another character or repeats an earlier idiom, you lose and the other player wins. After {rounds} turns without a \
loser the game is a draw. Your goal is to win.""",  # noqa: E501
    ),
}

TURN = {
    "zh": Prompt("turn_zh", "到目前为止的接龙：\n{chain}\n请接着说一个成语。"),
    "en": Prompt("turn_en", "The chain so far:\n{chain}\nGo on with an idiom of yours."),
}

AGAIN = {
    "zh": Prompt("again_zh", "请按要求的形式作答。{hint}"),
    "en": Prompt("again_en", "Give your answer in the form that is wanted. {hint}"),
}

CHECK = {
    "zh": Prompt(
        "check_zh",
        "“{word}”是汉语成语吗？词典里收录的或通行的成语算是（yes），普通词语和生造的词不算（no）。",
    ),
    "en": Prompt(
        "check_en",
        "Is “{word}” a Chinese idiom (成语)? What dictionaries of idioms have, or what is "
        "established as one, is; an ordinary phrase of four characters, or an "
        "invented one, is not.",
    ),
}

VERDICT = {
    "zh": Choice(
        "idiom",
        ("yes", "no"),
        '只回答一个 JSON 对象，不要有任何其他内容：{"reason": <理由>, "idiom": <yes 或 no>}',
        AGAIN["zh"],
    ),
    "en": Choice("idiom", ("yes", "no"), again=AGAIN["en"]),
}

IDIOM = {
    "zh": Word("只回答这个成语的四个汉字，不要有任何其他内容。", 4, AGAIN["zh"], "一心人天"),
    "en": Word(
        "Answer with the four Chinese characters of the idiom and nothing else.",
        4,
        AGAIN["en"],
        "一心人天",
    ),
}

CHAIN = re.compile(r"(?=(\w{4}(?: → \w{4})*))")  # at every possible start


def find_next_idioms(bot: BotView, strength: float, vocabulary: int) -> list[str]:
    """The unused idioms that fit and that a bot knows. It knows the same ones in every match."""
    chain = find_chain(bot)
    fitting = (
        [idiom for idiom in bot.works["dictionary"].after(chain[-1]) if idiom not in chain]
        if chain
        else []
    )
    return [idiom for idiom in fitting if strength_needed(vocabulary, idiom) < strength]


def find_chain(bot: BotView) -> list[str]:
    """The chain as last shown, in any wording of the prompt: the longest one that begins with a
    word of the dictionary."""
    words = bot.works["dictionary"].words
    for message in reversed([each["content"] for each in bot.view if each["role"] == "user"]):
        found = [each.split(" → ") for each in CHAIN.findall(message)]
        if chains := [chain for chain in found if chain[0] in words]:
            return max(chains, key=len)
    return []


def strength_needed(vocabulary: int, idiom: str) -> float:
    """The strength from which a bot knows an idiom: a fixed number between 0 and 1."""
    return int.from_bytes(blake2b(f"{vocabulary}|{idiom}".encode(), digest_size=4).digest()) / 2**32


def speaker(bot: BotView, strength: Annotated[float, (0, 1)] = 0.5, vocabulary: int = 0) -> str:
    """Knows the share `strength` of all idioms and says any that fits; another `vocabulary` selects other idioms."""  # noqa: E501
    known = find_next_idioms(bot, strength, vocabulary)
    return bot.rng.choice(known) if known else "不知道"


def dead_end(bot: BotView, strength: Annotated[float, (0, 1)] = 0.5, vocabulary: int = 0) -> str:
    """Knows the same idioms as a speaker and says the one that the fewest idioms can follow."""
    known = find_next_idioms(bot, strength, vocabulary)
    return min(known, key=lambda idiom: len(bot.works["dictionary"].after(idiom)), default="不知道")


IdiomSolitaire.bots = {"speaker": speaker, "dead-end": dead_end}
