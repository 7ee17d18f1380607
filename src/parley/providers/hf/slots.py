"""Generates for many conversations at once: a reply that ends makes room for the next call at the
following token, and what a conversation has already computed is kept while it fits."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any

from parley.errors import Rejected
from parley.providers.hf.fallbacks import describe_error, is_unsupported
from parley.providers.hf.paged_cache import (
    PAGE,
    PagePool,
    fill_table,
    make_cache,
    mask_for,
    pages_for,
)
from parley.providers.hf.steps import choose_tokens
from parley.tables import plural

if TYPE_CHECKING:
    from parley.providers.hf.checkpoint import Checkpoint, GenerationCall

CPU_ROWS, GPU_ROWS = 16, 256  # replies written together if `batch` does not say
MOST_ROWS = 4096
SIZES = (1, 2, 4, 8, 16, *range(32, 4097, 32))  # rows of a recorded step
NEW_TOKENS = 8192  # tokens of prompts in one forward pass
SMALLEST_PASS = 64
GATHERED = 65_536  # tokens of rows, old and new, in one forward pass that gathers their pages
SHARE_OF_MEMORY = 0.94  # of what is free after loading; the rest is for the forward passes
SHARE_OF_RAM = 0.25
LULL = 0.02  # seconds without a further call, after which those that wait start
LONGEST_WAIT = 0.25  # seconds that a call waits for others to start with while replies are written
KERNEL_WIDTHS = (16, 32, 64, 128, 256)


@dataclass(eq=False)
class Conversation:
    """A conversation in the pool: the tokens whose keys and values it has, and their pages."""

    tokens: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)  # of its full pages, while it is idle
    call: GenerationCall | None = None  # None: it waits for its next round
    last: int = 0  # the newest token, which has no keys and values yet


class Slots:
    """The conversations of one checkpoint on one device."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint, self.torch = checkpoint, checkpoint.torch
        self.model, self.device = checkpoint.model, checkpoint.device
        self.on_gpu = self.device.type == "cuda"
        self.waiting: deque[GenerationCall] = deque()
        self.oldest = self.newest = 0.0  # when waiting calls came
        self.active: dict[Conversation, None] = {}  # in the order of their start
        self.idle: dict[Conversation, None] = {}  # the one used longest ago first
        self.known: dict[int, Conversation] = {}  # idle ones, by the marks of their pages
        self.rows = MOST_ROWS
        self.new_tokens, self.gathered = NEW_TOKENS, GATHERED
        self.steps: dict[int, RecordedStep] = {}
        self.passes = self.reused = 0
        self.usual_length = 0.0  # tokens of recent replies
        self.spent = {"prompts": 0.0, "replies": 0.0}  # seconds
        self.fallback = self.reduced = ""  # why a faster way or larger passes are not used
        self.usual_rows = GPU_ROWS if self.on_gpu else CPU_ROWS
        self.began = 0.0  # of the forward passes whose time is not shared out yet
        self.shares: list[tuple[GenerationCall, int]] = []  # the calls in them, and their tokens
        self.pool = PagePool(self.torch, self.device, 8)
        self.cache = make_cache(self.pool)

    # Preparing

    def prepare(self) -> bool:
        """Whether this model can be run from pages; if so, take the memory for them. `fallback`
        says why a faster way is not used."""
        config, plain = self.model.config, self.model.config._attn_implementation
        if not attends_to_everything(config.get_text_config()):
            self.fallback = "not every layer of the model attends to all earlier tokens"
            return False
        kernels = (True, False) if self._takes_kernel() else (False,)
        suits = any(self._works(kernel, plain) for kernel in kernels)
        if suits:
            self._take_memory()
        return suits

    def _works(self, kernel: bool, plain: str) -> bool:
        """Whether the scores from pages are right, with or without a kernel of Parley's own; if
        not, everything is as before."""
        why = ""
        try:
            self._use_own_attention(kernel)
            if not self._agrees(plain):
                why = "the scores differ from those of a plain forward pass"
        except Exception as wrong:
            if not is_unsupported(wrong):
                raise
            why = describe_error(wrong)
        if not why:
            return True
        self.close()
        self.pool = PagePool(self.torch, self.device, 8)
        self.cache = make_cache(self.pool)
        self.model.set_attn_implementation(plain)
        self.checkpoint.empty_cache()
        if self.on_gpu:
            self.torch.cuda.synchronize(self.device)  # raises if the device cannot be used any more
        what = "a kernel that reads pages" if kernel else "a pool of pages"
        self.fallback = "; ".join(filter(None, [self.fallback, f"{what} does not work: {why}"]))
        return False

    def facts(self) -> dict[str, Any]:
        """How replies are generated."""
        recorded = self.pool.kernel is not None
        held = (self.pool.count - 1) * PAGE
        return {
            "engine": "page pool with CUDA graphs" if recorded else "page pool",
            "attention": "paged kernel" if recorded else "sdpa",
            "pool_tokens": round(held, 2 - len(str(held))),
            "fallback": "; ".join(filter(None, [self.fallback, self.reduced])),
        }

    def _agrees(self, plain: str) -> bool:
        """Whether the scores from pages are those of a plain forward pass, for two made-up texts
        of different lengths that are added in two parts and two single tokens."""
        torch, own = self.torch, self.model.config._attn_implementation
        vocabulary = self.model.get_input_embeddings().weight.shape[0]
        made_up = (torch.arange(PAGE + 9) * 7919 % vocabulary).tolist()
        texts = [made_up, made_up[5:40]]
        with torch.inference_mode():
            self.model.set_attn_implementation(plain)
            wanted = [
                self.model(torch.tensor([text], device=self.device)).logits[0, -3:].float()
                for text in texts
            ]
            self.model.set_attn_implementation(own)
            rows = [Conversation(pages=[1, 2]), Conversation(pages=[3])]
            self._pass(rows, [text[:20] for text in texts])
            for row, text in zip(rows, texts, strict=True):
                row.tokens = text[:20]
            found = [self._pass(rows, [text[20:-2] for text in texts]).float()]
            for end in (2, 1):
                for row, text in zip(rows, texts, strict=True):
                    row.tokens, row.last = text[:-end], text[-end]
                found.append(self._decode(rows).float())
        # in 16 bits, two of torch's own attention functions differ by up to 0.08
        close = 1e-3 if self.model.dtype == torch.float32 else 0.2
        for at, scores in enumerate(wanted):
            paged = torch.stack([step[at] for step in found])
            if not float((paged - scores).norm()) <= close * float(scores.norm()):
                return False
        return True

    def _takes_kernel(self) -> bool:
        """Whether a kernel of Parley's own may read the pages."""
        config = self.model.config.get_text_config()
        heads = getattr(config, "num_attention_heads", 1)
        width = getattr(config, "head_dim", None) or config.hidden_size // heads
        half = self.model.dtype in (self.torch.bfloat16, self.torch.float16)
        return self.on_gpu and half and width in KERNEL_WIDTHS

    def _use_own_attention(self, kernel: bool) -> None:
        pool, utils = self.pool, import_module("transformers.modeling_utils")
        name = f"parley_{id(pool):x}"
        utils.ALL_ATTENTION_FUNCTIONS.register(name, pool.attend)
        self.model.set_attn_implementation(name)
        if kernel:
            pool.kernel = import_module("parley.providers.hf.page_kernels")

    def _take_memory(self) -> None:
        """As many pages as fit."""
        pool, torch = self.pool, self.torch
        size = sum(each[0].nbytes for each in (*pool.keys, *pool.values))
        pool.keys, pool.values = [], []
        self.steps.clear()
        if self.on_gpu:
            torch.cuda.empty_cache()
            room = SHARE_OF_MEMORY * torch.cuda.mem_get_info(self.device)[0]
        else:
            room = SHARE_OF_RAM * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
        most = pages_for(self.checkpoint.context) * self.usual_rows + 1
        pool.count = max(2, min(int(room // size), most))
        pool.free = list(range(pool.count - 1, 0, -1))

    # Calls

    def add(self, calls: Sequence[GenerationCall]) -> None:
        """Let calls wait for their start."""
        if calls:
            self.newest = perf_counter()
            self.oldest = self.oldest if self.waiting else self.newest
        self.waiting.extend(calls)

    @property
    def busy(self) -> bool:
        return bool(self.active or self.waiting)

    def advance(self) -> None:
        """Start calls for which there is room, and write one token of every reply."""
        torch = self.torch
        starting, full, began = self._should_start(), False, perf_counter()
        with torch.inference_mode():
            try:
                starting = starting and self._start()
                if not starting:
                    self._write()
            except torch.cuda.OutOfMemoryError:
                full = True  # handled below: the traceback would keep the tensors alive
            if full:
                self._give_way(starting)
        self.spent["prompts" if starting else "replies"] += perf_counter() - began

    def _limit(self) -> int:
        """How many replies may be written at the same time."""
        calls = [room.call for room in self.active] + [self.waiting[0]]
        given = [call.options.batch for call in calls if call and call.options.batch]
        return min(self.rows, *given) if given else min(self.rows, self.usual_rows)

    def _should_start(self) -> bool:
        """Starting interrupts the replies being written, so a few calls wait for each other."""
        if not self.waiting or len(self.active) >= self._limit():
            return False
        now = perf_counter()
        if not self.active or now - self.oldest > LONGEST_WAIT:
            return True
        return 8 * len(self.waiting) >= len(self.active) and now - self.newest > LULL

    def _start(self) -> bool:
        """Compute the prompts of waiting calls and their first token; False if there is no room
        for any of them."""
        begun: list[Conversation] = []
        limit = self._limit()
        growth = sum(map(self._growth, self.active))
        while self.waiting and len(self.active) + len(begun) < limit:
            call = self.waiting[0]
            if call.left(self.checkpoint):
                self.waiting.popleft()
                continue
            room = self._find_room(call, growth if begun or self.active else 0)
            if room is None:
                if not begun and not self.active:
                    self.waiting.popleft()
                    self._refuse(call)
                    continue
                break
            self.waiting.popleft()
            room.call = call
            begun.append(room)
            growth += self._growth(room)
        self.oldest = perf_counter()
        try:
            self._compute_prompts(begun)
        except BaseException:
            for room in begun:  # those without a first token wait again
                if room not in self.active and room.call is not None:
                    self.waiting.appendleft(room.call)
                    self._release(room)
            raise
        return bool(begun)

    def _refuse(self, call: GenerationCall) -> None:
        size = plural(len(call.ids), "token")
        held = f"{(self.pool.count - 1) * PAGE:,} tokens"
        call.settle(
            Rejected(
                f"hf/{call.options.name}: the prompt of {size} does not fit into memory, which "
                f"holds {held}"
            )
        )

    def _growth(self, room: Conversation) -> int:
        """How many more pages a reply will need, if it gets as long as earlier ones."""
        call = room.call
        if call is None:
            return 0
        more = max(1, min(int(self.usual_length), call.most) - len(call.tokens))
        return max(0, pages_for(len(self._whole(room)) + more) - len(room.pages))

    def _continued(self, call: GenerationCall) -> Conversation | None:
        """The idle conversation that a waiting call continues."""
        call.marks = call.marks or mark_pages(call.ids)
        found = (self.known[mark] for mark in reversed(call.marks) if mark in self.known)
        return next(found, None)

    def _find_room(self, call: GenerationCall, spare: int) -> Conversation | None:
        """A conversation whose tokens begin like a call's, with pages for all of them and one more;
        None if there is no room now. `spare` pages must be left, for replies under way."""
        whole = call.ids + call.tokens
        best = self._continued(call)
        if best is None:
            best = Conversation()
        else:
            self._forget(best)
        kept = min(shared_length(best.tokens, whole), len(whole) - 1)
        best.tokens = best.tokens[:kept]
        self._shorten(best, pages_for(kept))
        if self._extend(best, len(whole) + 1, spare):
            self.reused += kept
            return best
        if best.pages:
            self._keep(best)
        return None

    def _keep(self, room: Conversation) -> None:
        """Keep a conversation for its next round."""
        self.idle[room] = None
        room.marks = mark_pages(room.tokens)
        for mark in room.marks:
            self.known[mark] = room

    def _forget(self, room: Conversation) -> None:
        """Take a conversation from those that wait for their next round."""
        self.idle.pop(room, None)
        for mark in room.marks:
            if self.known.get(mark) is room:
                del self.known[mark]
        room.marks = []

    def _extend(self, room: Conversation, tokens: int, spare: int = 0) -> bool:
        """Whether a conversation has pages for these tokens, if need be those of idle ones.
        `spare` pages must be left, for replies that others are writing."""
        need = pages_for(tokens) - len(room.pages)
        while (lack := need + spare - len(self.pool.free)) > 0 and self.idle:
            self._cut_idle(lack)
        if lack > 0:
            return False
        room.pages += [self.pool.free.pop() for _ in range(need)]
        return True

    def _cut_idle(self, pages: int) -> None:
        """Take pages from the end of an idle conversation: the one idle longest of those that no
        waiting call continues, or else the one whose call comes last. Its beginning stays."""
        wanted = {self._continued(call): at for at, call in enumerate(self.waiting)}
        room = max(self.idle, key=lambda each: wanted.get(each, len(wanted)))
        left = len(room.pages) - pages
        if left <= 0:
            self._release(room)
            return
        self._shorten(room, left)
        del room.tokens[left * PAGE :]
        for mark in room.marks[left:]:
            if self.known.get(mark) is room:
                del self.known[mark]
        del room.marks[left:]

    def _shorten(self, room: Conversation, pages: int) -> None:
        self.pool.free += room.pages[pages:]
        del room.pages[pages:]

    def _release(self, room: Conversation) -> None:
        """Forget a conversation."""
        self._shorten(room, 0)
        room.tokens, room.call = [], None
        self.active.pop(room, None)
        self._forget(room)

    # Forward passes

    def _compute_prompts(self, begun: list[Conversation]) -> None:
        """In passes of similar lengths; a long prompt takes several passes."""
        left = sorted(begun, key=self._news)
        while left:
            rows: list[Conversation] = []
            width = height = 0
            for room in left:
                news = min(self._news(room), self.new_tokens)
                deep = max(height, len(room.tokens) + news)
                count = len(rows) + 1
                gathered = count * deep if self.pool.kernel is None else 0
                if rows and (
                    count * max(width, news) > self.new_tokens or gathered > self.gathered
                ):
                    break
                rows.append(room)
                width, height = max(width, news), deep
            given = [self._whole(room)[len(room.tokens) :][:width] for room in rows]
            self._time([(room, len(text)) for room, text in zip(rows, given, strict=True)])
            scores = self._pass(rows, given)
            done = []
            for at, (room, text) in enumerate(zip(rows, given, strict=True)):
                room.tokens += text
                if len(room.tokens) == len(self._whole(room)):
                    done.append((at, room))
            self._take(scores[[at for at, _ in done]], [room for _, room in done])
            left = sorted(
                (room for room in left if room.call is not None and room not in self.active),
                key=self._news,
            )

    def _whole(self, room: Conversation) -> list[int]:
        assert room.call is not None
        return room.call.ids + room.call.tokens

    def _news(self, room: Conversation) -> int:
        return len(self._whole(room)) - len(room.tokens)

    def _pass(self, rows: Sequence[Conversation], given: Sequence[Sequence[int]]) -> Any:
        """The scores after the last new token of each row. Shorter rows are padded on the left."""
        torch, pool = self.torch, self.pool
        self.passes += 1
        width = max(map(len, given))
        ids = torch.full((len(rows), width), self.checkpoint.pad, dtype=torch.int64)
        positions = torch.full((len(rows), width), -1, dtype=torch.int64)
        for at, (room, text) in enumerate(zip(rows, given, strict=True)):
            ids[at, width - len(text) :] = torch.tensor(text)
            first = len(room.tokens)
            positions[at, width - len(text) :] = torch.arange(first, first + len(text))
        ends = [len(room.tokens) + len(text) for room, text in zip(rows, given, strict=True)]
        most = pages_for(max(ends))
        table = fill_table(torch, [room.pages for room in rows], len(rows), most).to(self.device)
        positions = positions.to(self.device)
        pool.lengths = None
        pool.place(table, positions)
        return self.model(
            input_ids=ids.to(self.device),
            position_ids=positions.clamp(min=0),
            # a kernel needs no mask
            attention_mask=mask_for(torch, positions, 1 if pool.kernel else most * PAGE),
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]

    def _decode(self, rows: Sequence[Conversation]) -> Any:
        """The scores after each row's newest token."""
        if self.pool.kernel is None:
            return self._pass(rows, [[room.last] for room in rows])
        self.passes += 1
        count = len(rows)
        size = next((size for size in sorted(self.steps) if count <= size <= 4 * count), 0)
        if not size:
            size = next(each for each in SIZES if each >= count)
            self.steps[size] = RecordedStep(self, size)
        return self.steps[size].run(rows)[:count]

    def _write(self) -> None:
        """One more token for every reply; one that finds no page waits and starts again later."""
        for room in list(self.active):
            if room.call is None or room.call.left(self.checkpoint):
                self._end(room)
        for room in list(self.active):
            while room in self.active and not self._extend(room, len(room.tokens) + 1):
                self._put_back(next(reversed(self.active)))
        rows = list(self.active)
        if not rows:
            return
        self._time([(room, 1) for room in rows])
        scores = self._decode(rows)
        for room in rows:
            room.tokens.append(room.last)
        self._take(scores, rows)

    def _take(self, scores: Any, rows: Sequence[Conversation]) -> None:
        """Choose the next token of each row, and end the replies that are complete."""
        if not rows:
            return
        calls = [room.call for room in rows]
        chosen = choose_tokens(self.torch, scores, calls)
        self._share_time()
        for room, call, token in zip(rows, calls, chosen, strict=True):
            assert call is not None
            call.tokens.append(token)
            room.last = token
            self.active[room] = None
            if call.is_complete(self.checkpoint):
                self._end(room)

    def _time(self, rows: Sequence[tuple[Conversation, int]]) -> None:
        """Time a forward pass that begins now."""
        if not self.shares:
            self.began = perf_counter()
        self.shares += [(room.call, count) for room, count in rows if room.call is not None]

    def _share_time(self) -> None:
        """Divide the time of the forward passes that have ended among their calls, by tokens."""
        seconds = perf_counter() - self.began
        tokens = sum(count for _, count in self.shares)
        for call, count in self.shares:
            call.seconds += seconds * count / tokens
        self.shares.clear()

    def _end(self, room: Conversation) -> None:
        """Answer a call, and keep its conversation for the next round."""
        call, room.call = room.call, None
        self.active.pop(room, None)
        self._keep(room)
        if call is not None:
            self.usual_length += (len(call.tokens) - self.usual_length) / 8
            self.checkpoint.answer(call)

    def _put_back(self, room: Conversation) -> None:
        """Let a call wait again; its tokens so far stay, and its pages while nobody needs them."""
        if room.call is not None:
            self.waiting.appendleft(room.call)
        room.call = None
        self.active.pop(room, None)
        self._keep(room)

    def _give_way(self, starting: bool) -> None:
        """After the memory was too small: go on with smaller sizes, and never try the larger ones
        again. What does not fit even alone is refused."""
        self.pool.lengths = None
        self.shares.clear()
        for room in list(self.idle):
            self._release(room)
        self.steps.clear()
        self.checkpoint.empty_cache()
        if starting and self.new_tokens > SMALLEST_PASS:
            self.new_tokens //= 2
            self.gathered = max(self.gathered // 2, PAGE)
        elif self.rows > 1:
            self.rows = max(1, min(self.rows, len(self.active) + starting) // 2)
            while len(self.active) > self.rows:
                self._put_back(next(reversed(self.active)))
        elif starting:
            self._refuse(self.waiting.popleft())
        else:
            for room in list(self.active):
                call = room.call
                self._release(room)
                if call is not None:
                    self._refuse(call)
        self.reduced = (
            f"memory ran out, so a pass has at most {min(self.rows, self.usual_rows)} replies and "
            f"{self.new_tokens:,} new tokens of prompts"
        )
        self.checkpoint.setups.clear()

    def stop(self) -> list[GenerationCall]:
        """Drop all calls, and return them."""
        self.shares.clear()
        calls = [room.call for room in self.active if room.call is not None]
        calls += self.waiting
        for room in [*self.active, *self.idle]:
            self._release(room)
        self.waiting.clear()
        return calls

    def close(self) -> None:
        """Free the memory."""
        self.steps.clear()
        self.active, self.idle, self.known = {}, {}, {}
        self.pool.keys, self.pool.values, self.pool.table = [], [], None


class RecordedStep:
    """One token for up to `size` rows, recorded once as a CUDA graph and then repeated: launching
    the kernels one by one takes longer than they run."""

    def __init__(self, slots: Slots, size: int) -> None:
        torch, device, self.slots, self.size = slots.torch, slots.device, slots, size
        self.width = pages_for(min(slots.checkpoint.context, 2**20))
        self.width = min(self.width, slots.pool.count)
        zeros = {"dtype": torch.int64, "device": device}
        self.ids = torch.zeros((size, 1), **zeros)
        self.positions = torch.zeros((size, 1), **zeros)
        self.lengths = torch.ones((size,), dtype=torch.int32, device=device)
        self.table = torch.zeros((size, self.width), **zeros)
        self.listed: list[list[int]] = []
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            self._forward()  # libraries set themselves up, which must not be recorded
        torch.cuda.current_stream(device).wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.scores = self._forward()

    def _forward(self) -> Any:
        pool = self.slots.pool
        pool.lengths = self.lengths
        pool.place(self.table, self.positions)
        try:
            return self.slots.model(
                input_ids=self.ids,
                position_ids=self.positions,
                attention_mask=mask_for(self.slots.torch, self.positions, 1),
                past_key_values=self.slots.cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits[:, -1]
        finally:
            pool.lengths = None

    def run(self, rows: Sequence[Conversation]) -> Any:
        """The scores of these rows."""
        torch, count = self.slots.torch, len(rows)
        listed = [room.pages[:] for room in rows]
        if listed != self.listed:
            self.table.copy_(fill_table(torch, listed, self.size, self.width))
            self.listed = listed
        now = torch.zeros((2, self.size), dtype=torch.int64)
        now[:, :count] = torch.tensor(
            [[room.last for room in rows], [len(room.tokens) for room in rows]]
        )
        moved = now.to(self.ids.device, non_blocking=True)
        self.ids.copy_(moved[0][:, None])
        self.positions.copy_(moved[1][:, None])
        self.lengths.copy_(moved[1] + 1)
        self.graph.replay()
        return self.scores


def attends_to_everything(config: Any) -> bool:
    """Whether every layer attends to all earlier tokens. Windows and recurrent layers keep other
    things than keys and values of all tokens."""
    kinds = getattr(config, "layer_types", None)
    if kinds:
        return set(kinds) == {"full_attention"}
    return not getattr(config, "sliding_window", None) or not getattr(
        config, "use_sliding_window", True
    )


def mark_pages(tokens: Sequence[int]) -> list[int]:
    """A mark for each full page, which depends on everything up to its end."""
    marks, mark = [], 0
    for start in range(0, len(tokens) - PAGE + 1, PAGE):
        mark = hash((mark, *tokens[start : start + PAGE]))
        marks.append(mark)
    return marks


def shared_length(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two sequences have in common from their start."""
    pairs = zip(first, second, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))
