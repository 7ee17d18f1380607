"""Interviews with a 7B checkpoint of random weights on one GPU: `python benchmarks/gpu/run.py`.

The weights are made first, in a folder in memory. Interactor and evaluator are functions, so all
time is the candidate's. Prints one JSON line for each measurement.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]


def main() -> None:
    """Make the checkpoint if it is not there, and measure."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--folder", type=Path, default=Path("/dev/shm/parley-7b"))
    asked.add_argument("--layers", type=int, default=32)
    asked.add_argument("--width", type=int, default=4096)
    asked.add_argument("--interviews", type=int, default=200)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--tokens", type=int, default=150)
    asked.add_argument("--batch", type=int, nargs="*", default=[0], help="0: as memory allows")
    asked.add_argument("--generate", metavar="ROWSxTOKENS", nargs="*", default=[])
    given = asked.parse_args()
    if not (given.folder / "config.json").is_file():
        show(make=make_checkpoint(given.folder, given.layers, given.width))
    for shape in given.generate:
        rows, tokens = map(int, shape.split("x"))
        show(**generate_plainly(given.folder, rows, tokens))
    for batch in given.batch:
        show(**interview(given, batch))


def show(**facts: Any) -> None:
    """One line of results."""
    print(json.dumps(facts), flush=True)


def make_checkpoint(folder: Path, layers: int, width: int) -> float:
    """A Llama with random weights that never ends a reply by itself; the seconds it took."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    began = time.perf_counter()
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer, inner.decoder = letters, decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=32_000,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    inner.train_from_iterator(texts, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=SPECIAL[0], additional_special_tokens=SPECIAL[1:]
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = transformers.LlamaConfig(
        vocab_size=32_000,
        hidden_size=width,
        intermediate_size=width * 43 // 16,
        num_hidden_layers=layers,
        num_attention_heads=width // 128,
        max_position_embeddings=4096,
        eos_token_id=0,
        bos_token_id=None,
        dtype="bfloat16",
    )
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device), torch.no_grad():
        model = transformers.LlamaForCausalLM(config)
        # It says whole words, which are read back as the tokens they were written in, as with a
        # trained model.
        words = [
            number
            for token, number in tokenizer.get_vocab().items()
            if token.startswith("Ġ") and token[1:].isascii() and token[1:].isalpha()
        ]
        spoken = torch.zeros(len(model.lm_head.weight), 1)
        spoken[words] = 1
        model.lm_head.weight.mul_(spoken)
    model.save_pretrained(folder)
    torch.set_default_dtype(torch.float32)
    del model
    if device == "cuda":
        torch.cuda.empty_cache()
    return time.perf_counter() - began


def generate_plainly(folder: Path, rows: int, tokens: int) -> dict[str, Any]:
    """transformers' own loop with its default cache."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").to("cuda")
    ids = torch.randint(4, 1000, (rows, 300), device="cuda")
    times = []
    for length in (8, tokens):
        torch.cuda.synchronize()
        began = time.perf_counter()
        with torch.inference_mode():
            model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=length,
                min_new_tokens=length,
                do_sample=False,
                pad_token_id=0,
            )
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    del model
    torch.cuda.empty_cache()
    return {"plain generate": f"{rows}x{tokens}", "tokens/s": round(rows * tokens / times[1])}


async def ask_on(view: Any) -> str:
    """The interactor: asks for reasons, whatever the candidate says."""
    return "Why is that so? Explain it in your own words, with one example."


async def grade(view: Any) -> str:
    """The evaluator: the same marks for every reply, so that every interview has all its rounds."""
    from parley.tasks.kieval.rule import ASPECTS, FORM

    marks = {aspect: {"comment": "Fair.", "score": 3} for aspect in (*ASPECTS, "overall")}
    return FORM.write({**marks, "stop": "none"})


def interview(given: argparse.Namespace, batch: int) -> dict[str, Any]:
    """KIEval with the checkpoint as the candidate."""
    import parley
    from parley.providers.hf.checkpoint import Checkpoint

    store = Path(tempfile.mkdtemp())
    questions = [
        {
            "id": f"q{number}",
            "question": f"Which of these is {number} more than {number * 3}? " + "Think. " * 20,
            "choices": [str(number * 4 + step) for step in range(4)],
            "answer": 0,
            "subject": f"sums {number % 7}",
        }
        for number in range(given.interviews)
    ]
    (store / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)))
    engines = []
    keep = Checkpoint.answer

    def watch(self: Checkpoint, call: Any) -> None:
        if self.engine not in engines:
            engines.append(self.engine)
        call.tokens[-1] = min(self.eos)  # it ends by itself: one that is cut would be asked again
        keep(self, call)

    Checkpoint.answer = watch  # type: ignore[method-assign]
    model: dict[str, Any] = {"model": f"hf/{given.folder}", "max_tokens": given.tokens}
    if batch:
        model["batch"] = batch
    began = time.perf_counter()
    result = parley.run(
        "kieval",
        models={"candidate": model},
        roles={"interactor": ask_on, "evaluator": grade},
        dataset=str(store / "questions.jsonl"),
        rounds=given.rounds,
        verify="no",
        concurrency=given.interviews,
        store=store,
        allow_paths=[str(given.folder)],
    )
    took = time.perf_counter() - began
    Checkpoint.answer = keep  # type: ignore[method-assign]
    rows = [row for row in result.data["cost"] if row["alias"] == "candidate"]
    tokens = sum(row["tokens_out"] for row in rows)
    matches = result.matches
    failed = [match for match in matches if match["state"] != "done"]
    shutil.rmtree(store)
    engine = engines[0] if engines else None
    return {
        "interviews": given.interviews,
        "batch": batch or "auto",
        "hours": round(took / 3600, 4),
        "seconds": round(took, 1),
        "calls": sum(row["calls"] for row in rows),
        "tokens_in": sum(row["tokens_in"] for row in rows),
        "tokens_out": tokens,
        "tokens/s": round(tokens / took),
        "devices": [
            {name: row[name] for name in ("device", "engine", "seconds", "gpu_hours", "fallback")}
            for row in result.data["devices"]
        ],
        "not done": len(failed),
        "state": result.state,
        "matches": len(matches),
        "engine": type(engine).__name__,
        "passes": getattr(engine, "passes", None),
        "reused": getattr(engine, "reused", None),
        "seconds by part": getattr(engine, "spent", None),
        "why": str(failed[0].get("reason")) if failed else "",
    }


if __name__ == "__main__":
    sys.exit(main())
