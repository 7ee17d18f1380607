"""Calls in batches: the requests that all matches of a run wait for go to the provider together.

A batch is on record before it is sent. A killed run finds its batches again when it is resumed, and
collects the replies that are there by then. So no reply is paid for twice.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from parley.config.batch_api import uses_batch_api
from parley.config.prepare import Prepared
from parley.errors import (
    Filtered,
    ParleyError,
    ParticipantError,
    Refused,
    Rejected,
    StoreError,
    UsageError,
    describe_exception,
)
from parley.match.protocol import Call, CallPlace, Participant
from parley.providers._batches import (
    BatchClient,
    BatchLine,
    BatchPending,
    BatchRequest,
    BatchStatus,
    split_requests,
)
from parley.providers._endpoint import Endpoint
from parley.providers._endpoint_health import Retryable, backoff_seconds
from parley.providers._transport import LIMITED, Deadline, EndpointAnswer
from parley.runs.budget import Budget
from parley.runs.progress import BatchProgress, Progress, StopSignal
from parley.store.batch_records import Batch, OpenBatch, StoredRequest
from parley.store.journal import Journal
from parley.tables import plural

SETTLE = 0.2  # seconds without a new request, when all matches wait, after which a batch is sent
QUIET = 20.0  # the same when some matches do something else
FIRST_POLL, LONGEST_POLL, SLOWER = 5.0, 60.0, 1.5  # seconds between polls, growing by a factor
TICK = 0.25  # seconds between two checks whether the run stops
TRIES = 5  # batches that a request may be part of, and tries to send a batch
FETCHES = 8  # tries to fetch results that should exist; with the pauses, several minutes
HOLD = 60.0  # seconds to wait if the account has too many tokens in its queue; grows each time
LONGEST_HOLD = 3600.0
KEPT = 29 * 86_400  # seconds for which providers keep results
FINISHED = ("completed", "ended")  # states of batches in which each request has a result
GRACE = 30.0  # seconds that a batch which is being sent has to get its id when the run stops


class NotSent(Exception):
    """A recorded batch never reached the provider: its requests belong into another one."""


@dataclass(eq=False)
class OpenRequest:
    """A request that waits for its answer: in no batch yet, in one, or answered and not taken."""

    place: CallPlace
    digest: bytes  # of the body
    answer: asyncio.Future[EndpointAnswer]
    call: Call | None = None  # None: nobody has asked for it since the run was resumed
    body: bytes = b""  # empty once it was sent
    sent: bool = False  # its batch is with the provider, and so is the money for it
    unanswered: bool = False  # the same may be true, but nobody knows

    def deliver(self, answer: EndpointAnswer) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, fault: BaseException) -> None:
        if not self.answer.done():
            self.answer.set_exception(fault)
            self.answer.exception()  # nobody may be waiting for it

    def mark_sent(self) -> None:
        """Note that the provider has the request: its reply can be fetched later."""
        self.sent, self.body = True, b""
        if self.call is not None:
            self.call.deferred()

    @property
    def key(self) -> tuple[CallPlace, bytes]:
        return self.place, self.digest


@dataclass(eq=False)
class SentBatch:
    """A batch on its way, with the requests that still need an answer by their number in it."""

    record: Batch
    requests: dict[int, OpenRequest]
    provider_id: str = ""
    # not set while the provider creates it, until its id is on record
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    unsure: bool = False  # the provider may have it although its id is unknown
    fetches: int = 0  # how often its results were fetched and not all of them were there

    def __post_init__(self) -> None:
        self.idle.set()

    @property
    def name(self) -> str:
        return f"batch {self.record.number} of {self.record.alias}"


@dataclass(eq=False)
class BatchedModel:
    """A model that is called in batches."""

    alias: str
    client: BatchClient
    waiting: set[OpenRequest] = field(default_factory=set)  # for the next batch
    arrived: float = 0.0  # when the last of them came
    most: int = 0  # requests of a batch, once the provider found one too large; 0: as it allows
    hold_until: float = 0.0
    holds: int = 0


@dataclass
class ResultCount:
    """What was wrong with the results of a batch."""

    failed: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    foreign: int = 0
    missing: int = 0

    def describe(self) -> str:
        """What was wrong, in words; empty if nothing was."""
        faults = self.failed.most_common(2)
        parts = [
            f"{plural(self.failed.total(), 'request')} failed "
            f"({'; '.join(fault for fault, _ in faults)})"
            if faults
            else "",
            f"{plural(self.missing, 'result')} missing" if self.missing else "",
            f"{plural(self.repeated, 'result')} repeated" if self.repeated else "",
            f"{plural(self.foreign, 'line')} not of this batch" if self.foreign else "",
        ]
        return ", ".join(filter(None, parts))


class Batches:
    """The batches of a run."""

    def __init__(
        self,
        journal: Journal,
        progress: Progress,
        stop_signal: StopSignal,
        recorded: Sequence[Batch] = (),
        budget: Budget | None = None,
    ) -> None:
        """`recorded` are the batches of earlier sessions."""
        self._budget = budget
        self._journal, self._progress, self._stop = journal, progress, stop_signal
        self._models: dict[str, BatchedModel] = {}
        self._open: dict[tuple[CallPlace, bytes], OpenRequest] = {}
        # how many seats wait for a batch, in all and by match
        self._seats, self._matches = 0, Counter[int]()
        self._last = max((batch.number for batch in recorded), default=0)
        self._known = [batch.provider_id for batch in recorded if batch.provider_id is not None]
        self._sent: set[SentBatch] = set()
        self._reading = 0  # batches whose results are being handed out
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None

    def add_model(self, alias: str, endpoint: Endpoint) -> None:
        """Call a model in batches from now on."""
        model = self._models[alias] = BatchedModel(alias, endpoint.make_batch_client())

        async def post(body: bytes, call: Call, deadline: Deadline) -> EndpointAnswer:
            return await self._post(model, body, call)

        endpoint.send_in_batches(post)

    def take_up(self, batches: Iterable[OpenBatch]) -> None:
        """Follow the batches of earlier sessions whose replies are not on record."""
        loop = asyncio.get_running_loop()
        for record, requests in batches:
            model = self._models.get(record.alias)
            if model is None:
                continue
            opened = {
                each.number: OpenRequest(each.place, each.body, loop.create_future())
                for each in requests
            }
            self._open.update({each.key: each for each in opened.values()})  # the last batch wins
            batch = SentBatch(record, opened, record.provider_id or "")
            self._start(self._take_up(model, batch), list(opened.values()))

    async def _take_up(self, model: BatchedModel, batch: SentBatch) -> None:
        """Follow one batch of an earlier session, if it was sent at all."""
        record = batch.record
        if not batch.provider_id and record.state != "new":
            try:
                batch.provider_id = await self._find(model, batch)
            except ParticipantError as fault:
                self._settle_all(batch, fault)
                return
            if batch.provider_id:
                await self._journal.set_batch(record.number, "sent", batch.provider_id)
        if not batch.provider_id:
            await self._journal.set_batch(record.number, "dropped")
            self._settle_all(batch, NotSent())
            return
        for request in batch.requests.values():
            request.mark_sent()
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.began))
        self._progress.notify(
            f"{batch.name} was sent at {since}; Parley collects its replies "
            f"({plural(len(batch.requests), 'request')} without a reply on record)"
        )
        await self._follow(model, batch)

    async def _post(self, model: BatchedModel, body: bytes, call: Call) -> EndpointAnswer:
        """The answer to a request, from a batch that has it or from the next one."""
        place = call.place()
        assert place is not None
        digest, tries = blake2b(body, digest_size=16).digest(), 0
        if self._watch is None:
            self._watch = asyncio.create_task(self._send_when_ready())
        while True:
            call.check_running()
            request = self._open.get((place, digest))
            if request is None:
                request = self._add(model, place, digest, body)
            request.call = call
            if request.sent:
                call.deferred()
            self._seats += 1
            self._matches[place.match] += 1
            try:
                return await request.answer
            except NotSent:
                continue
            except Retryable as fault:
                if fault.unsure:
                    call.unanswered(str(fault))
                else:
                    call.refused(str(fault))
                tries += not fault.limited
                if tries == TRIES:
                    said = f"{model.client.place}: {fault} ({tries} batches)"
                    raise ParticipantError(said, kind=fault.kind) from None
            except (Rejected, Refused) as fault:
                if not request.unanswered:
                    call.refused(str(fault))
                raise
            finally:
                self._leave(model, request)

    def _add(
        self, model: BatchedModel, place: CallPlace, digest: bytes, body: bytes
    ) -> OpenRequest:
        """Add a request to the next batch of a model."""
        answer = asyncio.get_running_loop().create_future()
        request = OpenRequest(place, digest, answer, body=body)
        self._open[request.key] = request
        model.waiting.add(request)
        model.arrived = time.monotonic()
        return request

    def _leave(self, model: BatchedModel, request: OpenRequest) -> None:
        """Forget a request whose answer was taken, or that nobody waits for any more."""
        match = request.place.match
        self._seats -= 1
        self._matches[match] -= 1
        if not self._matches[match]:
            del self._matches[match]
        if self._open.get(request.key) is request:
            del self._open[request.key]
        model.waiting.discard(request)

    async def _send_when_ready(self) -> None:
        """Send batches as soon as all matches wait, or after a time without a new request."""
        while True:
            await asyncio.sleep(min(TICK, SETTLE))
            if self._is_leaving:
                self._leave_batches()
            now = time.monotonic()
            all_wait = self._is_everybody_waiting()
            idle = now - max(model.arrived for model in self._models.values())
            for model in self._models.values():
                if not model.waiting or now < model.hold_until:
                    continue
                if (all_wait and idle >= SETTLE) or now - model.arrived >= QUIET:
                    waiting, model.waiting = model.waiting, set()
                    self._send_all(model, sorted(waiting, key=lambda each: each.place))

    def _is_everybody_waiting(self) -> bool:
        """Whether no match can add a request to a batch before it gets a reply. A match may have
        seats that wait beside one that is about to send a request."""
        # what waits for money waits for the replies of a batch
        blocked = 0 if self._budget is None else self._budget.blocked
        asked = sum(self._progress.seats_asked[alias] for alias in self._models)
        return (
            len(self._matches) + blocked >= self._progress.in_flight
            and self._seats + blocked >= asked
            and not self._reading
        )

    @property
    def _is_leaving(self) -> bool:
        """Whether the run stops without its batches. At a limit of its budget, it waits for the
        batches that were sent."""
        return bool(self._stop.reason) and self._stop.status != "budget"

    def _leave_batches(self) -> None:
        """Let all matches stop; what was sent stays with the provider and on record."""
        for request in list(self._open.values()):
            try:
                self._stop.check()
            except ParleyError as halted:
                request.fail(halted)

    def _send_all(self, model: BatchedModel, waiting: Sequence[OpenRequest]) -> None:
        """Send requests in as many batches as the provider's limits need."""
        client = model.client
        sizes = [len(each.body) + client.overhead for each in waiting]
        most = min(model.most or client.most_requests, client.most_requests)
        for start, end in split_requests(sizes, most, client.most_bytes):
            requests = waiting[start:end]
            self._start(self._send_batch(model, requests), requests)

    def _start(self, work: Coroutine[Any, Any, None], requests: Sequence[OpenRequest]) -> None:
        task = asyncio.create_task(self._guard(work, requests))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(
        self, work: Coroutine[Any, Any, None], requests: Sequence[OpenRequest]
    ) -> None:
        """Fail the requests of a batch if the work on it fails unexpectedly: nobody may wait
        forever. An error of the store concerns all batches."""
        try:
            await work
        except Exception as fault:
            if not isinstance(fault, ParleyError):
                unexpected, fault = fault, ParleyError(f"unexpected {describe_exception(fault)}")
                fault.__cause__ = unexpected
            if isinstance(fault, StoreError):
                requests = list(self._open.values())
            if all(request.answer.done() for request in requests):
                self._progress.notify(f"the work on a batch failed: {fault}")
            for request in requests:
                request.fail(fault)

    async def _send_batch(self, model: BatchedModel, requests: Sequence[OpenRequest]) -> None:
        """Send one batch and collect its results."""
        allowed = []
        for request in requests:
            try:
                if request.call is not None and not request.answer.done():
                    await request.call.before_request()
                    allowed.append(request)
            except ParleyError as fault:  # a limit of the budget, or the store
                request.fail(fault)
        if not allowed:
            return
        self._last += 1
        uid, total = f"p{os.urandom(8).hex()}", len(allowed)
        record = Batch(self._last, uid, model.alias, "new", None, total, time.time())
        batch = SentBatch(record, dict(enumerate(allowed)))
        rows = [
            StoredRequest(number, each.place, each.digest, usd_of(each))
            for number, each in batch.requests.items()
        ]
        await self._journal.add_batch(record, rows)
        self._sent.add(batch)
        try:
            batch.provider_id = await self._create(model, batch)
        except ParticipantError as fault:
            if not batch.unsure:
                await self._journal.set_batch(record.number, "dropped")
            for request in allowed:
                if request.call is None:
                    continue
                if batch.unsure:  # the provider may have it and bill it
                    request.unanswered = True
                    request.call.unanswered(str(fault))
                # nothing is billed; other errors are reported where they are raised
                elif not isinstance(fault, Rejected | Refused):
                    request.call.refused(str(fault))
            self._settle_all(batch, fault)
        else:
            if batch.provider_id:
                await self._journal.set_batch(record.number, "sent", batch.provider_id)
                for request in allowed:
                    request.mark_sent()
            else:  # the run stops
                await self._journal.set_batch(record.number, "dropped")
        finally:
            batch.idle.set()
        if batch.provider_id:
            await self._follow(model, batch)
        self._sent.discard(batch)

    async def _create(self, model: BatchedModel, batch: SentBatch) -> str:
        """Create a batch at the provider, and return its id; empty if the run stops before that.

        If an answer is lost, the batch may exist. Parley looks for it before the next try.
        """
        client, record, tries, uploaded = model.client, batch.record, 0, None
        last: Retryable | None = None
        requests = [
            BatchRequest(f"{record.uid}-{number}", each.body)
            for number, each in batch.requests.items()
        ]
        while True:
            if batch.unsure and (found := await self._find(model, batch)):
                return found
            batch.unsure = False
            if last is not None and tries >= TRIES:
                raise ParticipantError(f"{client.place}: {last} ({tries} tries)", kind=last.kind)
            if self._is_leaving:
                return ""
            batch.idle.clear()
            try:
                if uploaded is None:
                    uploaded = await client.upload(requests)
                    await self._journal.set_batch(record.number, "sending")
                return await client.create(record.uid, uploaded)
            except Retryable as fault:
                batch.idle.set()
                tries += not fault.limited
                # A proxy may answer with an error after the provider has created the batch. Only
                # too many requests, or no connection, mean that there is none.
                reached = fault.kind != "unreachable" and fault.status not in LIMITED
                batch.unsure, last = uploaded is not None and reached, fault
                self._progress.notify(f"{batch.name} could not be sent yet: {fault}")
                await asyncio.sleep(fault.seconds or backoff_seconds(tries))

    async def _find(self, model: BatchedModel, batch: SentBatch) -> str:
        """The id of a batch that may have been created; empty if it was not."""
        record, client = batch.record, model.client
        async for _ in self._polls():
            others = [*self._known, *(each.provider_id for each in self._sent if each.provider_id)]
            try:
                found = await client.find(record.uid, record.requests, record.began, others)
                return found or ""
            except Retryable as fault:
                self._progress.notify(f"{batch.name}: {fault}; Parley keeps asking")
            except BatchPending:
                self._progress.notify(
                    f"{batch.name} may have been sent before its id was known; Parley waits for "
                    f"the batches of {client.place} that it could be"
                )
        raise AssertionError  # the polls do not end

    async def _polls(self) -> AsyncIterator[None]:
        """Repeat something at growing intervals, without end."""
        pause = FIRST_POLL
        while True:
            yield
            await asyncio.sleep(pause)
            pause = min(LONGEST_POLL, pause * SLOWER)

    async def _follow(self, model: BatchedModel, batch: SentBatch) -> None:
        """Wait for the results of a batch and collect them."""
        record, client = batch.record, model.client
        shown = BatchProgress(record.number, record.alias, 0, record.requests, record.began)
        self._progress.batches[record.number] = shown
        try:
            async for _ in self._polls():
                try:
                    status = await client.poll(batch.provider_id)
                    shown.done = min(status.done, record.requests)
                    if status.ended:
                        self._reading += 1
                        try:
                            await self._collect(model, batch, status)
                        finally:
                            self._reading -= 1
                        return
                except Retryable as fault:
                    self._progress.notify(f"{batch.name}: {fault}; Parley keeps asking")
                except (Refused, Rejected) as fault:
                    await self._give_up(batch, fault)
                    return
        finally:
            del self._progress.batches[record.number]

    async def _give_up(self, batch: SentBatch, fault: ParticipantError) -> None:
        """The provider does not know a batch: too much time has passed, or this is another
        account."""
        if time.time() - batch.record.began > KEPT:
            self._progress.notify(
                f"{batch.name} is older than the {KEPT // 86_400} days for which providers keep "
                "results; its requests are sent again"
            )
            await self._journal.end_batch(batch.record.number, list(batch.requests))
            self._settle_all(batch, NotSent())
            return
        said = (
            f"{fault}; this concerns {batch.name} ({batch.provider_id}), whose replies are not on "
            "record: check that base_url and the API key are those that sent it"
        )
        self._settle_all(batch, Refused(said, kind=fault.kind))

    async def _collect(self, model: BatchedModel, batch: SentBatch, status: BatchStatus) -> None:
        """Hand the results of a batch to the matches that wait for them. Errors come last: after
        they are on record, so that their requests can be part of another batch."""
        found = ResultCount()
        faults: dict[int, Exception] = {}
        if status.fault:
            fault: Exception = Rejected(
                f"{model.client.place}: the batch was not accepted: {status.fault}",
                answer=status.fault,
            )
            if status.too_large:
                self._hold_back(model, batch)
                fault = Retryable(status.fault, limited=True)
            faults = dict.fromkeys(batch.requests, fault)
            found.failed[status.fault] += len(faults)
        else:
            await self._read(model, batch, status, faults, found)
        await self._journal.end_batch(batch.record.number, list(faults))
        for number, fault in faults.items():
            batch.requests[number].fail(fault)
        if said := found.describe():
            passing = sum(isinstance(each, Retryable) for each in faults.values())
            again = f"; {plural(passing, 'request')} can be retried" if passing else ""
            self._progress.notify(f"{batch.name} ({status.state}): {said}{again}")

    async def _read(
        self,
        model: BatchedModel,
        batch: SentBatch,
        status: BatchStatus,
        faults: dict[int, Exception],
        found: ResultCount,
    ) -> None:
        """Read all results: answers are delivered, `faults` gets the errors by number.

        Raises `Retryable` if the provider should have more results than it sent: they are paid for,
        so they are fetched again before their requests are.
        """
        seen, said = set[int](), ""
        try:
            async for line in model.client.results(status):
                number = number_in(batch, line)
                if line is None or number is None:
                    found.foreign += 1
                elif number in seen:
                    found.repeated += 1
                else:
                    seen.add(number)
                    if number in batch.requests:
                        self._take_line(batch.requests[number], line, number, faults, found)
        except (Refused, Rejected) as fault:
            if fault.kind in ("key", "credit"):
                raise
            said = f" ({fault})"  # the file is gone, or not there yet
        total = batch.record.requests
        wanted = total if status.state in FINISHED else min(status.done, total)
        missing = batch.requests.keys() - seen
        is_short = bool(missing) and len(seen) < wanted
        if is_short:
            batch.fetches += 1
            here = f"{len(seen)} of {plural(wanted, 'result')} could be read{said}"
            if batch.fetches < FETCHES:
                raise Retryable(here)
            self._progress.notify(
                f"{batch.name}: {here} after {FETCHES} tries; Parley sends "
                f"{plural(len(missing), 'request')} again, and you may be billed twice"
            )
        for number in missing:
            found.missing += 1
            # what the provider has counted as done may be billed
            faults[number] = Retryable(f"{batch.name} has no result for it", unsure=is_short)

    def _take_line(
        self,
        request: OpenRequest,
        line: BatchLine,
        number: int,
        faults: dict[int, Exception],
        found: ResultCount,
    ) -> None:
        if line.answer is not None:
            request.deliver(line.answer)
        elif isinstance(line.fault, Filtered):
            request.fail(line.fault)  # counts as an empty reply
        else:
            assert line.fault is not None
            faults[number] = line.fault
            found.failed[str(line.fault)] += 1

    def _hold_back(self, model: BatchedModel, batch: SentBatch) -> None:
        """Send smaller batches, and not at once: the account has too many tokens in its queue."""
        model.most = max(1, batch.record.requests // 2)
        model.hold_until = time.monotonic() + min(LONGEST_HOLD, HOLD * 2**model.holds)
        model.holds += 1

    def _settle_all(self, batch: SentBatch, fault: Exception) -> None:
        for request in batch.requests.values():
            request.fail(fault)

    async def close(self) -> None:
        """Stop following batches. A batch that is being sent first gets its id on record."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                for batch in list(self._sent):
                    await batch.idle.wait()
        for shown in self._progress.batches.values():
            self._progress.notify(
                f"batch {shown.number} of {shown.alias} stays with the provider "
                f"({shown.done} of {plural(shown.total, 'request')} done); when you resume the "
                "run, Parley collects its replies"
            )
        unused = [each for each in self._open.values() if each.call is None and each.answer.done()]
        if unused and not self._stop.reason:
            self._progress.notify(
                f"{plural(len(unused), 'reply', 'replies')} of earlier batches did not fit the "
                "requests of this run and were not used; they may have been billed"
            )
        tasks = [*self._tasks, *([self._watch] if self._watch else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def usd_of(request: OpenRequest) -> float:
    """The money that is reserved for a request."""
    return 0.0 if request.call is None else request.call.reserved_usd()


def number_in(batch: SentBatch, line: BatchLine | None) -> int | None:
    """The number of a result in its batch; None if it belongs to another one."""
    uid, _, number = ("", "", "") if line is None else line.custom_id.rpartition("-")
    # Python refuses to read thousands of digits
    if uid != batch.record.uid or not number.isascii() or not number.isdigit() or len(number) > 9:
        return None
    return int(number) if int(number) < batch.record.requests else None


def endpoint_of(alias: str, who: Participant) -> Endpoint:
    """The endpoint of a model that is called through a batch interface."""
    provider = getattr(who, "provider", None)
    if not isinstance(provider, Endpoint):
        raise UsageError(
            f"{alias} has no batch API that Parley can use: set -M {alias}.batch_api=false to call "
            "it without batches"
        )
    return provider


async def check_batch_interfaces(prepared: Prepared) -> None:
    """Raise an error for a model whose endpoint has no batch interface, if it needs one, or cannot
    be reached."""
    for alias, (who, _) in prepared.participants.items():
        if not uses_batch_api(prepared.config.models[alias]):
            continue
        try:
            await endpoint_of(alias, who).make_batch_client().check_interface()
        except Refused as fault:
            advice = f": set -M {alias}.batch_api=false to call it without batches"
            if fault.kind == "unreachable":
                advice = f"; if the address is wrong, set -M {alias}.base_url=URL"
            raise UsageError(f"{alias}: {fault}{advice}") from None
        finally:
            await who.close()  # its next call connects again
