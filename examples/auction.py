"""Sealed bids: private information, a judge, two metrics, bots and an analysis in one file.

The docs page "Write a task" builds this file step by step.

parley check examples/auction.py
parley run examples/auction.py -m bot/honest -m bot/cautious -m bot/eager --role judge=bot/random
parley show last --part overbids --task examples/auction.py
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from parley import (
    Bar,
    Bars,
    BotView,
    Fields,
    Metric,
    Note,
    Part,
    Prompt,
    Referee,
    Role,
    RunScores,
    Scores,
    Seat,
    Share,
    Style,
    Table,
    Task,
    ask_judges,
)


@dataclass(frozen=True)
class Bids(Note, kind="auction.bids"):
    """The values and bids of one auction; the part below reads it."""

    values: Mapping[Seat, int]
    bids: Mapping[Seat, float]


@dataclass(frozen=True)
class OverbidRow:
    """How often a model bid more than the painting was worth to it."""

    alias: str
    overbids: Share


def count_overbids(run: RunScores) -> tuple[OverbidRow, ...]:
    cases: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for match, note in run.notes(Bids):
        for seat, alias in run.contestants_of(match):
            cases[alias].append((match.block, note.bids[seat] > note.values[seat]))
    return tuple(OverbidRow(alias, run.share(found)) for alias, found in sorted(cases.items()))


def overbid_table(found: tuple[OverbidRow, ...], style: Style) -> list[Table]:
    rows = []
    for row in found:
        share = row.overbids
        interval = "–" if share.low is None else f"{share.low:.2f} to {share.high:.2f}"
        rows.append([row.alias, f"{share.share:.2f}", interval, str(share.blocks)])
    return [Table(["model", "overbids", f"{style.level} interval", "blocks"], rows)]


def overbid_bars(found: tuple[OverbidRow, ...], style: Style) -> list[Bars]:
    bars = tuple(Bar(row.alias, {"overbids": row.overbids.share}) for row in found)
    return [Bars("Overbids", "Share of bids above the own value, by model", "share of bids", bars)]


@dataclass(frozen=True)
class Auction(Task):
    """Bidders name one secret bid for a painting; the highest bid wins and is paid.

    value  what the painting is worth to this bidder
    count  how many bidders there are
    said   the reasons of all bidders, for the judge
    """

    most: Annotated[int, (10, 10_000)] = 100  # the highest possible value

    roles = {"bidders": Role(2, 6), "judge": Role(0, 3, instrument=True)}
    repeats = 10
    parts = (
        Part(
            "overbids",
            "Bids above the own value",
            tuple[OverbidRow, ...],
            count_overbids,
            tables=overbid_table,
            figures=overbid_bars,
        ),
    )

    async def play(self, referee: Referee, bidders: list[Seat], judge: list[Seat]) -> Scores:
        values = {bidder: referee.rng.randint(10, self.most) for bidder in bidders}
        for bidder in bidders:  # private: a bidder sees only its own value
            referee.tell(bidder, referee.render(VALUE, value=values[bidder], count=len(bidders)))
        offers = await referee.ask(bidders, referee.render(BID), expect=OFFER, default=None)
        bids = {seat: offer["bid"] if offer else 0.0 for seat, offer in offers.items()}
        referee.note(Bids(values, bids))
        profit = dict.fromkeys(bidders, 0.0)
        highest = max(bids.values())
        if highest > 0:
            winner = referee.rng.choice([seat for seat in bidders if bids[seat] == highest])
            profit[winner] = max(-1.0, (values[winner] - highest) / self.most)
        reasons = [
            referee.quote(offer["reason"] if offer else None, seat)
            for seat, offer in offers.items()
        ]
        judged = await ask_judges(
            referee, judge, JUDGE, dict.fromkeys(bidders, RUBRIC), said="\n".join(reasons)
        )
        return {seat: {"profit": profit[seat], **judged[seat]} for seat in bidders}

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        profit = Metric("profit", -1, 1, epsilon=0.05)
        judged = Metric("judge", 1, 10, epsilon=0.25, judged=True)
        return [profit, judged] if seats["judge"] else [profit]


OFFER = Fields(
    {
        "reason": {"type": "string", "description": "why you bid this amount"},
        "bid": {"type": "number", "minimum": 0, "maximum": 10_000},
    }
)
VALUE = Prompt(
    "value",
    "You are one of {count} bidders for a painting. It is worth {value} coins to you. The others "
    "have values of their own, from 10 to {most}. The highest bid wins and is paid; the winner's "
    "profit is its value minus its bid. All others get nothing.",
)
BID = Prompt("bid", "Name your secret bid in coins.")
JUDGE = Prompt("judge", "Bidders explained their bids. Rate {roles}:\n{rubric}\n\n{said}")
RUBRIC = Prompt("rubric", "is the reason sound and honest?")


def bid_share(bot: BotView, share: float) -> dict[str, object]:
    value = float(bot.view.text.split("worth ")[1].split(" coins")[0])
    return {"reason": f"I bid {share:.0%} of the value.", "bid": round(share * value, 2)}


def honest(bot: BotView) -> dict[str, object]:
    """Bids its value, so that winning gains nothing."""
    return bid_share(bot, 1.0)


def cautious(bot: BotView, share: Annotated[float, (0, 2)] = 0.6) -> dict[str, object]:
    """Bids this share of its value."""
    return bid_share(bot, share)


def eager(bot: BotView) -> dict[str, object]:
    """Bids more than its value, so that winning is a loss."""
    return bid_share(bot, 1.3)


Auction.bots = {"honest": honest, "cautious": cautious, "eager": eager}
