"""Held-out items: neither they nor what asks the same is ever remembered."""

from dataclasses import replace

from tests.runs.test_recall import evolve, questions, rows


def test_what_asks_the_same_as_a_held_out_item_is_not_remembered_either(tmp_path):
    twins = [replace(each, id=f"{each.id}{end}") for each in questions(8) for end in "xy"]
    settings = {"stages": 1, "held_out": 0.5, "k": 50, "keep": "all"}
    result = evolve(tmp_path, items=twins, evolve=settings)
    held_out = result.part("evolve").gains
    assert {row.item_set for row in held_out} == {"all", "practised", "held_out"}
    matches, recalled, _ = rows(result)
    remembered = {matches[each.match].item[:-1] for row in recalled for each in row.shown}
    kept = {matches[each.match].item for row in recalled for each in row.shown}
    # of every question that is remembered, both forms are: none of them is held out
    assert remembered
    assert kept == {f"{name}{end}" for name in remembered for end in "xy"}
