"""An evaluation over HTTP against llama.cpp's own server: a real endpoint, with its own counters of
what it had cached."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass

import pytest

import parley
from parley import Fields, Metric, Prompt, Referee, Role, Scores, Seat, Task
from tests.llamacpp import llamacpp

SEATS = 2
SHARE = {
    "reason": {"type": "string", "maxLength": 40},
    "coins": {"type": "integer", "minimum": 0, "maximum": 10},
}


@dataclass(frozen=True)
class Pool(Task):
    """A public goods game whose form has limits that a server can keep: this model does not stop by
    itself."""

    rounds: int = 3
    roles = {"players": Role(2, 4)}
    repeats = 1

    async def play(self, referee: Referee, players: list[Seat]) -> Scores:
        coins = dict.fromkeys(players, 0.0)
        referee.tell(players, referee.render(RULES, n=len(players)))
        for number in range(1, self.rounds + 1):
            paid = await referee.ask(
                players, referee.render(TURN, number=number), expect=Fields(SHARE)
            )
            income = 1.6 * sum(said["coins"] for said in paid.values()) / len(players)
            for player in players:
                coins[player] += 10 - paid[player]["coins"] + income
            referee.tell(players, referee.render(NEWS, income=round(income, 2)))
        return coins

    def metrics(self, seats):
        return [Metric("payoff", 0, 26 * self.rounds, epsilon=5, unit="coins")]


RULES = Prompt(
    "rules",
    """\
You play a game with {n} players that lasts {rounds} rounds. At the start of each round everybody gets 10 coins and decides, \
at the same time as all others, how many of them to pay into a common pool. At the end of the round the coins in the pool \
are multiplied by 1.6 and divided evenly among all players, whether they paid or not. What you do not pay you keep. After \
each round you are told what the pool paid you. Whoever owns the most coins after the last round has won the game.""",  # noqa: E501
)
TURN = Prompt(
    "turn",
    "Round {number} begins and you get 10 coins. How many do you pay into the pool, and why?",
)
NEWS = Prompt("news", "The pool paid you {income} coins.")


@pytest.mark.slow
def test_an_evaluation_through_a_server_that_is_not_ours(tmp_path):
    """One match in which every seat is the same model behind llama.cpp's server, with a slot for
    each."""
    with llamacpp(slots=SEATS) as url:
        model = {
            "model": "openai-compatible/smollm2",
            "base_url": url,
            "structured": True,
            "max_tokens": 60,
        }
        models = {f"m{n}": model | {"temperature": 0.5, "seed": n} for n in range(SEATS)}
        result = parley.run(Pool(), models, store=tmp_path)
    assert result.data["run"]["state"] == "done"
    assert result.data["violations"] == []
    every_reply_keeps_to_the_form(result)
    what_was_said_before_comes_from_the_cache(result)
    a_seat_is_given_its_own_words_back(result)


def calls(result, what):
    """Columns of every call on record, in each seat's order."""
    with closing(sqlite3.connect(result.path)) as connection:
        rows = connection.execute(
            f"SELECT seat, {what} FROM calls ORDER BY seat, round, attempt"
        ).fetchall()
    return {
        seat: [row[1:] for row in rows if row[0] == seat]
        for seat in sorted({row[0] for row in rows})
    }


def every_reply_keeps_to_the_form(result):
    for rows in calls(result, "content, finish, model_served").values():
        assert len(rows) == 3
        for content, finish, model in rows:
            reply = json.loads(content)
            assert set(reply) == {"reason", "coins"}
            assert reply["coins"] in range(11)
            assert (finish, model) == ("stop", "smollm2")


def what_was_said_before_comes_from_the_cache(result):
    """Nine tenths of the previous prompt and reply, over rounds 2 and 3, as the server counts
    them."""
    for seat, rows in calls(result, "tokens_in, tokens_cached, tokens_out").items():
        before = [asked + reply for asked, _, reply in rows[:-1]]
        cached = [found for _, found, _ in rows[1:]]
        assert sum(cached) >= 0.9 * sum(before), f"{seat}: {rows}"
        # A reply may be put into other tokens when it is read again than when it was drawn; what
        # came before it may not.
        assert all(found >= asked for (asked, _, _), found in zip(rows, cached, strict=False)), (
            f"{seat}: {rows}"
        )


def a_seat_is_given_its_own_words_back(result):
    """As it said them: else the server would not have known them again."""
    (match,) = result.matches
    for seat, rows in calls(result, "content").items():
        own = [message["content"] for message in match["transcript"] if message["sender"] == seat]
        assert own == [content for (content,) in rows]
