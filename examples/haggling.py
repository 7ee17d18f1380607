"""Haggling: private information, items, a judge and two metrics in one file.

parley check examples/haggling.py
parley run examples/haggling.py -m bot/firm -m bot/soft --role judge=bot/random
"""

from collections.abc import Mapping
from dataclasses import dataclass

from parley import (
    BotView,
    Fields,
    Items,
    Metric,
    Prompt,
    Referee,
    Role,
    Scores,
    Seat,
    Task,
    ask_judges,
)


@dataclass(frozen=True)
class Deal:
    """Something for sale. Each side knows only its own limit."""

    id: str
    thing: str
    cost: int  # the seller makes a loss below this
    worth: int  # the buyer makes a loss above this


DEALS = (
    Deal("bicycle", "a used bicycle", 60, 140),
    Deal("piano", "an old piano", 300, 500),
    Deal("lamp", "a desk lamp", 10, 30),
    Deal("boat", "a rowing boat", 200, 260),
)


@dataclass(frozen=True)
class Haggling(Task):
    """A seller and a buyer name prices at the same time, until the bid reaches the demand.

    thing   the thing for sale
    limit   the seat's limit: a deal beyond it is a loss
    number  number of the current round
    price   the other side's last price
    talk    everything that was said, for the judge
    """

    rounds: int = 4

    # Role() has one seat: `play` gets a Seat. Role(0, 3) may have more: `play` gets a list.
    roles = {"seller": Role(), "buyer": Role(), "judge": Role(0, 3, instrument=True)}
    items = Items(Deal, bundled=DEALS)

    async def play(self, referee: Referee, seller: Seat, buyer: Seat, judge: list[Seat]) -> Scores:
        deal = referee.item
        # Private: a seat reads only what it is told itself.
        referee.tell(seller, referee.render(SELLER, thing=deal.thing, limit=deal.cost))
        referee.tell(buyer, referee.render(BUYER, thing=deal.thing, limit=deal.worth))
        price, talk = None, list[str]()
        for number in range(1, self.rounds + 1):
            turn = referee.render(TURN, number=number)
            offers = await referee.ask([seller, buyer], turn, expect=OFFER, default=None)
            talk += [
                referee.quote(None if offer is None else offer["words"], seat)
                for seat, offer in offers.items()
            ]
            demand, bid = (None if offer is None else offer["price"] for offer in offers.values())
            if demand is not None and bid is not None and bid >= demand:
                price = (demand + bid) / 2
                break
            for me, other in ((seller, bid), (buyer, demand)):
                named = "nothing" if other is None else other
                referee.tell(me, referee.render(NEWS, price=named))
        referee.note(price=price)
        # {seat: {"judge": mean of the votes}}; {seat: {}} without judges
        manners = await ask_judges(
            referee, judge, JUDGE, {seller: MANNERS, buyer: MANNERS}, talk="\n".join(talk)
        )
        room = deal.worth - deal.cost
        gains = {seller: 0.0, buyer: 0.0}  # without a deal nobody gains
        if price is not None:
            gains = {seller: (price - deal.cost) / room, buyer: (deal.worth - price) / room}
        # With several metrics, return a mapping of metric names to values for every contestant.
        return {
            seat: {"gain": min(1.0, max(-1.0, gain)), **manners[seat]}
            for seat, gain in gains.items()
        }

    def metrics(self, seats: Mapping[str, int]) -> list[Metric]:
        gain = Metric("gain", -1, 1, epsilon=0.05)  # as a share of worth - cost
        judged = Metric("judge", 1, 10, epsilon=0.25, judged=True)
        return [gain, judged] if seats["judge"] else [gain]


OFFER = Fields(
    {
        "words": {"type": "string", "description": "what you say to the other side"},
        "price": {"type": "number", "minimum": 0, "maximum": 1000},
    }
)
SELLER = Prompt("seller", "You sell {thing}. It has cost you {limit}: sell for as much as you can.")
BUYER = Prompt("buyer", "You want {thing}. It is worth {limit} to you: pay as little as you can.")
TURN = Prompt(
    "turn",
    "Round {number} of {rounds}: name your price. If the buyer's price reaches the seller's, both "
    "agree on the middle. Without a deal nobody gains.",
)
NEWS = Prompt("news", "The other side has named {price}.")
JUDGE = Prompt("judge", "Two have haggled. Rate {roles}:\n{rubric}\nWhat they said:\n{talk}")
MANNERS = Prompt("manners", "was it polite, and did it give reasons?")


def firm(bot: BotView) -> dict[str, object]:
    """Starts far from its limit and concedes slowly."""
    return offer(bot, start=0.8, step=0.1)


def soft(bot: BotView) -> dict[str, object]:
    """Starts near its limit and concedes fast."""
    return offer(bot, start=0.3, step=0.3)


def offer(bot: BotView, start: float, step: float) -> dict[str, object]:
    """Bots can read the item, which models never see. This plants a known ability."""
    deal, wants = bot.item, max(0.0, start - step * (bot.view.round - 1))
    room = deal.worth - deal.cost
    sells = bot.view.seat.role == "seller"
    price = deal.cost + wants * room if sells else deal.worth - wants * room
    return {"words": "This is my price.", "price": round(price, 2)}


Haggling.bots = {"firm": firm, "soft": soft}
