"""Models that answer the same to the same words: one observation, exact for its prompts, ranked."""

import asyncio
import json
import re
from statistics import fmean

import pytest

from parley import Code, Paragraph, Problem, Question, WordPair, run_async
from parley.config.prepare import prepare_resume
from parley.options import from_keywords
from parley.runs.progress import Progress
from parley.runs.start import resume_run
from parley.store import read_run
from parley.tasks.kieval.rule import ASPECTS
from parley.testing.server import Server, says, sent

WORDS = ["海阔天空", "空前绝后", "后发制人", "人定胜天", "天长地久", "久别重逢", "逢山开路",
         "路过四海"]  # each goes on with the next  # fmt: skip
PAIRS = [("cake", "bread"), ("lake", "pond"), ("boot", "shoe"), ("hare", "mole"), ("oak", "elm"),
         ("jazz", "rock")]  # fmt: skip
QUESTIONS = [
    Question(f"q{n}", f"Which is right in case {n}?", "B", ("No", "Yes", "Never"), "any")
    for n in range(6)
]
PARAGRAPHS = [
    Paragraph(f"p{n}", f"Der Satz Nummer {n} ist kurz.", f"The sentence number {n} is short.",
              "de", "en")
    for n in range(6)
]  # fmt: skip
PROBLEM = Problem(
    "add",
    "Add 3 to a number.",
    ("assert add(1) == 4",),
    signature="def add(a)",
    names=("add",),
    reference="def add(a):\n    return a + 3",
)


def last(messages):
    return messages[-1]["content"]


def invest(model, messages):
    return json.dumps({"reason": "always", "coins": {"good": 0, "poor": 4}[model]})


def choose(model, messages):
    return "Answer: " + {"good": "B", "poor": "A"}[model]


def translate(model, messages):
    number = re.search(r"Nummer (\d)", messages[0]["content"])[1]
    return {"good": f"The sentence number {number} is short.", "poor": "Words, words."}[model]


def program(model, messages):
    if "You are the reviewer" in messages[0]["content"]:
        return "Nothing to say."
    return Code().write(f"def add(a):\n    return a + {3 if model == 'good' else 99}")


def interview(model, messages):
    if model == "interactor":
        return "Why?"
    if model == "evaluator":
        mark = 4 if "plainly" in last(messages) else 1
        marks = {each: {"comment": "c", "score": mark} for each in (*ASPECTS, "overall")}
        return json.dumps({**marks, "stop": "none"})
    return {"good": "Answer: B, and plainly so.", "poor": "Answer: A"}[model]


def guess(model, messages):
    said = " ".join(each["content"] for each in messages if each["role"] == "user")
    other = next(b for pair in PAIRS for a, b in (pair, pair[::-1]) if re.search(rf"\b{a}\b", said))
    fields = set(re.findall(r'"(\w*player\w*)"', said))
    return json.dumps(
        {"description": f"What {model} has."}
        | dict.fromkeys(fields, other if model == "good" else "nothing")
    )


def continue_chain(model, messages):
    place = max(range(len(WORDS)), key=lambda at: last(messages).rfind(WORDS[at]))
    return WORDS[(place + 1) % len(WORDS)] if model == "good" else "不知道"


TASKS = {
    "public_goods": (invest, {"repeats": 3}),
    "qa": (choose, {"items": QUESTIONS, "repeats": 3}),
    "translation": (translate, {"items": PARAGRAPHS, "repeats": 3, "pair": "de-en"}),
    "code_review": (
        program,
        {"items": [PROBLEM], "repeats": 3, "rounds": 1, "unsafe_run_code_without_isolation": True},
    ),
    "kieval": (interview, {"items": QUESTIONS[:1], "repeats": 3, "rounds": 1, "verify": "no"}),
    "word_guessing": (
        guess,
        {"items": [WordPair(a, a, b, "any") for a, b in PAIRS], "repeats": 6, "rounds": 1},
    ),
    "idiom_solitaire": (
        continue_chain,
        {"repeats": 24, "rounds": 4, "traditional": False, "common": 0},
    ),
}


async def play(name, tmp_path, models=("good", "poor"), speak=None, **more):
    """A run of models that a real server answers for, by nothing but the words it is sent."""
    reply, options = TASKS[name]

    async def act(asked, writer):
        said = (speak or reply)(asked.body["model"], asked.body["messages"])
        await sent(says(said))(asked, writer)

    options = {**options, **more}
    if name == "idiom_solitaire":
        options["dictionary"] = [str(tmp_path / "words.txt")]
        (tmp_path / "words.txt").write_text("\n".join(WORDS), encoding="utf-8")
    async with Server(act) as server:

        def at(model):
            return {"model": f"openai-compatible/{model}", "base_url": server.url}

        if name == "kieval":
            options["roles"] = {each: {each: at(each)} for each in ("interactor", "evaluator")}
        return await run_async(
            name, {model: at(model) for model in models}, store=tmp_path, **options
        )


@pytest.fixture
def told(monkeypatch):
    """The notices of a run while it is played."""
    found = []
    notify = Progress.notify

    def listen(self, text):
        found.extend([text] if text else [])
        notify(self, text)

    monkeypatch.setattr(Progress, "notify", listen)
    return found


@pytest.mark.parametrize("name", TASKS)
def test_a_deterministic_endpoint_is_found_out_and_its_differences_are_ranked(name, told, tmp_path):
    result = asyncio.run(play(name, tmp_path))
    assert result.state == "done"
    assert any("more repeats add nothing" in line for line in told)
    text = result.render()
    assert "the models always gave the same replies: " in text
    assert "a temperature above 0, more items, or other seat orders" in text
    leading = result.data["leading"]
    ranks = {
        (rank["role"], rank["alias"]): (rank["low"], rank["high"])
        for rank in result.data["ranks"]
        if leading[rank["role"]] == rank["metric"]
    }
    ranked = [role for role in leading if role != "reviewer"]
    assert ranked
    for role in ranked:
        assert ranks[role, "good"] == (1, 1)
        assert ranks[role, "poor"] == (2, 2)


def test_identical_blocks_are_one_observation_exact_for_their_prompts(tmp_path):
    result = asyncio.run(play("public_goods", tmp_path, repeats=4))
    rows = result.data["results"]
    assert {(row["interval"], row["low"], row["high"]) for row in rows} == {("exact", None, None)}
    assert {(row["blocks"], row["matches"]) for row in rows} == {(1, 4)}
    assert result.data["identical"] == {"plays": 4, "blocks": 4, "different": 1, "exact": True}
    (pair,) = result.data["pairs"]
    assert (pair["difference"], pair["p"], pair["low"]) == (pytest.approx(20), None, None)
    assert "exact for these prompts" in result.render()
    assert "exact for these prompts" in result.render(part="pairs")


def test_equal_models_share_their_place(tmp_path):
    def speak(model, messages):
        return invest("poor", messages)

    result = asyncio.run(play("public_goods", tmp_path, speak=speak))
    assert result.data["identical"]["exact"]
    assert {(rank["low"], rank["high"]) for rank in result.data["ranks"]} == {(1, 2)}


def test_two_identical_blocks_are_too_few_to_say_so(told, tmp_path):
    result = asyncio.run(play("public_goods", tmp_path, repeats=2))
    assert result.data["identical"] is None
    assert not told
    assert {row["interval"] for row in result.data["results"]} == {"bounded"}


def test_one_other_answer_to_the_same_words_and_nothing_is_called_deterministic(told, tmp_path):
    asked = []

    def speak(model, messages):
        asked.append(1)
        return json.dumps({"reason": "r", "coins": 7 if len(asked) == 12 else 5})

    result = asyncio.run(play("public_goods", tmp_path, speak=speak, repeats=6, concurrency=1))
    assert result.data["identical"] is None
    assert not told
    assert {row["blocks"] for row in result.data["results"]} == {6}


def test_a_run_that_goes_on_counts_what_was_played_before(told, tmp_path):
    """The notice comes after the third play, also if two of them were before a stop."""

    async def whole():
        async def act(asked, writer):
            said = invest(asked.body["model"], asked.body["messages"])
            await sent(says(said))(asked, writer)

        async with Server(act) as server:
            models = {
                model: {"model": f"openai-compatible/{model}", "base_url": server.url}
                for model in ("good", "poor")
            }
            begun = await run_async(
                "public_goods", models, repeats=3, max_calls=20, concurrency=1, store=tmp_path
            )
            assert begun.state == "stopped"
            assert not told
            prepared = prepare_resume(begun.ref, from_keywords(max_calls=30))
            return await resume_run(prepared, begun.ref)

    assert asyncio.run(whole()).state == "done"
    assert sum("more repeats add nothing" in line for line in told) == 1


def test_means_are_over_all_blocks_where_some_are_identical(tmp_path):
    """Who wins hangs on the first idiom, and idioms are drawn unequally often."""

    def speak(model, messages):
        said = "".join(each["content"] for each in messages)
        lucky = min(WORDS, key=lambda word: said.find(word) if word in said else len(said))
        helped = "good" if lucky in WORDS[:3] else "poor"
        return continue_chain("good" if model == helped else "poor", messages)

    result = asyncio.run(play("idiom_solitaire", tmp_path, speak=speak))
    identical = result.data["identical"]
    assert 1 < identical["different"] < identical["blocks"] == 24
    assert not identical["exact"]  # another idiom may come up in the next block
    with read_run(result.ref) as reader:
        scores = list(reader.scores.read())
    rows = result.data["results"]
    assert any(0 < row["mean"] < 1 for row in rows if row["metric"] == "win")
    for row in rows:
        own = [
            (each.block, each.value)
            for each in scores
            if (each.alias, each.seat.role, each.metric)
            == (row["alias"], row["role"], row["metric"])
        ]
        blocks = {block: [] for block, _ in own}
        for block, value in own:
            blocks[block].append(value)
        assert row["mean"] == pytest.approx(fmean(map(fmean, blocks.values())))
        assert row["blocks"] == identical["different"]
        assert row["interval"] != "exact"


def test_repeats_add_something_where_judges_vary(told, tmp_path):
    given = []

    def speak(model, messages):
        reply = interview(model, messages)
        if '"score": 4' in reply:
            given.append(1)
            return reply.replace('"score": 4', f'"score": {3 + len(given) % 2}')
        return reply

    result = asyncio.run(play("kieval", tmp_path, speak=speak, repeats=4, concurrency=1))
    assert result.state == "done"
    assert not any("more repeats add nothing" in line for line in told)
    assert result.data["identical"] is None
    assert "More repeats add nothing" not in result.render()
