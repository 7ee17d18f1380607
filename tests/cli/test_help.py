"""Every command and every option has a help text."""

import click

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


def test_every_command_and_option_has_a_sentence_of_help():
    wrong = [name for name, text in help_texts() if not text.split("\n\n")[0].endswith(".")]
    assert wrong == []
