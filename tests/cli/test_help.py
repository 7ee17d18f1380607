"""Every command and every option has a help text."""

import re

import click
import pytest

from parley.cli import COMMANDS, Lazy, command


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
        yield f"{name}, in the list", line
    for name, each in commands().items():
        yield name, each.help or ""
        for option in each.params:
            if isinstance(option, click.Option):
                yield f"{name} {option.opts[0]}", option.help or ""


def read_sections(text):
    """The sections of a help text after its first lines, each with the options in it."""
    found = {}
    for line in text.splitlines():
        if title := re.fullmatch(r"([A-Z][\w ]+):", line):
            options = found.setdefault(title[1], [])
        elif option := re.match(r"  (--?[\w-]+)", line):
            options.append(option[1])
    return found


@pytest.mark.parametrize("name", ["run", "simulate"])
def test_long_help_has_sections_with_every_option_once_and_common_ones_first(name):
    each = commands()[name]
    with click.Context(each, info_name=name, help_option_names=["-h", "--help"]) as context:
        sections = read_sections(each.get_help(context))
        known = [option.opts[0] for option in each.get_params(context) if option.opts[0][0] == "-"]
    assert sorted(known) == sorted(flag for flags in sections.values() for flag in flags)
    assert len(next(iter(sections.values()))) <= 10
    assert "Other" not in sections
    assert all(sections.values())


def test_every_command_and_option_has_a_sentence_of_help():
    wrong = [name for name, text in help_texts() if not text.split("\n\n")[0].endswith(".")]
    assert wrong == []
