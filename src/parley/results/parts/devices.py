"""The time that devices of this machine worked for models that Parley itself runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.store.types import DeviceTime
from parley.tables import Table, plural

HOUR = 3600


@dataclass(frozen=True)
class DeviceRow:
    """A model, how it was run on a device, and the time that the device worked for it.

    `gpu_hours` is None for a CPU. `untimed_calls` are calls of the model without a known time."""

    alias: str
    device: str
    kind: Literal["gpu", "cpu"]
    engine: str
    dtype: str
    attention: str
    batch: int | None
    pool_tokens: int | None
    calls: int
    untimed_calls: int
    tokens_in: int | None
    tokens_out: int | None
    seconds: float
    gpu_hours: float | None
    tokens_in_per_second: float | None
    tokens_out_per_second: float | None


def compute_devices(run: RunScores) -> tuple[DeviceRow, ...]:
    return tuple(map(make_device_row, run.reader.usage.device_times()))


def make_device_row(used: DeviceTime) -> DeviceRow:
    """A row of the result, with the rates."""
    setup, seconds = used.setup, used.seconds

    def rate(tokens: int | None) -> float | None:
        return tokens / seconds if tokens is not None and seconds > 0 else None

    return DeviceRow(
        alias=used.alias,
        **asdict(setup),
        calls=used.calls,
        untimed_calls=used.untimed,
        tokens_in=used.tokens_in,
        tokens_out=used.tokens_out,
        seconds=seconds,
        gpu_hours=seconds / HOUR if setup.kind == "gpu" else None,
        tokens_in_per_second=rate(used.tokens_in),
        tokens_out_per_second=rate(used.tokens_out),
    )


def device_tables(found: tuple[DeviceRow, ...], style: Style) -> list[Table]:
    """The time by model and device, and how each model was run."""
    rows = [
        [
            row.alias,
            row.device,
            str(row.calls),
            f"{row.seconds:,.1f}",
            "–" if row.gpu_hours is None else f"{row.gpu_hours:.4f}",
            "–" if row.tokens_in is None else str(row.tokens_in),
            "–" if row.tokens_out is None else str(row.tokens_out),
            show_rate(row.tokens_in_per_second),
            show_rate(row.tokens_out_per_second),
        ]
        for row in found
    ]
    header = ["model", "device", "calls", "seconds busy", "GPU hours", "tokens in", "tokens out"]
    header += ["in per s", "out per s"]
    note = (
        "seconds busy: the time of forward passes, without loading and waiting; of a server that "
        "Parley started, all the time from its start until the last reply, times its GPUs. Calls "
        "that are answered together share their time, so the seconds of all models add up. "
        "Replies that are not on record do not count"
    )
    untimed = {row.alias: row.untimed_calls for row in found if row.untimed_calls}
    for alias, calls in untimed.items():
        note += f"\n{alias}: the device and the time of {plural(calls, 'more call')} are unknown"
    how = [
        [
            row.alias,
            row.device,
            row.engine,
            row.dtype or "–",
            row.attention or "–",
            "–" if row.batch is None else str(row.batch),
            "–" if row.pool_tokens is None else f"{row.pool_tokens:,}",
        ]
        for row in found
    ]
    columns = ["model", "device", "engine", "dtype", "attention", "replies at once", "pool tokens"]
    return [
        Table(header, rows, left=2, title="Device time", note=note),
        Table(columns, how, left=5, title="How models were run"),
    ]


def show_rate(tokens: float | None) -> str:
    """Tokens per second."""
    return "–" if tokens is None else f"{tokens:,.0f}" if tokens >= 10 else f"{tokens:.1f}"


PARTS = (
    Part(
        "devices",
        "Device time",
        tuple[DeviceRow, ...],
        compute_devices,
        tables=device_tables,
        section="cost",
        absent="no model of this run was run by Parley on this machine, or its time was not "
        "measured",
    ),
)
