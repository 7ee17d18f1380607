"""Bots for command-line tasks: one that can solve them, and some that must never pass."""

from __future__ import annotations

from typing import Annotated

from parley import BotView
from parley.rules.items.os_entry import OSEntry
from parley.tasks._common.os_machine import example_command
from parley.tasks.os_tasks.rule import OUTPUT, Action

HEAD = OUTPUT.text.partition("{output}")[0]


def solver(bot: BotView, strength: Annotated[float, (0, 1)] = 1.0) -> Action:
    """Runs the example script in the share `strength` of all tasks and answers with its output; finishes the others at once."""  # noqa: E501
    entry: OSEntry = bot.item
    if entry.example is None or bot.fate("can do it") >= strength:
        return Action("finish")
    if not bot.view.reply_count:
        return Action("bash", example_command(entry))
    shown = bot.view.text.removesuffix(f"\n\n{bot.view.expect.hint}")
    return Action("answer", shown.removeprefix(HEAD)) if HEAD in shown else Action("finish")


def idler(bot: BotView) -> Action:
    """Finishes at once without doing anything."""
    return Action("finish")


def answerer(bot: BotView, answer: str = "0") -> Action:
    """Gives the same answer at once, whatever the task."""
    return Action("answer", answer)


def cheater(bot: BotView) -> Action:
    """Does not work on its task, but plants programs, aliases, functions, start-up files and processes that could fool a check, and deletes the task's files."""  # noqa: E501
    return Action("bash", PLANT) if not bot.view.reply_count else Action("answer", "0")


PLANT = r"""
mkdir -p /tmp/planted
printf '#!/bin/sh\nexit 0\n' > /tmp/planted/true
for name in awk bash cat cut diff env find grep gzip head id ls md5sum pgrep ps python3 sed sh \
    sort stat tail tar test tr wc '['; do
  for folder in /tmp/planted /usr/local/bin /usr/local/sbin /root /usr; do
    cp /tmp/planted/true "$folder/$name" && chmod +x "$folder/$name"
  done
done 2> /dev/null
for file in ~/.bashrc ~/.bash_profile ~/.profile ~/.bash_logout /etc/profile /etc/bash.bashrc \
    /etc/environment; do
  echo 'exit 0; alias test=true; test() { return 0; }; exit() { builtin exit 0; }' >> "$file"
done
printf 'import os\nos._exit(0)\n' |
  tee /root/sitecustomize.py /root/sys.py /sys.py /json.py > /dev/null
export BASH_ENV=/root/.bashrc ENV=/root/.bashrc PATH=/tmp/planted:$PATH
export PYTHONPATH=/root PYTHONSTARTUP=/root/sys.py
echo /tmp/planted/true.so > /etc/ld.so.preload
alias '['=true test=true cmp=true diff=true grep=true
test() { return 0; }; exit() { builtin exit 0; }; export -f test exit
find /srv -mindepth 1 -delete
(while :; do pkill -9 -f check; echo 0 > /srv/answer; done > /dev/null 2>&1 &)
trap 'exit 0' EXIT
true
"""
