"""Tasks of a writer and an editor from YAML: what they play, what is measured, what is wrong in a
file, by line and key."""

from pathlib import Path

import pytest

from parley import Seat, UsageError, resume, run
from parley.config.task_catalogue import task_class
from parley.errors import ReplayError
from parley.tasks._common.overlap import compute_overlap
from parley.testing.by_hand import ByHand, Speaking, play
from tests.cli.test_cli import parley as command

EXAMPLES = Path(__file__).parents[2] / "examples"
POET, CRITIC, JUDGE = Seat("poet"), Seat("critic"), Seat("judge", 1)
TEXT = """\
kind: task
name: verse
writer: poet
editor: critic
prompts:
  write: Write about {subject}.
  review: "On {subject}: {said} Comment."
rubric:
  poet: is it good?
  critic: was it true?
"""
ITEMS = """\
items:
  - {id: rain, subject: rain, reference: The rain falls on the roof.}
  - {id: snow, subject: snow, reference: The snow lies on the field.}
"""
FIELDS = "fields: [subject, reference]\n"
CHRF = "metric: chrf\nlanguage: en\n"
BOMB = "about: x\nitems:\n  - &b0 {subject: a}\n" + "".join(
    f"  - &b{n} {{subject: [{', '.join([f'*b{n - 1}'] * 10)}]}}\n" for n in range(1, 9)
)


@pytest.fixture
def file(tmp_path):
    def written(text, name="verse.yaml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return written


def said(
    poet, critic, judge='{"poet": {"basis": "b", "score": 3}, "critic": {"basis": "b", "score": 8}}'
):
    replies = {POET: poet, CRITIC: critic, JUDGE: [judge]}
    return {
        seat: Speaking(lambda view, given=given: given[min(view.reply_count, len(given) - 1)])
        for seat, given in replies.items()
    }


def test_a_file_is_a_task_like_any_other(file):
    kind = task_class(file(TEXT + ITEMS))
    assert (kind.name, list(kind.roles)) == ("verse", ["poet", "critic", "judge"])
    assert kind.roles["judge"].min_seats == 1  # nothing is measured, so somebody must judge
    assert [item.id for item in kind.items.bundled] == ["rain", "snow"]
    table = ByHand(kind(), item=kind.items.bundled[0])
    assert table.asked.seats == (POET,)
    assert table.asked.text == "Write about rain."
    table.answer("It rains.")
    assert "It rains." in table.asked.text
    table.answer("Too short.")
    assert "Write about rain." in table.asked.text  # the judge is told what was asked
    assert "is it good?" in table.asked.text
    table.answer(
        {
            JUDGE: {
                role: {"basis": "", "score": score} for role, score in (("poet", 3), ("critic", 8))
            }
        }
    )
    assert table.scores == {POET: {"judge": 3}, CRITIC: {"judge": 8}}


def test_the_word_that_ends_it_is_the_files(file):
    kind = task_class(file(TEXT + ITEMS + "rounds: 5\nover: basta\n"))
    assert kind().rounds == 5
    assert play(kind(), said(["a"], ["over"]), item=kind.items.bundled[0]).rounds == 11
    found = play(kind(), said(["a"], ["no", "Basta!"]), item=kind.items.bundled[0])
    assert found.rounds == 5  # two versions, two answers, the judge
    assert "`basta`" in kind.prompts()["review_again"].text.replace("{over}", "basta")


def test_comments_are_worth_what_the_writer_makes_of_them(file):
    kind = task_class(file(TEXT + ITEMS + CHRF))
    assert kind.roles["judge"].min_seats == 0
    item = kind.items.bundled[0]
    found = play(kind(rounds=2), said(["Rain.", item.reference], ["Longer."]), item=item)
    first = compute_overlap("Rain.", item.reference, "en").chrf
    assert found.scores[POET] == {"chrf": 1, "judge": 3}
    assert found.scores[CRITIC] == pytest.approx({"chrf": 1, "improvement": 1 - first, "judge": 8})


def test_a_text_of_the_editors_own_is_measured(file):
    kind = task_class(file(TEXT + ITEMS + CHRF + "answers: text\n"))
    item = kind.items.bundled[0]
    found = play(kind(), said(["Rain."], [item.reference]), item=item)
    first = compute_overlap("Rain.", item.reference, "en").chrf
    assert found.scores[POET]["chrf"] == first
    assert found.scores[CRITIC] == pytest.approx({"chrf": 1, "improvement": 1 - first, "judge": 8})


def test_it_runs_resumes_and_refuses_another_rule(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = file(TEXT + ITEMS + CHRF)
    result = run(path, ["bot/random", "bot/null"], store=tmp_path / "runs")
    assert result.state == "done"
    assert {row["item"] for row in result.matches} == {"rain", "snow"}
    assert "chrf:nrefs=1" in result.data["results"][0]["signature"]
    assert resume(result.path).data["results"] == result.data["results"]
    file("# only a comment\n" + TEXT + ITEMS + CHRF)
    assert resume(result.path).state == "done"
    for changed, words in (
        (CHRF + "over: basta\n", "another rule of verse"),
        (CHRF + "rounds: 2\n", "another rule of verse"),
    ):
        file(TEXT + ITEMS + changed)
        with pytest.raises(ReplayError, match=words):
            resume(result.path)
    file(TEXT.replace("Write about", "Sing of") + ITEMS + CHRF)
    with pytest.raises(ReplayError, match=r"prompt verse\.write"):
        resume(result.path)


def test_a_dataset_takes_the_place_of_the_items_in_the_file(file, tmp_path):
    (tmp_path / "own.jsonl").write_text('{"subject": "fog", "reference": "Fog."}\n')
    result = run(
        file(TEXT + FIELDS + CHRF),
        ["bot/random", "bot/null"],
        dataset=tmp_path / "own.jsonl",
        store=tmp_path / "runs",
    )
    assert {row["item"] for row in result.matches} == {"1"}
    with pytest.raises(UsageError, match="needs items"):
        run(file(TEXT + FIELDS + CHRF), ["bot/random", "bot/null"], store=tmp_path / "runs")


def test_an_experiment_names_a_task_file_beside_it(file, tmp_path):
    file(TEXT + ITEMS + CHRF)
    text = (
        "kind: experiment\ntask: verse.yaml\nset: {rounds: 2}\n"
        "models: {a: {model: bot/random}, b: {model: bot/null}}\n"
    )
    result = run(file(text, "experiment.yaml"), store=tmp_path / "runs")
    assert (result.data["run"]["task"], result.data["run"]["params"]["rounds"]) == ("verse", 2)


def test_the_examples_play_from_the_command(tmp_path):
    bots = ("-m", "bot/random", "-m", "bot/null")
    done = command(
        "run",
        EXAMPLES / "poem.yaml",
        *bots,
        "--role",
        "judge=bot/random",
        "--set",
        "rounds=1",
        cwd=tmp_path,
    )
    assert "poem|rounds:1" in done.out
    assert "judge" in command("run", EXAMPLES / "poem.yaml", *bots, cwd=tmp_path, code=2).err
    assert "improvement" in command("run", EXAMPLES / "summary.yaml", *bots, cwd=tmp_path).out
    assert "poem.rate_critic" in command("tasks", EXAMPLES / "poem.yaml", cwd=tmp_path).out


@pytest.mark.parametrize("bot", ["null", "injector", "forger"])
def test_hostile_bots_do_not_speak_as_the_judge(tmp_path, bot):
    judge = {
        "j": lambda view: (
            '{"poet": {"basis": "b", "score": 2}, "critic": {"basis": "b", "score": 2}}'
        )
    }
    result = run(
        EXAMPLES / "poem.yaml", ["bot/random", f"bot/{bot}"], roles={"judge": judge}, store=tmp_path
    )
    assert {row["mean"] for row in result.data["results"]} == {2}


EVERYWHERE = "{subject} {reference} {writer} {editor} {over} {rounds} {vote} "


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("write", EVERYWHERE + "{number}"),
        ("review", EVERYWHERE + "{number} {said}"),
        ("revise", EVERYWHERE + "{number} {said}"),
        ("review_again", EVERYWHERE + "{number} {said}"),
        ("judge", EVERYWHERE + "{asked} {roles} {rubric} {conversation}"),
        ("rate_poet", EVERYWHERE + "{asked}"),
    ],
)
def test_a_replacement_may_say_what_the_file_may_say(file, tmp_path, name, words):
    prompt = tmp_path / "own.txt"
    key = (
        f"  poet: is it good?\n|  poet: '{words}'\n"
        if name == "rate_poet"
        else f"prompts:\n|prompts:\n  {name}: '{words}'\n"
    )
    plain = TEXT.replace("  write: Write about {subject}.\n", "") if name == "write" else TEXT
    plain = (
        plain.replace('  review: "On {subject}: {said} Comment."\n', "")
        if name == "review"
        else plain
    )
    old, new = key.split("|")
    models, judges = ["bot/random", "bot/null"], {"judge": "bot/random"}
    inside = run(
        file(plain.replace(old, new) + ITEMS, "in.yaml"),
        models,
        roles=judges,
        rounds=2,
        store=tmp_path / "r",
    )
    path = file(TEXT + ITEMS)
    replaced = {f"verse.{name}": words}
    outside = run(path, models, roles=judges, rounds=2, prompts=replaced, store=tmp_path / "r")
    assert [row["mean"] for row in inside.data["results"]] == [
        row["mean"] for row in outside.data["results"]
    ]
    prompt.write_text(words + " {nonsense}")
    bad = (
        "run",
        path,
        "-m",
        "bot/random",
        "-m",
        "bot/null",
        "--role",
        "judge=bot/random",
        "--prompt",
        f"verse.{name}={prompt}",
    )
    assert "variable of prompt" in command(*bad, cwd=tmp_path, code=2).err
    prompt.write_text("{writer}")
    if name not in ("write", "rate_poet"):
        assert "must contain {" in command(*bad, cwd=tmp_path, code=2).err


def test_an_own_prompt_is_not_called_a_replacement(file):
    with pytest.raises(UsageError) as wrong:
        task_class(file(TEXT.replace("{said} ", "") + ITEMS))
    assert "replacement" not in str(wrong.value)


def test_a_whole_number_may_be_written_with_a_point(file):
    kind = task_class(file(TEXT + ITEMS + "rounds: 2.0\n"))
    assert play(kind(), said(["a"], ["b"]), item=kind.items.bundled[0]).rounds == 5


def test_a_file_says_how_votes_are_counted(file):
    kind = task_class(file(TEXT + ITEMS + "vote: median\n"))
    assert kind().params == {"rounds": 1, "vote": "median"}
    table = ByHand(kind(), item=kind.items.bundled[0], judge=3)
    table.answer("It rains.")
    table.answer("Too short.")
    both = {
        score: {role: {"basis": "", "score": score} for role in ("poet", "critic")}
        for score in (1, 2, 9)
    }
    table.answer(dict(zip(table.asked.seats, both.values(), strict=True)))
    assert table.scores[POET] == {"judge": 2}


@pytest.mark.parametrize("kind", ["kind: tsk\n", "kind: [task]\n", ""])
def test_a_task_file_without_its_kind_is_told_what_to_say(file, kind):
    with pytest.raises(UsageError, match=r"line 1: .*kind: task"):
        run(file(TEXT.replace("kind: task\n", kind)), ["bot/random"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT.replace("name: verse\n", ""), "line 1: the key `name` is missing"),
        (
            TEXT.replace("name: verse", "name: My Verse"),
            "line 2: name: expected a name of lowercase letters",
        ),
        (TEXT + "round: 3\n", "line 11: round: unknown key 'round'; did you mean 'rounds'"),
        (TEXT + "rounds: 0\n", "line 11: rounds: expected a whole number, 1 or more, found 0"),
        (TEXT + "answers: songs\n", "line 11: answers: expected comments or text"),
        (
            TEXT.replace("editor: critic", "editor: poet"),
            "line 4: editor: writer, editor and judge need three different names",
        ),
        (
            TEXT.replace("  write: Write about {subject}.\n", ""),
            "line 5: prompts: the key `write` is missing",
        ),
        (
            TEXT + ITEMS.replace("subject", "topic"),
            r"line 6: prompts\.write: .*variable.*'subject'",
        ),
        (TEXT.replace("{said} ", "") + ITEMS, r"line 7: prompts\.review: .* must contain {said}"),
        (
            TEXT.replace("  critic: was it true?\n", "") + ITEMS,
            "line 8: rubric: the key `critic` is missing",
        ),
        (
            TEXT.replace("  critic:", "  critics:") + ITEMS,
            "line 10: rubric.critics: unknown role 'critics'; did you mean 'critic'",
        ),
        (
            TEXT + ITEMS + "metric: blue\n",
            "line 14: metric: expected bleu, chrf or package.module:function, found blue",
        ),
        (
            TEXT + ITEMS + "metric: bleu\n",
            "line 14: metric: the metric `bleu` needs items with a field `reference`, and the "
            "key `language`",
        ),
        (
            TEXT + ITEMS + "metric: nowhere:to\n",
            "line 14: metric: nowhere:to: the function must be in the folder",
        ),
        (
            TEXT + ITEMS + "  - {id: fog, subject: fog}\n",
            r"line 14: items\[2\]: .*has no value for reference",
        ),
        (
            TEXT + ITEMS + "  - {id: a, subject: b, reference: c, extra: d}\n",
            r"line 14: items\[2\]: the earlier items have no field `extra`",
        ),
        (
            TEXT + "items:\n  - {said: x}\n",
            r"line 12: items\[0\]\.said: `said` has a special meaning",
        ),
        (
            TEXT + "fields: [subject, said]\n",
            r"line 11: fields\[1\]: `said` has a special meaning",
        ),
        (TEXT + "fields: [subject, class]\n", r"line 11: fields\[1\]: `class` is a Python keyword"),
        (
            TEXT + "fields: [subject, subject]\n",
            r"line 11: fields\[1\]: the field `subject` is listed twice",
        ),
        (
            TEXT + "items:\n  - {subject: a, my key: x}\n",
            r"line 12: items\[0\]\.my key: expected a field name",
        ),
        (
            TEXT + "items:\n  - {subject: [a, b]}\n",
            r"line 12: items\[0\]\.subject: expected a string or a number, found a list",
        ),
        (
            TEXT + "items:\n  - {subject: }\n",
            r"line 12: items\[0\]: item 1 has no value for subject",
        ),
        (
            TEXT.replace("kind: task", "kind: tsk"),
            "line 1: kind: expected `kind: task`, found 'tsk'",
        ),
        (TEXT.replace("kind: task\n", ""), "line 1: the key `kind` is missing: add `kind:"),
        (
            TEXT.replace("  review:", "  reviev:"),
            r"line 7: prompts\.reviev: unknown key 'reviev'; did you mean 'review'",
        ),
        (
            TEXT + ITEMS.replace("id: snow", "id: rain"),
            r"line 13: items\[1\]: .*line 12 .*id 'rain'",
        ),
        (TEXT, r"line 6: prompts\.write: .*subject.*add `items` or `fields`"),
        (TEXT + "vote: most\n", "line 11: vote: expected mean or median, found 'most'"),
        (
            TEXT.replace("  critic: was it true?", "  critic: true in {number}?") + ITEMS,
            r"line 10: rubric\.critic: .*'number'",
        ),
        (
            TEXT.replace("writer: poet", "writer: referee"),
            "line 3: writer: `referee` cannot be the name of a role",
        ),
        (
            TEXT.replace("writer: poet", "writer: class"),
            "line 3: writer: `class` cannot be the name of a role",
        ),
        (
            TEXT.replace("Write about {subject}.", "[a, b]"),
            r"line 6: prompts\.write: expected the prompt .*, found a list",
        ),
        (
            TEXT.replace("Write about {subject}.", "12"),
            r"line 6: prompts\.write: expected the prompt .*, found 12",
        ),
        (
            TEXT.replace("Write about {subject}.", "!!binary aGk="),
            r"line 6: prompts\.write: expected the prompt .*, found b'hi'",
        ),
        (
            TEXT.replace("Write about {subject}.", "!!python/name:os.system"),
            "line 6: not readable as YAML: .*tag",
        ),
        (
            TEXT + "items: !!python/object/apply:os.system [echo]\n",
            "line 11: items: .*!!python/object/apply:os.system",
        ),
        (TEXT + "items: !!set {a}\n", "line 11: items: .*!!set"),
        (TEXT + "rounds: 99999999999999999999\n", "line 11: rounds: expected a whole number"),
        (TEXT + "name: other\n", "line 11: the key `name` is given twice .first on line 2"),
        (
            TEXT + "items:\n  - {id: a, subject: b, id: c}\n",
            r"line 12: the key `items\[0\]\.id` is given twice",
        ),
        (TEXT + "items: &a [*a]\n", "line 11: items.*refers to itself"),
        (
            TEXT + "items:\n  - {subject: yes}\n",
            r"line 12: items\[0\]\.subject: .*found True; .*quotes",
        ),
        (TEXT + 'about: "\\uD800"\n', "line 11: about: .*half of a surrogate pair"),
        (TEXT + "over: ___\n", "line 11: over: expected one word"),
        (TEXT + BOMB, "line 1.: items: .*more than 100,000 values"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_key(file, text, words):
    with pytest.raises(UsageError, match=words):
        task_class(file(text))
