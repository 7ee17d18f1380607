"""Small tasks for tests: some good, some that break a rule on purpose. `check_task` plays them in
other processes too."""

import asyncio
import random
from dataclasses import dataclass, field

from parley import Amount, Choice, Code, Example, Fields, Forfeit, Items, Metric, Prompt, Role, Task

POINTS = Metric("points", 0, 100, epsilon=5)
LOUNGE = {"guests": Role(1, 4)}


class Game(Task):
    """What these tasks share."""

    def metrics(self, seats):
        return [POINTS]


@dataclass(frozen=True)
class Echo(Game):
    """Everybody speaks, everybody hears all the others, quoted."""

    rounds: int = 3
    roles = {"guests": Role(2, 4)}

    async def play(self, referee, guests):
        for number in range(self.rounds):
            said = await referee.ask(guests, referee.render(SPEAK, number=number))
            for guest in guests:
                referee.tell(
                    guest,
                    "\n".join(
                        referee.quote(said[other], other) for other in guests if other != guest
                    ),
                )
        return dict.fromkeys(guests, 1)


SPEAK = Prompt("speak", "Round {number} of {rounds}: say something.")


@dataclass(frozen=True)
class Judged(Game):
    """A writer writes, a panel of judges marks it; without judges the mark is missing."""

    roles = {"writer": Role(), "judge": Role(0, 3, instrument=True)}

    async def play(self, referee, writer, judge):
        text = await referee.ask(writer, "Write a line.")
        if not judge:
            return {}
        form = Fields({"score": {"type": "integer", "minimum": 1, "maximum": 10}})
        marks = await referee.ask(
            judge, f"Mark this:\n{referee.quote(text, writer)}", expect=form, default=None
        )
        given = [mark["score"] for mark in marks.values() if mark]
        return {writer: {"points": sum(given) / len(given) if given else None}}


@dataclass(frozen=True)
class Duel(Game):
    """Two questions in one round, then a forfeit that the rule catches."""

    roles = {"left": Role(), "right": Role()}

    async def play(self, referee, left, right):
        a, b = await referee.together(
            referee.ask(left, "A number?", expect=Amount("n", 0, 9), default=0),
            referee.ask(
                right, "Heads or tails?", expect=Choice("side", ("heads", "tails")), default="heads"
            ),
        )
        try:
            await referee.ask(left, "A program?", expect=Code(), attempts=1)
        except Forfeit:
            referee.fault(left, "no_program")
            return {left: 0, right: 50}
        return {left: a, right: 10 if b == "heads" else 20}


@dataclass(frozen=True)
class Word:
    id: str
    text: str
    length: int = 0


@dataclass(frozen=True)
class Spelling(Game):
    """Played on items; shows demonstrations; draws lots."""

    roles = {"pupil": Role()}
    items = Items(Word)

    async def play(self, referee, pupil):
        word = referee.item.text
        letters = referee.rng.sample(word, len(word))
        shown = [Example("Order: tca", "cat")]
        said = await referee.ask(pupil, f"Order: {''.join(letters)}", examples=shown, attempts=1)
        referee.note(wanted=word, right=said == word)
        return {pupil: 100 if said == word else 0}


@dataclass(frozen=True)
class Running(Game):
    """Has a program run, and scores by what comes back."""

    roles = {"coder": Role()}
    runs_code = True

    async def play(self, referee, coder):
        code = await referee.ask(coder, "Code?", expect=Code(), default="")
        result = await referee.run({"code": str(code), "limit": 1})
        return {coder: (result or {}).get("value", 0)}


@dataclass(frozen=True)
class Bundled(Spelling):
    """Brings its items along."""

    items = Items(Word, bundled=[Word("1", "cat"), Word("2", "horse")])


# Tasks that must be refused or caught.


@dataclass(frozen=True)
class ForgetsSecond(Game):
    """Scores the first of two seats only."""

    roles = {"players": Role(2)}

    async def play(self, referee, players):
        await referee.ask(players, "Hello.")
        return {players[0]: 1}


@dataclass(frozen=True)
class ForgetsMetric(Game):
    """Gives its second metric to one of two seats."""

    roles = {"players": Role(2)}

    async def play(self, referee, players):
        await referee.ask(players, "Hello.")
        return {players[0]: 1, players[1]: {"points": 1, "style": 2}}

    def metrics(self, seats):
        return [POINTS, Metric("style", 0, 10, epsilon=1)]


@dataclass(frozen=True)
class RunsUnsaid(Running):
    """Has a program run, and does not say so."""

    runs_code = False


@dataclass(frozen=True)
class Sleeps(Game):
    roles = LOUNGE

    async def play(self, referee, guests):
        await asyncio.sleep(0)
        return {}


@dataclass(frozen=True)
class Forgets(Game):
    roles = LOUNGE

    async def play(self, referee, guests):
        referee.ask(guests, "Nobody waits for this.")
        await referee.ask(guests, "But for this.")
        return {}


@dataclass(frozen=True)
class Gambles(Game):
    """Draws chance that is not the referee's."""

    roles = LOUNGE

    async def play(self, referee, guests):
        await referee.ask(guests, f"Number {random.random()}")
        return {}


@dataclass(frozen=True)
class Unordered(Game):
    """Goes through a set."""

    roles = LOUNGE

    async def play(self, referee, guests):
        for word in {"alpha", "beta", "gamma", "delta", "epsilon"}:
            await referee.ask(guests, word)
        return {}


@dataclass(frozen=True)
class AsksSet(Game):
    roles = LOUNGE

    async def play(self, referee, guests):
        await referee.ask(set(guests), "All?")
        return {}


@dataclass(frozen=True)
class Remembers(Game):
    """Keeps state in a mutable field."""

    seen: tuple[int, ...] = ()
    log: list[int] = field(default_factory=list, init=False)
    roles = LOUNGE

    async def play(self, referee, guests):
        self.log.append(1)
        await referee.ask(guests, "Hello.")
        return {}


@dataclass(frozen=True)
class Assigns(Game):
    roles = LOUNGE

    async def play(self, referee, guests):
        self.guests = guests
        await referee.ask(guests, "Hello.")
        return {}


@dataclass(frozen=True)
class Endless(Game):
    """Asks until it likes the answer."""

    roles = LOUNGE

    async def play(self, referee, guests):
        while await referee.ask(guests[0], "Say please.") != "please":
            pass
        return {}


@dataclass(frozen=True)
class Cheats(Game):
    """Scores outside its range."""

    roles = LOUNGE

    async def play(self, referee, guests):
        await referee.ask(guests, "Hello.")
        return dict.fromkeys(guests, 101)


@dataclass(frozen=True)
class Fragile(Game):
    """Falls over when a reply is not what it hoped for."""

    roles = LOUNGE

    async def play(self, referee, guests):
        said = await referee.ask(guests, "A number, please.")
        return {guest: min(100, max(0, int(said[guest]))) for guest in guests}


BAD = {
    "RunsUnsaid": "write `runs_code = True` in the task",
    "Sleeps": "await methods of its referee",
    "Forgets": "not awaited",
    "Gambles": "referee.rng",
    "Unordered": "set",
    "AsksSet": "set",
    "Remembers": "state",
    "Assigns": "cannot assign",
    "Endless": "does not end",
    "Cheats": "range",
    "Fragile": "invalid literal",
}
