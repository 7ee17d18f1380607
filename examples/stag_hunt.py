"""The stag hunt: your own task in one file, with an analysis, a table and a figure.

parley run examples/stag_hunt.py -m bot/trusting -m bot/careful -m bot/random
parley show last --part trust --task examples/stag_hunt.py
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from parley import (
    BotView,
    Choice,
    Lines,
    Metric,
    Note,
    Part,
    Prompt,
    Referee,
    Role,
    RunScores,
    Scores,
    Seat,
    Series,
    Share,
    Style,
    Table,
    Task,
)

CAUGHT = {("stag", "stag"): 4, ("stag", "hare"): 0, ("hare", "stag"): 3, ("hare", "hare"): 3}


@dataclass(frozen=True)
class Hunt(Note, kind="stag_hunt.hunt"):
    """What both players hunted in one round; the analysis below reads it."""

    number: int
    hunted: Mapping[Seat, str]


@dataclass(frozen=True)
class TrustRow:
    """How often a model hunted the stag in one round."""

    alias: str
    round: int
    stag: Share


def count_trust(run: RunScores) -> tuple[TrustRow, ...]:
    cases: dict[tuple[str, int], list[tuple[str, bool]]] = defaultdict(list)
    for match, hunt in run.notes(Hunt):
        for seat, alias in run.contestants_of(match):
            cases[alias, hunt.number].append((match.block, hunt.hunted[seat] == "stag"))
    return tuple(TrustRow(*key, run.share(found)) for key, found in sorted(cases.items()))


def trust_table(found: tuple[TrustRow, ...], style: Style) -> list[Table]:
    rows = [[row.alias, str(row.round), f"{row.stag.share:.2f}"] for row in found]
    return [Table(["model", "round", "hunted the stag"], rows, note="share of matches")]


def trust_lines(found: tuple[TrustRow, ...], style: Style) -> list[Lines]:
    series = []
    for alias in dict.fromkeys(row.alias for row in found):
        rows = [row for row in found if row.alias == alias]
        numbers, shares = zip(*((float(row.round), row.stag.share) for row in rows), strict=True)
        series.append(Series(alias, numbers, shares))
    title = "Share that hunts the stag"
    return [Lines(title, f"{title}, by round", "round", "share", tuple(series))]


@dataclass(frozen=True)
class StagHunt(Task):
    """Two hunters each choose a stag, which needs both of them, or a hare, which needs one.

    rounds  number of rounds in a match
    number  number of the current round
    """

    rounds: int = 5

    roles = {"hunters": Role(2)}
    parts = (
        Part(
            "trust",
            "Who trusts the other",
            tuple[TrustRow, ...],
            count_trust,
            tables=trust_table,
            figures=trust_lines,
        ),
    )

    async def play(self, referee: Referee, hunters: list[Seat]) -> Scores:
        food = dict.fromkeys(hunters, 0)
        referee.tell(hunters, referee.render(RULES))
        for number in range(1, self.rounds + 1):
            hunted = await referee.ask(
                hunters,
                referee.render(TURN, number=number),
                expect=Choice("hunt", ("stag", "hare")),
                default="hare",
            )
            for hunter, other in (hunters, hunters[::-1]):
                food[hunter] += CAUGHT[hunted[hunter], hunted[other]]
            referee.note(Hunt(number, hunted))
        return {hunter: float(total) for hunter, total in food.items()}

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        return [Metric("food", 0, 4 * self.rounds, epsilon=0.5)]


RULES = Prompt(
    "rules",
    "You hunt with one other hunter. If both of you hunt the stag, each gets 4. If you hunt it "
    "alone, you get nothing. A hare gives you 3.",
)
TURN = Prompt("turn", "Round {number}. What do you hunt?")


def trusting(bot: BotView) -> str:
    """Always hunts the stag."""
    return "stag"


def careful(bot: BotView) -> str:
    """Always hunts the hare."""
    return "hare"


StagHunt.bots = {"trusting": trusting, "careful": careful}
