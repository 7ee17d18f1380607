"""Draws docs/pictures/demo.svg from what `parley demo` really finds: python
docs/pictures/make.py"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTH, LEFT, RIGHT, TOP, ROW = 760, 130, 150, 64, 36
INK, SOFT, LINE, MARK = "#24292f", "#57606a", "#d0d7de", "#0969da"


def result() -> dict:
    """The demo, played."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "parley",
            "demo",
            "--bots-only",
            "--json",
            "--store",
            folder,
        ]
        return json.loads(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
        )


def text(
    x: float,
    y: float,
    words: str,
    colour: str = INK,
    anchor: str = "start",
    size: int = 14,
    weight: str = "normal",
) -> str:
    style = (
        f'font-family="Helvetica, Arial, sans-serif" font-size="{size}" '
        f'font-weight="{weight}" fill="{colour}"'
    )
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {style}>{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"/>'
    )


def picture(data: dict) -> str:
    """One row a model, the best on top: mean, 95% interval, and both in figures."""
    rows = sorted(data["results"], key=lambda row: -row["mean"])
    height = TOP + ROW * len(rows) + 44
    low, high = 20, 90

    def at(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    first = rows[0]
    parts = [
        text(16, 26, "Public goods game: what each strategy earns", size=16, weight="bold"),
        text(
            16,
            46,
            f"mean payoff in coins with 95% interval, {first['blocks']} matches of five players",
            SOFT,
            size=13,
        ),
    ]
    for tick in range(low, high + 1, 10):
        parts.append(line(at(tick), TOP, at(tick), TOP + ROW * len(rows), LINE))
        parts.append(text(at(tick), TOP + ROW * len(rows) + 18, str(tick), SOFT, "middle", 12))
    for number, row in enumerate(rows):
        y = TOP + ROW * (number + 0.5)
        parts.append(text(LEFT - 14, y + 5, row["alias"], anchor="end"))
        parts.append(line(at(row["low"]), y, at(row["high"]), y, MARK, 2.5))
        parts += [
            line(at(row[end]), y - 6, at(row[end]), y + 6, MARK, 2.5) for end in ("low", "high")
        ]
        parts.append(f'<circle cx="{at(row["mean"]):.1f}" cy="{y:.1f}" r="5" fill="{MARK}"/>')
        parts.append(
            text(
                WIDTH - 16,
                y + 5,
                f"{row['mean']:.1f}  ({row['low']:.1f} to {row['high']:.1f})",
                SOFT,
                "end",
                13,
            )
        )
    parts.append(text(16, height - 8, first["signature"], SOFT, size=7))
    body = "\n".join(parts)
    frame = f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff" stroke="{LINE}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}">\n{frame}\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_name("demo.svg").write_text(picture(result()), encoding="utf-8")
