"""Word guessing: two groups describe two similar words, and everybody guesses the other group's
word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from parley import Fields, Items, Metric, Note, Prompt, Referee, Role, Scores, Seat, Task, WordPair
from parley.errors import UsageError
from parley.tasks._common.word_matching import (
    BASIS,
    find_confusable,
    fold_phrase,
    mentions_word,
    names_word,
)
from parley.tasks.word_guessing.scoring import BEYOND, Never, Only, is_counted, score_players

OWN_WORD = "own word said"
REPEATED = "description repeated"
EMPTY = "nothing described"
SPREADS = {"age": 0.2, "comprehension": 0.25, "confusion": 0.25}


@dataclass(frozen=True)
class WordGuessing(Task):
    """Describe your word without giving it away, and guess the other group's word (adversarial guessing evaluation, AGE).

    rounds        maximum number of turns per player
    end           when a match ends: after all rounds, or after the round in which both words have been guessed (all_guessed)
    open_guesses  whether all players see the guesses
    unit          how the time of a first right guess is counted: in turns of the whole match, or in rounds
    length        length of a match for the scores: the maximum, or the actual length
    never         comprehension of a player who never guesses right: zero, or as if right one step after the end (l+1)
    only          which matches count: all of them, those in which both words were guessed and a third round was played (successful), or those in which they were guessed only after two rounds (successful_late)
    minority      number of players with the rarer word; 0 means half of the players, rounded down
    topics        topics to play; all topics if it is empty
    n             number of players
    groups        sentence that says how many players have each word
    small         number of players with the rarer word
    large         number of players with the other word
    me            the player who reads the prompt
    word          this player's secret word
    number        number of the current round
    why           why a description is refused
    who           the player who has just had a turn
    said          the player's description, quoted
    guesses       the player's guesses, quoted
    """  # noqa: E501

    version = 2
    rounds: int = 5
    end: Literal["rounds", "all_guessed"] = "rounds"
    open_guesses: bool = False
    unit: Literal["turn", "round"] = "turn"
    length: Literal["maximum", "actual"] = "maximum"
    never: Never = "zero"
    only: Only = "all"
    topics: tuple[str, ...] = ()
    minority: Annotated[int, (0, 5)] = 0

    roles = {"players": Role(2, 10)}
    items = Items(WordPair, picks={"topics": "topic"})
    sequential_speakers = True
    stand_in = "guesser"

    async def play(self, referee: Referee, players: list[Seat]) -> Scores:
        pair: WordPair = referee.item
        small = self.size_of_minority(len(players))
        large = len(players) - small
        chosen = referee.rng.sample(players, small)
        one, other = pair.a, pair.b
        if small != large and referee.rng.random() < 0.5:
            one, other = other, one
        words = {player: one if player in chosen else other for player in players}
        sizes = EQUAL_GROUPS if small == large else UNEQUAL_GROUPS
        groups = referee.render(sizes, small=small, large=large)
        for player in players:
            told = {"n": len(players), "me": str(player), "word": words[player], "groups": groups}
            referee.tell(player, referee.render(RULES, **told))
        referee.tell(players, referee.render(HEARD[self.open_guesses]))

        turn, number, both, described = 0, 0, None, list[str]()
        firsts: dict[Seat, int | None] = dict.fromkeys(players)
        for number in range(1, self.rounds + 1):
            for player in players:
                turn += 1
                others = [other for other in players if other != player]
                said = await self.take_turn(
                    referee, player, others, number, words[player], described
                )
                self.circulate(referee, player, others, said, words[player])
                own, opponents = (
                    pair.names(words[player]),
                    [other for other in others if words[other] != words[player]],
                )
                right = said and any(
                    names_word(said[guess_field(each)], pair.names(words[each]), own)
                    for each in opponents
                )
                if right and firsts[player] is None:
                    firsts[player] = turn if self.unit == "turn" else number
            if both is None and len({words[player] for player in players if firsts[player]}) == 2:
                both = number
            if both and self.end == "all_guessed":
                break

        referee.note(GameEnd(GameFacts(words, firsts, number, both)))
        if not is_counted(self.only, both, number):
            return dict.fromkeys(players)
        longest, actual = (
            (len(players) * self.rounds, turn) if self.unit == "turn" else (self.rounds, number)
        )
        scores = score_players(
            firsts, words, longest if self.length == "maximum" else actual, self.never
        )
        return {player: {**scores[player], "first_guess": firsts[player]} for player in players}

    async def take_turn(
        self,
        referee: Referee,
        player: Seat,
        others: Sequence[Seat],
        number: int,
        word: str,
        described: list[str],
    ) -> dict[str, str] | None:
        """A description that keeps the rules, and guesses; None if there is none after a second
        attempt."""
        text = referee.render(TURN, number=number)
        for _ in range(2):
            said = await referee.ask(
                player, text, expect=turn_reader(*others), default=None, attempts=2
            )
            if said is None:
                return None
            words = fold_phrase(said["description"])
            wrong = {
                EMPTY: not words,
                OWN_WORD: mentions_word(said["description"], word),
                REPEATED: words in described,
            }
            fault = next((fault for fault, holds in wrong.items() if holds), None)
            if fault is None:
                described.append(words)
                return said
            referee.fault(player, fault, said["description"])
            text = referee.render(REFUSED, why=referee.render(WHY[fault]))
        return None

    def circulate(
        self,
        referee: Referee,
        player: Seat,
        others: list[Seat],
        said: dict[str, str] | None,
        word: str,
    ) -> None:
        """Show a player's description to the others, and its guesses if guesses are open; never
        the player's own word."""
        if said is None:
            referee.tell(others, referee.render(VOID, who=str(player)))
            return
        referee.tell(
            others,
            referee.render(
                DESCRIBED, who=str(player), said=referee.quote(said["description"], player)
            ),
        )
        shown = [
            (other, said[guess_field(other)])
            for other in others
            if not mentions_word(said[guess_field(other)], word)
        ]
        guesses = "\n".join(f"{other}: {guess}" for other, guess in shown if fold_phrase(guess))
        if self.open_guesses and guesses:
            referee.tell(
                others,
                referee.render(GUESSED, who=str(player), guesses=referee.quote(guesses, player)),
            )

    def size_of_minority(self, players: int) -> int:
        """The number of players with the rarer word."""
        if 2 * self.minority > players:
            raise UsageError(
                f"`minority={self.minority}` needs at least {2 * self.minority} players, but "
                f"there are {players}: at most half of the players can have the rarer word"
            )
        return self.minority or players // 2

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        players = seats["players"]
        self.size_of_minority(players)
        last = players * self.rounds if self.unit == "turn" else self.rounds
        return [
            *(
                Metric(name, 0, 1, epsilon=0.05, spread=spread, digits=3)
                for name, spread in SPREADS.items()
            ),
            Metric(
                "first_guess",
                1,
                last,
                epsilon=max(0.1, last / 20),
                unit=f"{self.unit}s",
                better="lower",
            ),
        ]

    def unused_prompts(self, seats: Mapping[str, int]) -> Iterable[str]:
        yield from super().unused_prompts(seats)
        equal = 2 * self.size_of_minority(seats["players"]) == seats["players"]
        yield UNEQUAL_GROUPS.name if equal else EQUAL_GROUPS.name

    def reject_reason(self, item: WordPair) -> str:
        if self.topics and item.topic not in self.topics:
            return f"of topic {item.topic!r}" if item.topic else "without a topic"
        same = find_confusable(item.names(item.a), item.names(item.b))
        return f"whose words are too similar: {same[0]!r} counts as {same[1]!r}" if same else ""

    def score_basis(self) -> Mapping[str, str]:
        return {"match": BASIS}

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"`rounds` must be at least 1, not {self.rounds}")
        if self.only != "all" and self.rounds <= BEYOND:
            raise ValueError(
                f"`only={self.only}` keeps only matches of more than {BEYOND} rounds, so "
                f"`rounds` must be at least {BEYOND + 1}, not {self.rounds}"
            )


@dataclass(frozen=True)
class GameFacts:
    """Each player's word and first right guess, and the round after which both words were
    guessed."""

    words: Mapping[Seat, str]
    firsts: Mapping[Seat, int | None]
    rounds: int
    both: int | None


@dataclass(frozen=True)
class GameEnd(Note, kind="word_guessing.end"):
    """The course of a game."""

    guessing: GameFacts


RULES = Prompt(
    "rules",
    """\
You are {me} of {n} players in a guessing game. There are two secret words, which are alike but not the same. {groups}, \
and you are not told who has which. Your secret word is “{word}”.

The game has up to {rounds} rounds. In each round the players take their turns in the order of their numbers. In a turn a \
player does two things: it describes its own word in a sentence or two, and it guesses the word of every other player. A \
description must be true, must tell something that nobody has told before, and must not contain the player's own word. All \
descriptions are read by everybody. A guess is a single word, or a name of a few words; leave it empty as long as you have none.

You do well if you find the word of the other group early, and if they find yours late or not at all.""",  # noqa: E501
)


EQUAL_GROUPS = Prompt(
    "equal_groups", "Half of the players have one of them, the other half have the other"
)
UNEQUAL_GROUPS = Prompt(
    "unequal_groups", "{small} of the players have one of them, {large} have the other"
)


HEARD = {
    False: Prompt("guesses_private", "Nobody but the referee sees what you guess."),
    True: Prompt("guesses_open", "All players see what you guess, and you see what they guess."),
}


TURN = Prompt(
    "turn",
    "Round {number} of {rounds}: it is your turn. Describe your word, "
    "and guess the words of the others.",
)
REFUSED = Prompt(
    "refused",
    "This cannot stand: {why}. Give your whole turn again; if this happens again, "
    "the turn is lost.",
)


WHY = {
    OWN_WORD: Prompt("why_own_word", "your description contains your own word"),
    REPEATED: Prompt("why_repeated", "your description repeats one that was given before"),
    EMPTY: Prompt("why_empty", "your description is empty"),
}


DESCRIBED = Prompt("described", "{who} has described its word:\n{said}")
GUESSED = Prompt("guessed", "{who} has guessed:\n{guesses}")
VOID = Prompt("void", "{who} has lost its turn without a description.")


def guess_field(other: Seat) -> str:
    """The field of a reply that guesses a seat's word."""
    return f"player_{other.number}"


@cache
def turn_reader(*others: Seat) -> Fields:
    """A description and a guess for every other seat."""
    guess = "your guess at the word of {}, or an empty text"
    guesses = {
        guess_field(other): {"type": "string", "description": guess.format(other)}
        for other in others
    }
    return Fields({"description": {"type": "string", "description": "your description"}, **guesses})
