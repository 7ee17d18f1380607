"""Attention of one new token a conversation, on a GPU, read from the pages where they are."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from parley.providers.hf.paged_cache import PAGE


@triton.jit  # type: ignore[untyped-decorator]
def attend_kernel(  # type: ignore[no-untyped-def]
    query, keys, values, out, table, lengths, scale,
    query_row, query_head, page_size, head_size, out_row, out_head, table_row,
    GROUP: tl.constexpr, PADDED: tl.constexpr, WIDTH: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """One program for each row and head of keys; `GROUP` heads of queries share it."""
    row = tl.program_id(0)
    head = tl.program_id(1)
    length = tl.load(lengths + row)
    group = tl.arange(0, PADDED)
    width = tl.arange(0, WIDTH)
    place = tl.arange(0, PAGE)
    own = group < GROUP
    queries = query + row * query_row + (head * GROUP + group)[:, None] * query_head
    asked = tl.load(queries + width[None, :], mask=own[:, None], other=0.0)
    largest = tl.full([PADDED], float("-inf"), tl.float32)
    total = tl.zeros([PADDED], tl.float32)
    sums = tl.zeros([PADDED, WIDTH], tl.float32)
    for start in range(0, length, PAGE):
        page = tl.load(table + row * table_row + start // PAGE)
        base = page.to(tl.int64) * page_size + head * head_size
        known = start + place < length
        key = tl.load(
            keys + base + place[None, :] * WIDTH + width[:, None], mask=known[None, :], other=0.0
        )
        score = tl.dot(asked, key) * scale
        score = tl.where(known[None, :], score, float("-inf"))
        higher = tl.maximum(largest, tl.max(score, 1))
        share = tl.exp(score - higher[:, None])
        fade = tl.exp(largest - higher)
        total = total * fade + tl.sum(share, 1)
        value = tl.load(
            values + base + place[:, None] * WIDTH + width[None, :], mask=known[:, None], other=0.0
        )
        sums = sums * fade[:, None] + tl.dot(share.to(value.dtype), value)
        largest = higher
    places = out + row * out_row + (head * GROUP + group)[:, None] * out_head + width[None, :]
    tl.store(places, (sums / total[:, None]).to(asked.dtype), mask=own[:, None])


def attend_from_pages(
    query: Any, keys: Any, values: Any, table: Any, lengths: Any, scale: float
) -> Any:
    """Rows × 1 × heads × width, from queries that are rows × heads × 1 × width."""
    rows, heads, _, width = query.shape
    kept = keys.shape[1]
    group = heads // kept
    out = query.new_empty(rows, 1, heads, width)
    attend_kernel[(rows, kept)](
        query, keys, values, out, table, lengths, scale,
        query.stride(0), query.stride(1), keys.stride(0), keys.stride(1), out.stride(0),
        out.stride(2), table.stride(0),
        GROUP=group, PADDED=max(16, triton.next_power_of_2(group)), WIDTH=width, PAGE=PAGE,
    )  # fmt: skip
    return out
