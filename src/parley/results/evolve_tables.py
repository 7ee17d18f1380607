"""Tables, sentences and figures of an `evolve` run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from parley.memory.feedback import LESSON_WORDS
from parley.money import format_usd
from parley.results.evolve_plays import NEAR, PlayOwner
from parley.results.parts.evolve import (
    EvolveGain,
    EvolveResult,
    EvolveStage,
    GainKind,
    ItemSet,
    StageCost,
    StreamRow,
)
from parley.results.run_facts import NAMED
from parley.results.types import Figure, Intervals, Lines, Point, Series
from parley.statistics.paired_gain import Gain, ItemShare
from parley.tables import Table, format_interval, format_number, format_signed, plural

DIGITS = 3
WINDOWS = 12  # of a stream that a table shows


def draw_tables(found: EvolveResult) -> list[Table]:
    """The main table with its findings, then the details."""
    tables = [
        main_table(found),
        stream_table(found),
        other_arms_table(found),
        gain_table(found),
        counting_table(found),
        series_table(found),
        shown_table(found),
        feedback_table(found),
        lesson_table(found),
        subject_table(found),
        cost_table(found),
    ]
    return [table for table in tables if table is not None and table.rows]


def find_gain(
    found: EvolveResult,
    owner: PlayOwner,
    arm: str,
    kind: GainKind = "last",
    item_set: ItemSet = "all",
    measure: str = "success",
) -> EvolveGain | None:
    """One of the gains."""
    wanted = (*owner, arm, measure, kind, item_set)
    return next(
        (
            row
            for row in found.gains
            if (row.alias, row.role, row.arm, row.measure, row.kind, row.item_set) == wanted
        ),
        None,
    )


def list_owners(found: EvolveResult) -> list[PlayOwner]:
    """Every model in every role that is scored."""
    return list(dict.fromkeys(PlayOwner(row.alias, row.role) for row in found.stages))


def has_several_roles(found: EvolveResult) -> bool:
    """Whether rows must name the role."""
    return len({row.role for row in found.stages}) > 1


def owner_columns(found: EvolveResult, owner: PlayOwner) -> list[str]:
    """The first columns of a row."""
    return [owner.alias, owner.role] if has_several_roles(found) else [owner.alias]


def owner_headers(found: EvolveResult) -> list[str]:
    return ["model", "role"] if has_several_roles(found) else ["model"]


def stages_of_arm(found: EvolveResult, owner: PlayOwner, arm: str) -> dict[int, EvolveStage]:
    """The stages of one model in one arm, by number, without the probe."""
    return {
        row.stage: row
        for row in found.stages
        if (row.alias, row.role, row.arm) == (*owner, arm) and not row.probe
    }


def stream_arms(found: EvolveResult) -> set[str]:
    """The arms that play their items as a stream."""
    return {each.arm for each in found.arms if each.window is not None}


def arms_in_stages(found: EvolveResult) -> list[str]:
    """The arms that play all items in each stage."""
    streams = stream_arms(found)
    return [each.arm for each in found.arms if each.arm not in streams]


def format_gain(gain: Gain | None) -> str:
    """A gain with its interval, in one cell."""
    if gain is None or gain.value is None:
        return "–"
    ends = format_interval(gain.low, gain.high, DIGITS)
    return f"{format_signed(gain.value, DIGITS)} ({ends})"


def format_item_share(share: ItemShare) -> str:
    """A share with its interval, in one cell."""
    if share.value is None:
        return "–"
    ends = format_interval(share.low, share.high, DIGITS)
    return f"{format_number(share.value, DIGITS)} ({ends})"


def format_flips(gain: Gain | None) -> str:
    """How many were gained and lost, in one cell."""
    return "–" if gain is None or not gain.items else f"{gain.gained}/{gain.lost}"


def main_table(found: EvolveResult) -> Table | None:
    """Success by stage, and the gain of the last stage with the same item shown and masked."""
    arms = arms_in_stages(found)
    masked = {each.arm for each in found.arms if each.mask}
    numbers = sorted({row.stage for row in found.stages if row.arm in arms and row.stage > 0})
    rows = []
    for owner in list_owners(found):
        for arm in arms:
            stages = stages_of_arm(found, owner, arm)
            if not stages:
                continue
            last = find_gain(found, owner, arm)
            probe = last if arm in masked else find_gain(found, owner, arm, "probe")
            gain = last.gain if last else None
            rows.append(
                [
                    *owner_columns(found, owner),
                    arm,
                    *(
                        format_number(stages[number].success.value, DIGITS)
                        if number in stages
                        else "–"
                        for number in [0, *numbers]
                    ),
                    format_gain(gain),
                    format_gain(probe.gain if probe else None),
                    format_flips(gain),
                    str(gain.items if gain else stages[0].success.items),
                ]
            )
    if not rows:
        return None
    names = owner_headers(found)
    header = [
        *names,
        "arm",
        "standard",
        *(f"stage {number}" for number in numbers),
        "gain",
        "gain, same item masked",
        "gained/lost",
        "items",
    ]
    several = any(row.gain.series for row in found.gains)
    of_what = "plays (a play is one item in one series)" if several else "items"
    notes = [
        *describe_findings(found),
        "`standard` and `stage N` are shares of successes "
        f"({'; '.join(describe_criteria(found))}); `gain` is the last stage minus the standard "
        "stage, with a paired 95% interval over items that holds for this memory only; "
        f"`gained/lost` counts {of_what} that changed from failure to success, and from success "
        "to failure",
        *describe_missing(found),
    ]
    return Table(header, rows, left=len(names) + 1, note="\n".join(notes))


def describe_criteria(found: EvolveResult) -> list[str]:
    """The success criterion, by role if roles have different ones."""
    by_role = dict.fromkeys((row.role, row.criterion) for row in found.stages)
    several = len({criterion for _, criterion in by_role}) > 1
    return list(dict.fromkeys(f"{role}: {said}" if several else said for role, said in by_role))


def describe_missing(found: EvolveResult) -> list[str]:
    """A line on plays without a score, if there are any."""
    lines = []
    for row in found.gains:
        headline = (row.measure, row.kind, row.item_set) == ("success", "last", "all")
        if headline and row.gain.unpaired:
            plays = plural(row.gain.unpaired, "play")
            lines.append(
                f"{row.alias}, {row.role}, {row.arm}: {plays} left out of the gain, because the "
                "score of one of the two stages is missing"
            )
    return lines


def describe_findings(found: EvolveResult) -> list[str]:
    """The findings on the first arm, one line for each model. A line claims no more than its
    intervals show."""
    lines = []
    for owner in list_owners(found):
        last = find_gain(found, owner, found.first)
        if last is None or last.gain.value is None:
            continue
        who = f"{owner.alias}, {owner.role}" if has_several_roles(found) else owner.alias
        said = [describe_gain(last, found.first in stream_arms(found))]
        probe = find_gain(found, owner, found.first, "probe")
        if probe is not None and probe.gain.low is not None:
            said.append(describe_probe(probe.gain))
        said += describe_controls(found, owner)
        lines.append(f"{who}: {'; '.join(said)}.")
    return lines


def summarise_gains(found: EvolveResult) -> str:
    """The gain of every model in the first arm, in one line, and where to see more."""
    said = []
    for owner in list_owners(found):
        last = find_gain(found, owner, found.first)
        if last is not None and last.gain.value is not None:
            who = f"{owner.alias} as {owner.role}" if has_several_roles(found) else owner.alias
            said.append(f"{who} {format_gain(last.gain)}")
    more = "`parley show RUN --part evolve` shows all stages, controls and costs"
    if not said:
        return more
    named = [*said[:NAMED], *(["and others"] if len(said) > NAMED else [])]
    gains = ", ".join(named)
    return f"gain over the standard stage, which has no memory, with 95% interval: {gains}; {more}"


def describe_gain(row: EvolveGain, stream: bool) -> str:
    """The gain of an arm in words."""
    gain = row.gain
    where = "" if stream else f" in stage {row.stage}"
    what = (
        f"{format_gain(gain)}{where} ({gain.gained} gained and {gain.lost} lost, of "
        f"{plural(gain.items, 'item')})"
    )
    if gain.low is None or gain.high is None:
        return f"too few items to test the gain of arm {row.arm}, which is {what}"
    if gain.low > 0:
        return f"arm {row.arm} is significantly better than the standard stage, by {what}"
    if gain.high < 0:
        return f"arm {row.arm} is significantly worse than the standard stage, by {what}"
    return f"arm {row.arm} does not differ significantly from the standard stage: {what}"


def describe_probe(gain: Gain) -> str:
    """The gain that remains without experiences of the same item."""
    shown = gain.low is not None and gain.low > 0
    return (
        "with experiences of the same item masked, the gain is "
        f"{format_gain(gain)}{'' if shown else ', which is not significant'}"
    )


def describe_controls(found: EvolveResult, owner: PlayOwner) -> list[str]:
    """Which controls the gain of the first arm significantly exceeds, and which it does not."""
    rows = [row for row in found.differences if (row.alias, row.role) == owner and row.control]
    if not rows:
        return []
    exceeded = [row for row in rows if row.difference.low is not None and row.difference.low > 0]
    others = [row for row in rows if row not in exceeded]
    said = []
    if exceeded:
        which = f"all {len(rows)} controls" if len(exceeded) == len(rows) > 1 else "the control"
        listed = ", ".join(f"{row.other} by {format_gain(row.difference)}" for row in exceeded)
        whole = f"{which}: " if not others else ""
        said.append(f"the gain is significantly larger than that of {whole}{listed}")
    if others:
        listed = ", ".join(f"{row.other}: {format_gain(row.difference)}" for row in others)
        said.append(f"the gain is not significantly larger than that of {listed}")
    return said


def other_arms_table(found: EvolveResult) -> Table | None:
    """The gain of the first arm compared with those of the other arms."""
    rows = []
    for each in found.differences:
        owner = PlayOwner(each.alias, each.role)
        other = find_gain(found, owner, each.other)
        rows.append(
            [
                *owner_columns(found, owner),
                f"{each.other} (control)" if each.control else each.other,
                format_gain(other.gain if other else None),
                format_gain(each.difference),
                format_flips(each.difference),
                str(each.difference.items),
            ]
        )
    names = owner_headers(found)
    header = [
        *names,
        "arm",
        "gain of this arm",
        f"{found.first} minus this arm",
        "better/worse",
        "items",
    ]
    controls = {each.other for each in found.differences if each.control}
    meaning = {
        "unchanged": "`unchanged` shows the task's own examples again, without memory, so any "
        "gain of it is chance",
        "masked": "`masked` never shows experiences of the same item",
        "random": "`random` shows randomly drawn successes",
    }
    notes = [
        "differences between gains are paired by item; all arms share the same standard stage",
        *(said for name, said in meaning.items() if name in controls),
    ]
    title = f"Other arms compared with {found.first}"
    return Table(header, rows, left=len(names) + 1, note="; ".join(notes), title=title)


def gain_table(found: EvolveResult) -> Table | None:
    """All kinds of gains, on all items and on subsets, and the forgotten share."""
    rows = []
    keys = dict.fromkeys(
        (PlayOwner(row.alias, row.role), row.arm, row.measure, row.item_set) for row in found.gains
    )
    streams = stream_arms(found)
    measures = {measure for _, _, measure, _ in keys}
    sets = {item_set for _, _, _, item_set in keys}
    forgotten = {(row.alias, row.role, row.arm): row for row in found.forgotten}
    for owner, arm, measure, item_set in keys:
        if arm in streams:
            continue
        last, best, mean, probe = (
            find_gain(found, owner, arm, kind, item_set, measure)
            for kind in ("last", "best", "mean", "probe")
        )
        lost = forgotten.get((*owner, arm)) if (measure, item_set) == ("success", "all") else None
        rows.append(
            [
                *owner_columns(found, owner),
                arm,
                *([measure] if len(measures) > 1 else []),
                *([item_set.replace("_", " ")] if len(sets) > 1 else []),
                format_gain(last.gain if last else None),
                f"{format_gain(best.gain)} in {best.stage}" if best else "–",
                format_gain(mean.gain if mean else None),
                format_gain(probe.gain if probe else None),
                "–"
                if lost is None
                else f"{format_item_share(lost.share)}, {lost.forgotten} of {lost.solved_before}",
                str(last.gain.items if last else 0),
            ]
        )
    names = [
        *owner_headers(found),
        "arm",
        *(["measure"] if len(measures) > 1 else []),
        *(["items"] if len(sets) > 1 else []),
    ]
    header = [
        *names,
        "last stage",
        "best stage*",
        "mean of stages",
        "last, masked",
        "forgotten",
        "n",
    ]
    note = (
        "gains over the standard stage, with paired 95% intervals over items; * the best stage "
        "is chosen after the fact, so its gain is biased upwards; `mean of stages` is the area "
        "under the learning curve; `forgotten` is the share of items that were solved in an "
        "earlier stage and failed in the last stage"
    )
    if any(row.gain.series for row in found.gains):
        note += (
            ", as a mean over items; counts are counts of plays (a play is one item in one series)"
        )
    if len(sets) > 1:
        note += "; held-out items are played, but never stored in the memory"
    return Table(header, rows, left=len(names), note=note, title="Gains")


def counting_table(found: EvolveResult) -> Table | None:
    """Both ways of counting: success in each stage, and in at least one stage so far."""
    arms = arms_in_stages(found)
    facts = {each.arm: each for each in found.arms}
    numbers = sorted({row.stage for row in found.stages if row.arm in arms and row.stage > 0})
    rows = []
    for owner in list_owners(found):
        for arm in arms:
            stages = stages_of_arm(found, owner, arm)
            if not stages.keys() - {0}:
                continue
            so_far = [stages[n].solved_so_far.value if n in stages else None for n in numbers]
            gain = find_gain(found, owner, arm, "solved_so_far")
            rows.append(
                [
                    *owner_columns(found, owner),
                    arm,
                    facts[arm].retriever + (", masked" if facts[arm].mask else ""),
                    facts[arm].feedback,
                    *(
                        format_item_share(stages[n].success) if n in stages else "–"
                        for n in numbers
                    ),
                    *(format_number(value, DIGITS) for value in so_far),
                    format_gain(gain.gain if gain else None),
                ]
            )
    names = [*owner_headers(found), "arm", "retriever", "feedback"]
    header = [
        *names,
        *(f"stage {n}" for n in numbers),
        *(f"any to {n}" for n in numbers),
        "gain of any",
    ]
    note = (
        "`stage N` is the share of items solved in stage N, with its 95% interval; `any to N` "
        "is the share solved in at least one stage up to N, including the standard stage (the "
        "first stage, without memory). More tries alone raise `any to N`, even if the model "
        "does not improve"
    )
    title = "Success by stage, and solved so far"
    return Table(header, rows, left=len(names), note=note, title=title)


def series_table(found: EvolveResult) -> Table | None:
    """How much gains differ between series, each with a memory of its own."""
    rows, streams = [], stream_arms(found)
    for row in found.gains:
        series = row.gain.series
        if row.measure != "success" or row.item_set != "all" or len(series) < 2:
            continue
        if row.kind not in ("last", "probe"):
            continue
        rows.append(
            [
                *owner_columns(found, PlayOwner(row.alias, row.role)),
                row.arm,
                "masked"
                if row.kind == "probe"
                else "stream"
                if row.arm in streams
                else "last stage",
                format_signed(fmean(series), DIGITS),
                format_number(stdev(series), DIGITS),
                f"{format_signed(min(series), DIGITS)} to {format_signed(max(series), DIGITS)}",
                str(len(series)),
            ]
        )
    names = [*owner_headers(found), "arm", "gain"]
    header = [*names, "mean", "sd", "lowest to highest", "series"]
    note = (
        "each series has its own memory; the intervals over items do not include the spread "
        "between series"
    )
    return Table(header, rows, left=len(names), note=note, title="Gains by series")


def shown_table(found: EvolveResult) -> Table | None:
    """The experiences that seats were shown in each stage."""
    streams = stream_arms(found)
    rows = [
        [
            *owner_columns(found, PlayOwner(row.alias, row.role)),
            row.arm,
            "stream" if row.arm in streams else describe_stage(row.stage, row.probe),
            format_number(row.experiences, 1),
            format_item_share(row.same_item),
            format_item_share(row.near_duplicates),
            str(row.dropped),
        ]
        for row in found.stages
        if row.experiences
    ]
    names = [*owner_headers(found), "arm", "stage"]
    header = [*names, "shown", "same item", "near duplicates", "dropped"]
    note = (
        "`shown` is the mean number of experiences shown before a question. `same item` and "
        "`near duplicates` are shares of these experiences, with 95% intervals over items. A "
        f"near duplicate is a different item within an L2 distance of {NEAR:g}; it is counted "
        "only for the retriever minilm, whose embeddings have unit length. `dropped` experiences "
        "were retrieved, but did not fit into the prompt"
    )
    return Table(header, rows, left=len(names), note=note, title="Experiences shown")


def feedback_table(found: EvolveResult) -> Table | None:
    """Precision and recall of feedback that is not the truth itself."""
    rows = [
        [
            *owner_columns(found, PlayOwner(row.alias, row.role)),
            row.arm,
            row.feedback,
            format_item_share(row.precision),
            format_item_share(row.recall),
            f"{row.kept:,}",
            f"{row.right:,}",
            f"{row.unreadable:,}",
            f"{row.verdicts:,}",
        ]
        for row in found.feedback
        if row.feedback != "truth"
    ]
    names = [*owner_headers(found), "arm", "feedback"]
    header = [*names, "precision", "recall", "kept", "right", "no verdict", "cases"]
    note = (
        "`precision` is the share of kept plays that succeed by the task's own score, and "
        "`recall` is the share of successful plays that were kept. Both are means over items "
        "with 95% intervals; the other columns count plays, so ratios of these counts can "
        "differ. `no verdict` means that the critic's reply could not be read, or that people "
        "did not agree"
    )
    return Table(header, rows, left=len(names), note=note, title="Feedback")


def lesson_table(found: EvolveResult) -> Table:
    """How many lessons players wrote."""
    rows = [
        [
            *owner_columns(found, PlayOwner(row.alias, row.role)),
            f"{row.matches:,}",
            f"{row.written:,}",
            f"{row.cut:,}",
        ]
        for row in found.lessons
    ]
    names = owner_headers(found)
    note = (
        "`matches` counts the matches after which a lesson was requested, in all stages; `cut` "
        f"counts lessons that were longer than {LESSON_WORDS} words and were shortened to that "
        "length"
    )
    header = [*names, "matches", "lessons", "cut"]
    return Table(header, rows, left=len(names), note=note, title="Lessons")


def subject_table(found: EvolveResult) -> Table | None:
    """The gain of the first arm by subject, a column for each model."""
    rows = [row for row in found.subjects if row.arm == found.first]
    owners = list(dict.fromkeys(PlayOwner(row.alias, row.role) for row in rows))
    cells = {(row.alias, row.role, row.subject): row for row in rows}
    several = has_several_roles(found)
    lines = []
    for subject in dict.fromkeys(row.subject for row in rows):
        line = ["mean over subjects" if subject == "*" else subject]
        for owner in owners:
            row = cells.get((*owner, subject))
            line += [
                "–"
                if row is None
                else f"{format_number(row.standard, DIGITS)} → {format_number(row.last, DIGITS)}",
                "–" if row is None else f"{format_gain(row.gain)}; {row.gain.items}",
            ]
        lines.append(line)
    header = ["subject"]
    for owner in owners:
        who = f"{owner.alias}, {owner.role}" if several else owner.alias
        header += [who, f"{who}: gain; n"]
    note = (
        f"arm {found.first}: success in the standard stage → in the last stage, and the gain "
        "with its paired 95% interval over items; the last row gives all subjects equal "
        "weight, while the first table gives all items equal weight"
    )
    return Table(header, lines, left=1, note=note, title="By subject")


def cost_table(found: EvolveResult) -> Table | None:
    """Tokens and money by stage; None if no tokens were counted."""
    if not any(row.tokens_in is not None or row.usd for row in found.costs):
        return None
    streams = stream_arms(found)
    rows = [
        [
            row.alias,
            row.role,
            row.arm or "(all)",
            "stream" if row.arm in streams else describe_stage(row.stage, row.probe),
            f"{row.calls:,}",
            "–" if row.tokens_in is None else f"{row.tokens_in:,}",
            "–" if row.cached_share is None else f"{row.cached_share:.0%}",
            "–" if row.tokens_out is None else f"{row.tokens_out:,}",
            format_cost(row),
        ]
        for row in found.costs
    ]
    header = [
        "model",
        "role",
        "arm",
        "stage",
        "calls",
        "tokens in",
        "cached",
        "tokens out",
        "usd",
    ]
    lines = [
        "`cached` is the share of input tokens read from a cache; ≥ means that some "
        "prices are unknown"
    ]
    for each in found.gain_costs:
        if each.usd_per_item:
            high = each.usd_per_item_high
            ends = (
                f"{format_usd(each.usd_per_item_low)} to {format_usd(high)}"
                if each.usd_per_item_low is not None and high is not None
                else "without an upper limit, because the interval of the gain includes zero"
            )
            lines.append(
                f"{each.alias}, {each.role}, {each.arm}: {format_usd(each.usd_per_item)} USD "
                f"({ends}) per item gained, net of items lost; the cost of the standard stage, "
                "of the masked probe and of critics is not included"
            )
    return Table(header, rows, left=4, note="\n".join(lines), title="Cost by stage")


def describe_stage(number: int, probe: bool) -> str:
    """A stage in a table that has the probe as well."""
    return f"{number}, masked" if probe else str(number) if number else "standard"


def format_cost(row: StageCost) -> str:
    """The cost in USD, or a lower bound."""
    if row.usd is not None:
        return format_usd(row.usd)
    return "–" if row.usd_at_least is None else f"≥ {format_usd(row.usd_at_least)}"


def stream_table(found: EvolveResult) -> Table | None:
    """Streams after some of their windows, and their regret at the end."""
    rows = []
    for owner, arm in dict.fromkeys(
        (PlayOwner(row.alias, row.role), row.arm) for row in found.streams
    ):
        own = [row for row in found.streams if (row.alias, row.role, row.arm) == (*owner, arm)]
        for row in choose_evenly(own, WINDOWS):
            end = find_regret(found, owner, arm) if row is own[-1] else None
            gain = find_gain(found, owner, arm) if row is own[-1] else None
            rows.append(
                [
                    *owner_columns(found, owner),
                    arm,
                    str(row.window),
                    f"{row.items:,}",
                    format_number(row.stream, DIGITS),
                    format_number(row.control, DIGITS),
                    end or format_signed(row.regret, 1),
                    format_gain(gain.gain if gain else None),
                    format_flips(gain.gain if gain else None),
                ]
            )
    names = [*owner_headers(found), "arm"]
    header = [
        *names,
        "window",
        "items so far",
        "stream so far",
        "control so far",
        "regret",
        "gain",
        "gained/lost",
    ]
    notes = [] if arms_in_stages(found) else describe_findings(found)
    notes.append(
        "every item is played once, and the memory is updated after each window; `control` is "
        "the same items in the standard stage; `regret` sums control − stream over the items "
        "so far, so a negative regret means that the stream did better; the last regret has a "
        "95% interval over items, which holds for this order only"
    )
    title = "Streams" if arms_in_stages(found) else ""
    return Table(header, rows, left=len(names), note="\n".join(notes), title=title)


def find_regret(found: EvolveResult, owner: PlayOwner, arm: str) -> str:
    """The regret at the end of a stream, with its interval and its series."""
    row = next(row for row in found.regrets if (row.alias, row.role, row.arm) == (*owner, arm))
    ends = format_interval(row.low, row.high, 1)
    if row.series:
        ends += (
            f"; {plural(len(row.series), 'order')}: {min(row.series):.1f} to {max(row.series):.1f}"
        )
    return f"{format_signed(row.regret, 1)} ({ends})"


def choose_evenly(rows: Sequence[StreamRow], most: int) -> Sequence[StreamRow]:
    """At most `most` rows, evenly spread, including the first and the last."""
    if len(rows) <= most:
        return rows
    return [rows[round(at * (len(rows) - 1) / (most - 1))] for at in range(most)]


UNMASKED, MASKED = "same item in memory", "same item masked"


def draw_figures(found: EvolveResult) -> list[Figure]:
    """Learning curves, gains with the same item shown and masked, and the regret of streams."""
    figures: list[Figure] = list(learning_curves(found))
    if points := tuple(gain_points(found)):
        title = "Gain of the last stage over the standard stage"
        alt = (
            f"{title}, with paired intervals: once with experiences of the same item, and "
            "once with these masked"
        )
        figures.append(Intervals(title, alt, "gain", points))
    if series := tuple(regret_series(found)):
        title = "Regret of streams"
        alt = f"{title} by number of items so far; below zero, the stream did better"
        figures.append(Lines(title, alt, "items so far", "regret", series))
    return figures


def learning_curves(found: EvolveResult) -> Iterator[Lines]:
    """Success by stage: one figure per model with its arms, or one with all models if there is
    one arm."""
    arms = arms_in_stages(found)
    curves: dict[str, list[Series]] = {}
    for owner in list_owners(found):
        who = f"{owner.alias}, {owner.role}" if has_several_roles(found) else owner.alias
        for arm in arms:
            stages = stages_of_arm(found, owner, arm)
            if not stages.keys() - {0}:
                continue
            rows = [stages[number] for number in sorted(stages)]
            title, label = (
                ("Learning curve", who)
                if len(arms) == 1
                else (
                    f"Learning curve of {who}",
                    arm,
                )
            )
            curves.setdefault(title, []).append(
                Series(
                    label,
                    tuple(float(row.stage) for row in rows),
                    tuple(row.success.value for row in rows),
                    tuple(row.success.low for row in rows),
                    tuple(row.success.high for row in rows),
                    owner.alias if len(arms) == 1 else "",
                )
            )
    for title, series in curves.items():
        alt = f"{title}: successes by stage, with 95% intervals; stage 0 is the standard stage"
        yield Lines(title, alt, "stage", "share of successes", tuple(series), y_bounds=(0.0, 1.0))


def gain_points(found: EvolveResult) -> Iterator[Point]:
    """The last gain of each model and arm, and that of its masked probe."""
    for row in found.gains:
        if (row.measure, row.item_set) != ("success", "all") or row.kind not in ("last", "probe"):
            continue
        who = f"{row.alias}, {row.role}" if has_several_roles(found) else row.alias
        label = who if len(arms_in_stages(found)) == 1 else f"{who}: {row.arm}"
        memory = MASKED if row.kind == "probe" else UNMASKED
        gain = row.gain
        yield Point(label, gain.value, gain.low, gain.high, memory, row.alias)


def regret_series(found: EvolveResult) -> Iterator[Series]:
    """A line for each stream."""
    several = has_several_roles(found)
    for owner, arm in dict.fromkeys(
        (PlayOwner(row.alias, row.role), row.arm) for row in found.streams
    ):
        rows = [row for row in found.streams if (row.alias, row.role, row.arm) == (*owner, arm)]
        who = f"{owner.alias}, {owner.role}" if several else owner.alias
        yield Series(
            f"{who}: {arm}",
            tuple(float(row.items) for row in rows),
            tuple(row.regret for row in rows),
            model=owner.alias,
        )
