"""Figures of every kind, for tests of drawings."""

from parley.results.types import (
    Bar,
    Bars,
    Box,
    Boxes,
    Dot,
    HeatMap,
    Intervals,
    Lines,
    Point,
    Scatter,
    Series,
)

HOSTILE = "</svg></title><script>alert(1)</script><style>*{}</style>\u202e'\"&"
LONG = "a-model-whose-name-has-about-sixty-characters-and-ends-with-x"
NAMES = {
    "one": ["a"],
    "sixteen": [f"model {number}" for number in range(16)],
    "long": [f"{LONG}{end}" for end in "yz"],
    "Chinese and Arabic": [
        "一个名字非常长的语言模型一个名字非常长的语言模型",
        "نموذج لغوي كبير جدا",
        "b",
    ],
}


def make_figures(names, value=lambda place: float(place)):
    """A figure of every kind about these models."""
    high = [value(place) + 1 for place in range(len(names))]
    low = [value(place) - 1 for place in range(len(names))]
    rows = list(enumerate(names))
    lines = tuple(
        Series(name, (1, 2, 3), (value(n), None, high[n]), (low[n],) * 3, (high[n],) * 3)
        for n, name in rows
    )
    marks = [("better", "worse", "even", "")[place % 4] for place, _ in rows]
    fields = {"rows": tuple(names), "values": ((0.5, None),) * len(names)}
    return [
        Intervals(
            "t", "alt", "coins", tuple(Point(name, value(n), low[n], high[n]) for n, name in rows)
        ),
        Intervals(
            "t", "alt", "coins",
            tuple(
                Point(
                    name, value(n), low[n], high[n],
                    model=name, mark="†", rank="1–16", detail=f"provider/{name}",
                    cells=(f"{low[n]} to {high[n]}*", "1,200"),
                )
                for n, name in rows
            ),
            2, "mean", ("95% interval", "matches"), f"What is measured of {names[0]} and others",
        ),
        Intervals(
            "t", "alt", "coins",
            tuple(
                Point(name, value(n), group=group, model=name)
                for n, name in rows for group in ("before", "after")
            ),
        ),
        Intervals(
            "t", "alt", f"the unit of {LONG}",
            tuple(Point(name, value(n), cells=(LONG, f"{LONG}-")) for n, name in rows),
            columns=("long words", f"a heading of {LONG}"),
        ),
        Bars("t", "alt", "n", tuple(Bar(name, {"won": 3, "lost": 2}, "5 of 10") for name in names)),
        Bars("t", "alt", "n", tuple(Bar(name, {"x": 0.4}, "±0.3, not yet") for name in names), 1.0),
        Boxes(
            "t", "alt", "coins",
            tuple(Box(name, low[n], value(n), value(n), high[n], high[n], 9) for n, name in rows),
        ),
        Lines("t", "alt", "round", "coins", lines, 0.5, "target: 0.5"),
        Lines("t", "alt", "round", "coins", lines[:2]),
        Scatter(
            "t", "alt", "accuracy", "score",
            tuple(Dot(name, value(n), high[n], "look", "", low[n], high[n]) for n, name in rows),
            Series("fit", (0, 60), (0, 30), (0, 20), (5, 40)),
        ),
        HeatMap(
            "t", "alt", "x", **fields, columns=("easy", "hard to say"),
            low=((0.4, None),) * len(names), high=((0.6, None),) * len(names),
            row_label="model", column_label="topic",
        ),
        HeatMap(
            "t", "alt", "x", tuple(names), tuple(names), (tuple(low),) * len(names),
            marks=(tuple(marks),) * len(names), caption="Players, payoff: row minus column",
        ),
    ]  # fmt: skip
