"""Steps at each token of a batch: draws the token of rows that sample, and marks rows that are
done."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parley.providers.hf.checkpoint import Checkpoint, GenerationCall


class Draws:
    """Draws the token of each sampling row and leaves only that one to choose. Each row has its own
    random numbers, so that other rows do not matter."""

    def __init__(self, torch: Any, calls: Sequence[GenerationCall]) -> None:
        self.torch = torch
        self.rows = [row for row, call in enumerate(calls) if call.seed]
        drawn = [calls[row] for row in self.rows]
        self.random = [Random(call.seed) for call in drawn]
        self.temperature = torch.tensor([[call.options.temperature] for call in drawn])
        self.top_p = torch.tensor([[call.options.top_p] for call in drawn])

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if not self.rows:
            return scores
        chance = (scores[self.rows] / self.temperature.to(scores.device)).softmax(-1)
        if bool((self.top_p < 1).any()):
            likeliest, order = chance.sort(descending=True)
            likeliest[likeliest.cumsum(-1) - likeliest >= self.top_p.to(scores.device)] = 0
            chance = self.torch.zeros_like(chance).scatter(-1, order, likeliest)
        upto = chance.cumsum(-1)
        # never 0
        point = self.torch.tensor(
            [[1 - random.random()] for random in self.random], device=scores.device
        )
        token = (upto < point * upto[:, -1:]).sum(-1).clamp(max=scores.shape[-1] - 1)
        left = self.torch.full_like(chance, float("-inf"))
        left[range(len(self.rows)), token] = 0
        scores[self.rows] = left
        return scores


class Ends:
    """Marks rows that are done: at their own limit, at a stop text, or because nobody waits for
    them any more."""

    def __init__(self, checkpoint: Checkpoint, calls: Sequence[GenerationCall], width: int) -> None:
        self.checkpoint, self.calls, self.width = checkpoint, calls, width
        self.length = [call.most for call in calls]
        self.done = [False] * len(calls)

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        new = input_ids.shape[1] - self.width
        for row, call in enumerate(self.calls):
            if not self.done[row] and (
                self._left(call) or new >= call.most or self._stopped(call, input_ids[row], new)
            ):
                self.done[row], self.length[row] = True, new
        return self.checkpoint.torch.tensor(self.done, device=input_ids.device)

    def _left(self, call: GenerationCall) -> bool:
        return self.checkpoint.closing or call.answer.cancelled()

    def _stopped(self, call: GenerationCall, row: Any, new: int) -> bool:
        if not call.stop:
            return False
        tail = row[-min(new, 2 * max(map(len, call.stop)) + 8) :]
        text = self.checkpoint.tokenizer.decode(tail, skip_special_tokens=True)
        return any(stop in text for stop in call.stop)
