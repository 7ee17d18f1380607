"""One match, ready to show: the terminal, pages, reports and JSON only lay it out.

Secrets are masked as a match is read, before anything is shortened or quoted: half of a secret
would not be recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from parley.memory.feedback import PeopleVerdict
from parley.money import FindPrice, Prices, match_costs, prices_of
from parley.results.demonstrations import (
    RecalledInWords,
    describe_recalled,
    describe_shown,
    read_demonstrations,
)
from parley.results.match_list import BROKEN, STATE_KINDS, ListedSeat, rank_scored_seats
from parley.results.match_notes import Mark, describe_note, mask_data
from parley.results.match_scores import MatchScores, describe_scores
from parley.results.match_turns import LEFT_OUT, Mask, MatchTurn, list_turns
from parley.results.run_facts import group_attempts
from parley.results.scores import parse_metric
from parley.results.seat_views import rebuild_views
from parley.results.types import Lines
from parley.rules.pool import Seat, text_of
from parley.rules.task import Metric
from parley.store.reader import RunReader
from parley.store.types import MatchRow, ViolationRow, WholeMatch
from parley.tables import format_duration, plural

MOST_NAMED, MOST_TOLD = 3, 4  # seats in the title, and in the lead
READ_BEFORE = f"{LEFT_OUT} marks text that these seats had read before."


@dataclass(frozen=True)
class MatchRound:
    """One round: what was said, then the rule's notes, then what seats were told afterwards."""

    number: int  # 0: before the first round
    turns: tuple[MatchTurn, ...]
    notes: tuple[Mark, ...]
    told: tuple[MatchTurn, ...]

    @property
    def title(self) -> str:
        return f"Round {self.number}" if self.number else "Before the first round"


@dataclass(frozen=True)
class MatchHeadline:
    """What a match was, and how it ended."""

    title: str  # the match and its scores
    item: str  # empty if it has none
    stage: str  # of the plan `evolve`
    lead: str  # the result and the end, in a sentence or two
    state: Mark
    seats: tuple[str, ...]  # with their models
    marks: tuple[Mark, ...]  # what happened to replies, counted
    facts: tuple[str, ...]  # calls, cost and time


@dataclass(frozen=True)
class Transcript:
    """One match in the order of time, in words."""

    match: MatchRow
    headline: MatchHeadline
    recalled: tuple[RecalledInWords, ...]
    rounds: tuple[MatchRound, ...]
    scores: MatchScores
    by_round: Lines | None
    votes: tuple[str, ...]  # of people

    @property
    def turns(self) -> Iterator[MatchTurn]:
        for each in self.rounds:
            yield from (*each.turns, *each.told)

    @property
    def leaves_out(self) -> bool:
        """Whether a text is shorter in `unread`."""
        return any(turn.text != turn.unread for turn in self.turns)


@dataclass
class TranscriptReader:
    """Reads matches of one run. `mask` hides secrets; `find_price` finds prices that the run did
    not record."""

    reader: RunReader
    mask: Mask
    find_price: FindPrice | None = None

    @cached_property
    def items(self) -> dict[str, dict[str, Any]]:
        return {str(each["id"]): each for each in self.reader.run.items()}

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """By name, contestant or instrument."""
        return self.reader.info.identity["roles"]

    @cached_property
    def metrics(self) -> list[Metric]:
        return [parse_metric(each) for each in self.reader.info.identity["metrics"]]

    @cached_property
    def prices(self) -> Prices:
        return prices_of(self.reader, self.find_price)

    def read(self, match: MatchRow) -> Transcript:
        """Everything on record for one match."""
        reader = self.reader
        whole = reader.whole_matches.of(match)
        item = {} if match.item is None else mask_data(self.items.get(match.item, {}), self.mask)
        notes = whole.notes
        turns = list(list_turns(whole, self.roles, self.prices, self.mask))
        rounds = []
        for at in sorted({*(turn.round for turn in turns), *(note.round for note in notes)}):
            own = [turn for turn in turns if turn.round == at]
            # the referee's words after the replies come after the notes of the round
            rounds.append(
                MatchRound(
                    at,
                    tuple(turn for turn in own if not (at and turn.kind == "tell")),
                    tuple(describe_note(n, match, item, self.mask) for n in notes if n.round == at),
                    tuple(turn for turn in own if at and turn.kind == "tell"),
                )
            )
        scored = rank_scored_seats(match, self.roles, self.metrics, whole.scores)
        scores, by_round = describe_scores(whole, self.metrics, [each.seat for each in scored])
        return Transcript(
            match,
            self._write_headline(whole, scored),
            tuple(describe_recalled(reader, match)),
            tuple(rounds),
            scores,
            by_round,
            tuple(describe_votes(match, reader.people.verdicts(match.number))),
        )

    def _write_headline(self, whole: WholeMatch, scored: Sequence[ListedSeat]) -> MatchHeadline:
        """What a match was, and how it ended; `scored`: its seats, the best first."""
        match = whole.match
        return MatchHeadline(
            name_match(match, scored),
            "" if match.item is None else f"item {match.item}",
            describe_stage(self.reader, match),
            " ".join([*describe_result(scored), describe_end(match, self.mask)]),
            Mark(match.state, STATE_KINDS.get(match.state, "")),
            tuple(f"{seat}: {alias}" for seat, alias in match.seats.items()),
            tuple(count_faults(whole.violations)),
            tuple(list_facts(self.reader, match, self.prices)),
        )

    def read_seat(self, match: MatchRow, seat: Seat) -> tuple[MatchTurn, ...]:
        """Everything that one seat read and wrote, in order and unshortened."""
        reader, found = self.reader, list[MatchTurn]()
        for recalled in reader.experiences.recalled(match.number):
            if recalled.seat == seat.key:
                for shown, source, words in read_demonstrations(reader, recalled):
                    text = self.mask(words)
                    found.append(MatchTurn(0, "tell", describe_shown(shown, source), text, text))
        views, _ = rebuild_views(reader.whole_matches.of(match))
        for turn in views[seat.key].turns:
            text = self.mask(text_of(turn.content))
            if turn.role == "user":
                found.append(MatchTurn(0, "ask", "Referee", text, text))
            else:
                found.append(MatchTurn(0, "reply", str(seat), text, text, seat, match.seats[seat]))
        return tuple(found)


# The headline.


def name_match(match: MatchRow, scored: Sequence[ListedSeat]) -> str:
    """The number of a match and who played it, with their scores if they have one metric."""
    one_metric = len({each.metric.name for each in scored if each.metric}) == 1
    names = [f"{each.alias} {each.score_text}" if one_metric else each.alias for each in scored]
    if not names:
        return f"Match {match.number}"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"Match {match.number}: {', '.join(names[:MOST_NAMED])}{more}"


def describe_stage(reader: RunReader, match: MatchRow) -> str:
    """The stage and the arm of a match; empty unless its plan is `evolve`."""
    if reader.info.config.evolve is None:
        return ""
    return f"stage {match.stage}" + (f" of arm {match.arm}" if match.arm else "")


def describe_result(scored: Sequence[ListedSeat]) -> Iterator[str]:
    """The best and the worst score, or the scores by metric."""
    known = [(each, each.metric) for each in scored if each.score is not None and each.metric]
    if len({metric.name for _, metric in known}) != 1 or len(known) == 1:
        for each, metric in known[:MOST_TOLD]:
            yield f"{each.alias} ({each.seat}): {metric.name} {each.score_text}."
        return
    (best, metric), (worst, _) = known[0], known[-1]
    if best.score == worst.score:
        yield f"All have the same {metric.name}: {best.score_text}."
        return
    yield (
        f"{best.alias} ({best.seat}) has the best {metric.name}, {best.score_text}, and "
        f"{worst.alias} ({worst.seat}) the worst, {worst.score_text}."
    )


def describe_end(match: MatchRow, mask: Mask) -> str:
    """How a match ended."""
    after = "" if match.rounds is None else f" after {plural(match.rounds, 'round')}"
    if match.state in BROKEN:
        what = "aborted" if match.state == "aborted" else "not finished"
        why = f": {mask(match.reason)}" if match.reason else ""
        return f"The match was {what}{after}{why}."
    if match.state != "done":
        return f"The match is {match.state}."
    return f"The match ended{after}."


def count_faults(violations: Iterable[ViolationRow]) -> Iterator[Mark]:
    """What happened to replies, counted."""
    found, outcomes = list(violations), dict[str, int]()
    for tries in group_attempts(found):
        name = "masked" if tries[-1].outcome == "masked" else tries[-1].kind
        outcomes[name] = outcomes.get(name, 0) + 1
    again = sum(each.outcome == "asked again" for each in found)
    if again:
        yield Mark(f"{plural(again, 'reply', 'replies')} asked for again", "warn")
    for name, count in outcomes.items():
        if name == "masked":
            yield Mark(f"{plural(count, 'name')} masked")
        else:
            yield Mark(f"{plural(count, 'violation')}: {name}", "warn")


def list_facts(reader: RunReader, match: MatchRow, prices: Prices) -> Iterator[str]:
    """Calls with their cost, and the time."""
    cost = match_costs(reader, [match.number], prices)[match.number]
    calls = plural(cost.calls, "call")
    yield calls if cost.usd == 0 else f"{calls}, {cost} USD"
    if match.began is not None and match.ended is not None:
        yield format_duration(match.ended - match.began)


def describe_votes(match: MatchRow, verdicts: Iterable[PeopleVerdict]) -> Iterator[str]:
    """What people said of a match."""
    words = {True: "a success", False: "a failure", None: "undecided"}
    for said in verdicts:
        name = f"{said.seat} ({match.seats[said.seat]})"
        if said.is_open:
            yield f"{name}: people have not voted yet"
        else:
            counts = f"{said.yes} yes, {said.no} no, {said.unsure} cannot tell"
            yield f"{name}: {words[said.success]} ({counts})"
