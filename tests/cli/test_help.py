"""Help texts: each begins with a verb, ends with a full stop, and uses plain words."""

import re

import click
import pytest

from parley.cli import COMMANDS, Lazy, command

# The verbs that help texts begin with. Add one here if a new option needs it.
VERBS = {
    "Add", "Assume", "Change", "Check", "Choose", "Compare", "Configure", "Delete", "Do",
    "Estimate", "Evaluate", "Give", "Judge", "Let", "List", "Listen", "Load", "Make",
    "Play", "Print", "Read", "Repeat", "Replace", "Resume", "Round", "Run", "Score", "Serve",
    "Send", "Set", "Show", "Simulate", "Skip", "Spend", "Start", "Stop", "Use", "Vote", "Wait",
    "Write",
}  # fmt: skip
# Turns of phrase that sound foreign in English, or leave open who acts.
FOREIGN = re.compile(
    r"\b(whoever|whom|whereof|wherein|thereby|therein|hereby|so many|so much|is told|are told"
    r"|is asked|are asked|somebody|nobody|anybody|one's own|of its own|beside each other"
    r"|meanwhile|repeat it|at the most|go on|goes on|what is|what was|what it|who is|who are)\b",
    re.IGNORECASE,
)


def commands():
    """Every command with its name, including commands of a group."""
    context = click.Context(command, info_name="parley")
    found = {"parley": command}
    for name in COMMANDS:
        found[name] = Lazy.get_command(command, context, name)
        if isinstance(found[name], click.Group):
            found |= {f"{name} {each}": sub for each, sub in found[name].commands.items()}
    return found


def help_texts():
    """Every help text: of commands, of their options, and the lines of `parley --help`."""
    for name, line in COMMANDS.items():
        yield pytest.param(line, id=f"{name}, in the list")
    for name, each in commands().items():
        yield pytest.param(each.help or "", id=name)
        for option in each.params:
            if isinstance(option, click.Option):
                yield pytest.param(option.help or "", id=f"{name} {option.opts[0]}")


@pytest.mark.parametrize("text", list(help_texts()))
def test_a_help_text_begins_with_a_verb_and_is_a_sentence(text):
    first = text.split("\n\n")[0]
    verb = first.partition(" ")[0]
    assert verb in VERBS, f"begin with a verb in the imperative, not {verb!r}: {first}"
    assert first.endswith("."), f"end with a full stop: {first}"
    assert not (found := FOREIGN.search(text)), f"say {found[0]!r} in plain words: {text}"


def test_every_verb_in_the_list_is_used():
    used = {parameter.values[0].partition(" ")[0] for parameter in help_texts()}
    assert used - {""} == VERBS
