"""Attention on a GPU that reads keys and values from the pages where they are."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from parley.providers.hf.paged_cache import PAGE

QUERIES = 64  # of one program, where a row has many new tokens


# sizes that differ between passes must not lead to another compilation
@triton.jit(do_not_specialize=["table_row"])  # type: ignore[untyped-decorator]
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


@triton.jit(do_not_specialize=["table_row", "tokens", "position_row"])  # type: ignore[untyped-decorator]
def attend_many_kernel(  # type: ignore[no-untyped-def]
    query, keys, values, out, table, positions, scale, tokens,
    query_row, query_head, query_token, page_size, head_size,
    out_row, out_token, out_head, table_row, position_row,
    GROUP: tl.constexpr, QUERIES: tl.constexpr, WIDTH: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """One program for each row, head of keys and block of queries; a token has `GROUP` queries.
    A token attends to those up to itself; padding attends to the first token."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    number = tl.program_id(2) * QUERIES + tl.arange(0, QUERIES)
    token = number // GROUP
    member = head * GROUP + number % GROUP
    own = token < tokens
    width = tl.arange(0, WIDTH)
    place = tl.arange(0, PAGE)
    position = tl.load(positions + row * position_row + token, mask=own, other=0)
    position = tl.maximum(position, 0)
    queries = query + row * query_row + member[:, None] * query_head + token[:, None] * query_token
    asked = tl.load(queries + width[None, :], mask=own[:, None], other=0.0)
    largest = tl.full([QUERIES], float("-inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    sums = tl.zeros([QUERIES, WIDTH], tl.float32)
    length = tl.max(position, 0) + 1
    for start in range(0, length, PAGE):
        page = tl.load(table + row * table_row + start // PAGE)
        base = page.to(tl.int64) * page_size + head * head_size
        known = start + place < length
        key = tl.load(
            keys + base + place[None, :] * WIDTH + width[:, None], mask=known[None, :], other=0.0
        )
        score = tl.dot(asked, key) * scale
        seen = (start + place)[None, :] <= position[:, None]
        score = tl.where(seen, score, float("-inf"))
        higher = tl.maximum(largest, tl.max(score, 1))
        share = tl.exp(score - higher[:, None])
        fade = tl.exp(largest - higher)
        total = total * fade + tl.sum(share, 1)
        value = tl.load(
            values + base + place[:, None] * WIDTH + width[None, :], mask=known[:, None], other=0.0
        )
        sums = sums * fade[:, None] + tl.dot(share.to(value.dtype), value)
        largest = higher
    places = out + row * out_row + token[:, None] * out_token + member[:, None] * out_head
    tl.store(places + width[None, :], (sums / total[:, None]).to(asked.dtype), mask=own[:, None])


def attend_one(query: Any, keys: Any, values: Any, table: Any, lengths: Any, scale: float) -> Any:
    """One new token a row: rows × 1 × heads × width, from queries that are rows × heads × 1 ×
    width."""
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


def attend_many(
    query: Any, keys: Any, values: Any, table: Any, positions: Any, scale: float
) -> Any:
    """Several new tokens a row: rows × tokens × heads × width, from queries that are rows × heads ×
    tokens × width. A negative position is padding."""
    rows, heads, tokens, width = query.shape
    kept = keys.shape[1]
    group = heads // kept
    out = query.new_empty(rows, tokens, heads, width)
    attend_many_kernel[(rows, kept, triton.cdiv(tokens * group, QUERIES))](
        query, keys, values, out, table, positions, scale, tokens,
        query.stride(0), query.stride(1), query.stride(2), keys.stride(0), keys.stride(1),
        out.stride(0), out.stride(1), out.stride(2), table.stride(0), positions.stride(0),
        GROUP=group, QUERIES=QUERIES, WIDTH=width, PAGE=PAGE,
    )  # fmt: skip
    return out


def compile_kernels(torch: Any, device: Any, dtype: Any, heads: int, kept: int, width: int) -> None:
    """Compile both kernels for a model, by calls with two tokens."""
    pages = torch.zeros((2, kept, PAGE, width), dtype=dtype, device=device)
    table = torch.zeros((1, 1), dtype=torch.int64, device=device)
    query = torch.zeros((1, heads, 1, width), dtype=dtype, device=device)
    ones = torch.ones((1,), dtype=torch.int32, device=device)
    attend_one(query, pages, pages, table, ones, width**-0.5)
    query = torch.zeros((1, 2, heads, width), dtype=dtype, device=device).transpose(1, 2)
    positions = torch.arange(2, device=device)[None]
    attend_many(query, pages, pages, table, positions, width**-0.5)
