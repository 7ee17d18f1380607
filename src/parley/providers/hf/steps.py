"""Choosing tokens, and the steps of a plain batch: draw the tokens of rows that sample, and mark
rows that are done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parley.providers.hf.checkpoint import Checkpoint, GenerationCall


def choose_tokens(torch: Any, scores: Any, calls: Sequence[GenerationCall | None]) -> list[int]:
    """The next token of each call: the likeliest, or one drawn with the call's own random numbers,
    so that other calls do not matter."""
    chosen = scores.argmax(-1)
    rows = [row for row, call in enumerate(calls) if call is not None and call.random]
    if rows:
        chosen[rows] = draw_tokens(torch, scores[rows], [calls[row] for row in rows])
    found: list[int] = chosen.tolist()
    return found


def draw_tokens(torch: Any, scores: Any, calls: Sequence[Any]) -> Any:
    """A token for each row, by the call's temperature and top_p."""
    device = scores.device
    temperature = torch.tensor([[call.options.temperature] for call in calls], device=device)
    top_p = torch.tensor([[call.options.top_p] for call in calls], device=device)
    chance = (scores.float() / temperature).softmax(-1)
    if any(call.options.top_p < 1 for call in calls):
        likeliest, order = chance.sort(descending=True)
        likeliest[likeliest.cumsum(-1) - likeliest >= top_p] = 0
        chance = torch.zeros_like(chance).scatter(-1, order, likeliest)
    upto = chance.cumsum(-1)
    point = torch.tensor([[1 - call.random.random()] for call in calls], device=device)  # never 0
    return (upto < point * upto[:, -1:]).sum(-1).clamp(max=scores.shape[-1] - 1)


class Draws:
    """Leaves each sampling row only the token that was drawn for it."""

    def __init__(self, torch: Any, calls: Sequence[GenerationCall]) -> None:
        self.torch = torch
        self.rows = [row for row, call in enumerate(calls) if call.random]
        self.calls = [calls[row] for row in self.rows]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if not self.rows:
            return scores
        token = draw_tokens(self.torch, scores[self.rows], self.calls)
        left = self.torch.full_like(scores[self.rows], float("-inf"))
        left[range(len(self.rows)), token] = 0
        scores[self.rows] = left
        return scores


class Ends:
    """Marks rows that are done: at their own limit, at a stop text, or because nobody waits for
    them any more."""

    def __init__(self, checkpoint: Checkpoint, calls: Sequence[GenerationCall], width: int) -> None:
        self.checkpoint, self.calls, self.width = checkpoint, calls, width
        self.done = [False] * len(calls)

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        newest = input_ids[:, -1].tolist()
        for row, call in enumerate(self.calls):
            if not self.done[row]:
                call.tokens.append(newest[row])
                self.done[row] = call.left(self.checkpoint) or call.is_complete(self.checkpoint)
        return self.checkpoint.torch.tensor(self.done, device=input_ids.device)
