"""What tests of workers share: runs for workers, workers in this process, and a comparison with the
same run played by one process."""

import asyncio

from parley import Result
from parley.cli.worker import summarise
from parley.config.experiment import Experiment
from parley.options import from_keywords
from parley.runs.progress import Progress, StopSignal
from parley.runs.run_context import RunContext
from parley.runs.start import make_new_run, play_new_run
from parley.runs.worker import prepare_worker, serve_run
from parley.store import open_store, read_run
from parley.store.shared_runs import require_shared

BOTS = {"a": "bot/free-rider", "b": "bot/altruist", "c": "bot/random"}


def prepare(task="public_goods", models=BOTS, workers=2, instruments=(), evolve=None, **options):
    """A run that is prepared for workers."""
    experiment = Experiment(task, evolve=dict(evolve or {}))
    experiment.contestants = [experiment.add_model(f"{a}={model}") for a, model in models.items()]
    for role, model in dict(instruments).items():
        experiment.instruments[role] = [experiment.add_model(model)]
    for alias, each in options.pop("model_options", {}).items():
        experiment.models[alias].update(each)
    experiment.params |= options.pop("params", {})
    if dataset := options.pop("dataset", None):
        experiment.set_dataset(dataset)
    experiment.given |= from_keywords(**options)
    experiment.workers = workers
    return experiment.prepare()


def create(prepared, url):
    """A new run in a database, for workers."""
    store = open_store(url)
    return asyncio.run(require_shared(store).create_shared(make_new_run(prepared, store)))


async def serve(ref, prepare_again=prepare_worker, stop_signal=None):
    """A worker in this process."""
    prepared = prepare_again(ref, task_file=None, allowed=Experiment("").allowed, unsafe=False)
    context = RunContext(Progress(), stop_signal or StopSignal(), summarise)
    return await serve_run(ref, prepared, context, 4)


def serve_together(ref, workers=3, **given):
    """Several workers in this process, until the run is over."""

    async def together():
        return await asyncio.gather(*(serve(ref, **given) for _ in range(workers)))

    return asyncio.run(together())


def play_alone(prepared, folder):
    """The same run in one process, in a folder."""
    return asyncio.run(play_new_run(prepared, open_store(folder))).ref


def record_of(ref):
    """What must be the same whoever played a run."""
    with read_run(ref) as reader:
        matches = [
            (row.spec, row.state, row.reason, row.rounds, reader.scores.of(row.number))
            for row in reader.matches.read()
        ]
        calls = {
            row.number: [
                (c.round, c.seat, c.attempt, c.view_digest, c.reply.content)
                for c in reader.calls.of(row.number)
            ]
            for row in reader.matches.read()
        }
        notes = [note.to_dict() for note in reader.notes.read()]
        info = reader.info
        ended = info.state, info.status, info.reason, info.planned
    return {
        "matches": matches,
        "calls": calls,
        "notes": notes,
        "ended": ended,
        "signature": [row.signature for row in Result(ref).part("results")],
    }
