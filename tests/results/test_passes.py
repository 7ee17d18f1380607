"""Pass@K: samples that were made with different partners are not pooled."""

from dataclasses import dataclass

import pytest

from parley import Items, Metric, Question, Referee, Role, Scores, Seat, Task, Text, run

ITEMS = [Question(f"q{n}", "Well?", "yes") for n in range(3)]


@dataclass(frozen=True)
class Drafts(Task):
    """The writer succeeds if the editor helps."""

    roles = {"writer": Role(), "editor": Role()}
    items = Items(Question)

    async def play(self, referee: Referee, writer: Seat, editor: Seat) -> Scores:
        said = await referee.ask(editor, "Help?", expect=Text())
        return {writer: {"pass": float(said == "yes")}, editor: {}}

    def metrics(self, seats):
        return [Metric("pass", 0, 1, epsilon=0.1, success=1, roles=("writer",))]


def test_samples_with_different_reviewers_are_not_pooled(tmp_path):
    """With b every sample passes, with c none does: a has Pass@2 = (1 + 0) / 2, where the four
    samples together would give 1 − 1/6."""
    models = {"a": lambda view: "yes", "b": lambda view: "yes", "c": lambda view: "no"}
    found = run(Drafts(), models, items=ITEMS, repeats=2, store=tmp_path)
    rates = {(row["alias"], row["k"]): row for row in found.data["passes"]}
    assert set(rates) == {(alias, k) for alias in "abc" for k in (1, 2)}  # not 3: two with each
    assert rates["a", 2]["mean"] == pytest.approx(0.5)
    assert rates["c", 2]["mean"] == 1
    assert (rates["a", 2]["samples"], rates["a", 2]["items"]) == (2, 3)
    assert "the samples of an item are its matches" in found.render(part="passes")
