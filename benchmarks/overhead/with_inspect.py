"""The dialogue in inspect-ai: one sample a match, a solver that asks two model roles in turn, its
log as by default."""

from __future__ import annotations

import os

os.environ["FIXED_API_KEY"] = "none"

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, GenerateConfig, Model, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from workload import OPTIONS, arguments, measure, question

given = arguments()


@solver
def haggling() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        models = [get_model(role="opener"), get_model(role="responder")]
        conversations: tuple[list, list] = ([], [])
        said = ""
        for number in range(given.calls):
            messages = conversations[number % 2]
            messages.append(ChatMessageUser(content=question(number, said)))
            output = await models[number % 2].generate(messages)
            said = output.completion
            messages.append(output.message)
        state.messages, state.output = conversations[0], output
        return state

    return solve


def player() -> Model:
    config = GenerateConfig(max_connections=given.concurrency, **OPTIONS)
    return get_model(
        "openai-api/fixed/fixed", base_url=given.url, api_key="none", config=config, memoize=False
    )


def work() -> None:
    task = inspect_ai.Task(
        dataset=MemoryDataset([Sample(str(n)) for n in range(given.matches)]), solver=haggling()
    )
    (log,) = inspect_ai.eval(
        task,
        model=player(),
        model_roles={"opener": player(), "responder": player()},
        max_samples=given.concurrency,
        max_connections=given.concurrency,
        display="none",
        log_dir=given.folder,
    )
    if log.status != "success":
        raise SystemExit(f"the evaluation ended {log.status}: {log.error}")


measure(given, work, lambda _: {"version": inspect_ai.__version__})
