"""The first sentences of a report, computed from the data: who leads, by how much, and what is not
settled. They claim no more than ranks and intervals do."""

from __future__ import annotations

from collections.abc import Sequence

from parley.results.part import Style
from parley.results.parts.results import order_scores
from parley.results.result import RunResult
from parley.results.types import ScoreRow
from parley.statistics.estimates import PairedDifference, Rank
from parley.tables import format_interval, format_number, plural

FEW = 3  # models or pairs that a sentence names; more are counted


def write_headline(result: RunResult) -> list[str]:
    """One to three sentences for each role, by the metric that the role is ranked by."""
    style, rows = result.style, result.part("results") or ()
    pairs, ranks = result.part("pairs") or (), result.head.ranks
    roles = list(dict.fromkeys(row.role for row in rows))
    if not any(row.mean is not None for row in rows):
        return ["No match has a score yet, so there is no result."]
    found = describe_state(result)
    for role in roles:
        metric = style.leading.get(role) or next(row.metric for row in rows if row.role == role)
        lines = describe_role(
            [row for row in rows if (row.role, row.metric) == (role, metric)],
            [rank for rank in ranks if (rank.role, rank.metric) == (role, metric)],
            [pair for pair in pairs if (pair.role, pair.metric) == (role, metric)],
            style,
        )
        if len(roles) > 1 and lines:
            lines = [f"As {role}: {lines[0]}", *lines[1:]]
        found += lines
    return found


def describe_state(result: RunResult) -> list[str]:
    """Whether the result is partial."""
    counts = result.head.run.matches
    if result.state == "done":
        return []
    if counts.planned is None or result.style.sequential:
        return [f"This result is partial: {plural(counts.done, 'match', 'matches')} ended so far."]
    planned = plural(counts.planned, "match", "matches")
    return [f"This result is partial: {counts.done:,} of {planned} ended."]


def describe_role(
    rows: Sequence[ScoreRow],
    ranks: Sequence[Rank],
    pairs: Sequence[PairedDifference],
    style: Style,
) -> list[str]:
    """Who leads in a role, by how much, and which models cannot be told apart."""
    scored = [row for row in rows if row.mean is not None]
    missing = [row.alias for row in rows if row.mean is None]
    lines = []
    if len(scored) == 1:
        alone = (
            "No other model has a score" if missing else "There is no other model to compare with"
        )
        lines.append(f"{describe_score(scored[0], style)}. {alone}.")
        return lines
    if scored:
        first = [rank.alias for rank in ranks if rank.low == 1]
        leaders = [row for row in order_scores(scored, style) if row.alias in first]
        apart = all(rank.high <= len(first) for rank in ranks if rank.alias in first)
        lines += describe_leaders(leaders, scored, pairs, apart, style)
        lines += describe_unsettled(first, scored, ranks, style)
    if missing:
        lines.append(f"{join_words(missing)} {'has' if len(missing) == 1 else 'have'} no score.")
    return lines


def describe_leaders(
    leaders: Sequence[ScoreRow],
    scored: Sequence[ScoreRow],
    pairs: Sequence[PairedDifference],
    apart: bool,
    style: Style,
) -> list[str]:
    """The sentence on the first place. `apart`: the leaders are significantly better than all other
    models."""
    if len(leaders) == len(scored):
        names = join_words([row.alias for row in leaders])
        which = names if len(leaders) <= FEW else f"The {len(leaders)} models"
        return [f"{which} cannot be told apart after {describe_sample(scored)}."]
    if len(leaders) > 1:
        names = join_words([row.alias for row in leaders])
        which = names if len(leaders) <= FEW else f"{len(leaders)} of {len(scored)} models"
        if apart:
            return [f"{which} lead and cannot be told apart after {describe_sample(scored)}."]
        return [
            f"{which} may be first and cannot be told apart after {describe_sample(scored)}: no "
            "model is significantly better."
        ]
    if not leaders:  # pairs contradict each other
        return ["The data do not show which model is first."]
    leader = leaders[0]
    others = [row for row in order_scores(scored, style) if row.alias != leader.alias]
    step = describe_lead(leader, others[0], pairs, style)
    return [f"{leader.alias} is first with {describe_mean(leader, style)}{step}."]


def describe_lead(
    leader: ScoreRow, second: ScoreRow, pairs: Sequence[PairedDifference], style: Style
) -> str:
    """By how much the first model leads the next best mean; empty if the interval of the difference
    shows no lead."""
    found = [pair for pair in pairs if {pair.a, pair.b} == {leader.alias, second.alias}]
    if not found:
        return ""
    pair, digits = found[0], style.digits_of(leader.metric)
    low, high = (pair.low, pair.high) if pair.difference >= 0 else negate(pair.high, pair.low)
    if low is None and not style.exact:
        return ""
    if low is not None and low <= 0:
        return ""
    word = "less" if leader.metric in style.lower_is_better else "more"
    ends = f" ({format_interval(low, high, digits)})" if low is not None else ""
    return f", {format_number(abs(pair.difference), digits)} {word} than {second.alias}{ends}"


def describe_unsettled(
    first: Sequence[str], scored: Sequence[ScoreRow], ranks: Sequence[Rank], style: Style
) -> list[str]:
    """The models behind the first place whose order is not settled."""
    behind = {rank.alias: rank for rank in ranks if rank.alias not in first}
    open_rows = [
        row
        for row in order_scores(scored, style)
        if row.alias in behind and behind[row.alias].low < behind[row.alias].high
    ]
    if not open_rows:
        return []
    names = [row.alias for row in open_rows]
    if len(names) == 1:
        return [f"The place of {names[0]} is not settled."]
    if len(names) == 2:
        return [f"{join_words(names)} cannot be told apart."]
    which = join_words(names) if len(names) <= FEW else f"{len(names)} other models"
    return [f"The order of {which} is not settled."]


def describe_score(row: ScoreRow, style: Style) -> str:
    played = plural(row.matches, "match", "matches")
    return f"{row.alias} scored {describe_mean(row, style)} in {played}"


def describe_mean(row: ScoreRow, style: Style) -> str:
    """A mean with its unit and interval; a metric without a unit has its name."""
    digits = style.digits_of(row.metric)
    unit = f" {row.unit}" if row.unit else ""
    lower = ", lower is better" if row.metric in style.lower_is_better else ""
    number = f"{format_number(row.mean, digits)}{unit}"
    if not row.unit:
        number = f"{row.metric} {number}"
    if row.low is None:
        exact = "exact for these prompts" if style.exact else "no interval"
        return f"{number} ({exact}{lower})"
    return f"{number} ({style.level} interval {format_interval(row.low, row.high, digits)}{lower})"


def describe_sample(scored: Sequence[ScoreRow]) -> str:
    """How many matches the models played: a number, or a range."""
    counts = sorted(row.matches for row in scored)
    if counts[0] == counts[-1]:
        return plural(counts[0], "match", "matches") + " each"
    return f"{counts[0]:,} to {counts[-1]:,} matches each"


def negate(*values: float | None) -> tuple[float | None, ...]:
    return tuple(None if value is None else -value for value in values)


def join_words(words: Sequence[str]) -> str:
    """A list as a sentence has it: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
