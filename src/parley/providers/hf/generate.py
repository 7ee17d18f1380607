"""Generates with transformers' own loop, for models that cannot be run from pages: calls that wait
at the same time form a batch, and the next batch starts when all its replies are complete."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any

from parley.errors import Rejected
from parley.providers.hf.steps import Draws, Ends

if TYPE_CHECKING:
    from parley.providers.hf.checkpoint import Checkpoint, GenerationCall

ROWS = 16  # calls of a batch if `batch` does not say


class GenerateQueue:
    """The waiting calls of one checkpoint, one batch after the other."""

    usual_rows = ROWS

    def __init__(self, checkpoint: Checkpoint, fallback: str) -> None:
        self.checkpoint, self.torch, self.fallback = checkpoint, checkpoint.torch, fallback
        self.waiting: list[GenerationCall] = []
        self.largest: float = float("inf")  # tokens of a batch; less once one did not fit
        self.passes = 0

    def facts(self) -> dict[str, Any]:
        """How replies are generated."""
        attention = self.checkpoint.model.config._attn_implementation
        return {"engine": "generate", "attention": attention, "fallback": self.fallback}

    def add(self, calls: Sequence[GenerationCall]) -> None:
        """Let calls wait for their batch."""
        self.waiting += calls

    @property
    def busy(self) -> bool:
        return bool(self.waiting)

    def advance(self) -> None:
        """Generate one batch; if it does not fit into memory, remember that and try a smaller
        one."""
        calls = self._choose()
        self.passes += 1
        fits, began = True, perf_counter()
        try:
            self._generate(calls)
        except self.torch.cuda.OutOfMemoryError:
            fits = False  # handled below: the traceback would keep the tensors alive
        if not fits:
            self.checkpoint.empty_cache()
            for call in calls:
                call.start_again()
            self.largest = min(self.largest, count_batch_tokens(calls)) // 2
            if len(calls) == 1:
                self.waiting.remove(calls[0])
                size = f"the prompt of {len(calls[0].ids)} tokens does not fit into memory"
                calls[0].settle(Rejected(f"hf/{calls[0].options.name}: {size}"))
            return
        self.waiting = [call for call in self.waiting if call not in calls]
        seconds, tokens = perf_counter() - began, [len(call.ids + call.tokens) for call in calls]
        for call, own in zip(calls, tokens, strict=True):
            call.seconds += seconds * own / sum(tokens)
            self.checkpoint.answer(call)

    def _choose(self) -> list[GenerationCall]:
        """The next batch. No finished call may exceed the context because another one continues."""
        context = self.checkpoint.context
        chosen: list[GenerationCall] = []
        for call in sorted(self.waiting, key=lambda call: len(call.ids)):
            batch = [*chosen, call]
            limit = min(each.options.batch or ROWS for each in batch)
            if chosen and (
                len(batch) > limit
                or len(call.ids) + max(each.most for each in batch) > context
                or count_batch_tokens(batch) > self.largest
            ):
                break
            chosen = batch
        return chosen

    def _generate(self, calls: list[GenerationCall]) -> None:
        """The new tokens of each call; shorter prompts are padded on the left and masked."""
        torch, checkpoint = self.torch, self.checkpoint
        transformers = import_module("transformers")
        width = max(len(call.ids) for call in calls)
        gaps = [width - len(call.ids) for call in calls]
        ids = [[checkpoint.pad] * gap + call.ids for call, gap in zip(calls, gaps, strict=True)]
        seen = [[0] * gap + [1] * (width - gap) for gap in gaps]
        with torch.inference_mode():
            checkpoint.model.generate(
                input_ids=torch.tensor(ids, device=checkpoint.device),
                attention_mask=torch.tensor(seen, device=checkpoint.device),
                max_new_tokens=max(call.most for call in calls),
                do_sample=False,  # drawn rows come with one token left to choose
                logits_processor=transformers.LogitsProcessorList([Draws(torch, calls)]),
                stopping_criteria=transformers.StoppingCriteriaList(
                    [Ends(checkpoint, calls, width)]
                ),
            )

    def stop(self) -> list[GenerationCall]:
        """Drop all calls, and return them."""
        calls, self.waiting = self.waiting, []
        return calls

    def close(self) -> None:
        """Nothing is kept between batches."""


def count_batch_tokens(calls: Sequence[GenerationCall]) -> int:
    """The size of a batch: its rows, each as long as the longest may become."""
    return len(calls) * max(len(call.ids) + call.most for call in calls)
