"""Draws docs/pictures/demo.svg from what `parley demo` really prints: python docs/pictures/make.py"""

import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run([sys.executable, "-m", "parley", "demo", "--store", folder], capture_output=True, text=True, check=True)
lines = [line for line in done.stdout.splitlines() if not line.startswith("signature")]
console = Console(record=True, width=122, file=open("/dev/null", "w"))  # noqa: SIM115
console.print(Text("$ parley demo", style="bold green"))
for line in lines:
    text = Text(line)
    text.highlight_regex(r"[├─┤]{2,}|├●|●┤|├|┤", "cyan")
    text.highlight_regex("●", "bold yellow")
    console.print(text, soft_wrap=True)
console.save_svg(str(Path(__file__).with_name("demo.svg")), title="parley demo")
