"""Programs that are wrong and want to be called right."""

# ruff: noqa: E501 (programs keep their lines)
from tests.hostile import Attack

LOOP = (
    "for found, wanted in zip(map(answer, [20, 3]), [42, 8]):\n    assert found == wanted\nassert list(map(answer, [20])) == [42]",
)
SORTED = ("given = [3, 1, 2]\nassert answer(given) == [1, 2, 3]",)
NOT_DATA = "NotData"
BAD_ANSWER = "BadAnswer"

ATTACKS = {
    "equal_to_everything": Attack(
        """
class All:
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = lambda self: 42
    __bool__ = lambda self: True
def answer(x): return All()
""",
        NOT_DATA,
    ),
    "number_that_lies": Attack(
        """
class Lie(int):
    __eq__ = __le__ = __ge__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = lambda self: 42
    __index__ = lambda self: 42
    __reduce__ = lambda self: (int, (42,))
def answer(x): return Lie(7)
"""
    ),
    "text_that_lies": Attack(
        """
class Lie(str):
    __eq__ = lambda self, other: True
    __str__ = __repr__ = lambda self: "right"
def answer(x): return Lie("wrong")
""",
        tests=("assert answer(20) == 'right'", "assert str(answer(3)) == 'right'"),
    ),
    "list_that_lies": Attack(
        """
class Lie(list):
    __eq__ = lambda self, other: True
    __len__ = lambda self: 3
    __iter__ = lambda self: iter([1, 2, 3])
    __getitem__ = lambda self, at: at + 1
def answer(x): return Lie([9])
""",
        tests=("assert answer(20) == [1, 2, 3]", "assert len(answer(3)) == 3"),
    ),
    "dict_that_lies": Attack(
        """
class Lie(dict):
    __eq__ = lambda self, other: True
    items = lambda self: [("a", 1)]
    __missing__ = lambda self, key: 1
def answer(x): return Lie(b=2)
""",
        tests=("assert answer(20) == {'a': 1}", "assert answer(3)['a'] == 1"),
    ),
    "truth_that_lies": Attack(
        """
class Yes:
    __bool__ = lambda self: True
    __eq__ = lambda self, other: self
def answer(x): return Yes()
""",
        NOT_DATA,
        tests=("assert (answer(20) == 42) is True", "assert answer(3) == 8"),
    ),
    "length_that_lies": Attack(
        """
class Number(int):
    __eq__ = lambda self, other: True
class Long:
    __len__ = lambda self: Number(7)
    __iter__ = lambda self: iter([Number(7)])
def answer(x): return Long()
""",
        "TypeError",
        tests=("assert len(answer(20)) == 42", "assert list(answer(3)) == [8]"),
    ),
    "class_that_lies": Attack(
        """
class Lie:
    __class__ = property(lambda self: int)
    __eq__ = lambda self, other: True
    __index__ = __int__ = lambda self: 42
def answer(x): return Lie()
""",
        "TypeError",
    ),
    "attribute_that_lies": Attack(
        """
class All:
    __eq__ = lambda self, other: True
class Thing:
    value = All()
    def __getattr__(self, name): return All()
def answer(x): return Thing()
""",
        NOT_DATA,
        tests=("assert answer(20).value == 42", "assert answer(3).other == 8"),
    ),
    "handle_that_comes_back": Attack(
        """
class All:
    __eq__ = __contains__ = lambda self, other: True
def answer(x): return [All()] if not isinstance(x, All) else All()
""",
        NOT_DATA,
        tests=("assert answer(answer(20)[0]) == 42", "assert 8 in answer(3)"),
    ),
    "methods_that_lie": Attack(
        """
class Yes:
    __getattr__ = lambda self, name: lambda *given: True
def answer(x): return Yes()
""",
        NOT_DATA,
        tests=("assert answer(20).startswith('expected')", "assert answer(3).issubset({1, 2, 3})"),
    ),
    "items_that_lie": Attack(
        """
class Yes:
    __getitem__ = lambda self, key: True
def answer(x): return Yes()
""",
        NOT_DATA,
        tests=("assert answer(20)['expected']", "assert answer(3)[42]"),
    ),
    "two_faces": Attack(
        """
class Both:
    __iter__ = lambda self: iter([3, 1, 2])
    __getitem__ = lambda self, at: at
    __len__ = lambda self: 3
def answer(x): return Both()
""",
        NOT_DATA,
        tests=("r = answer(20)\nassert all(r[i] <= r[i + 1] for i in range(2)) and sorted(r) == [1, 2, 3]",) * 2,
    ),
    "forces_the_weaker_mode": Attack(
        """
class Sliced:
    __getitem__ = lambda self, key: [4, 2]
def answer(x): return Sliced()
here = sys._getframe()
while here.f_back: here = here.f_back
for module in list(sys.modules.values()):
    if hasattr(module, "tried"): module.tried = lambda tests, namespace: [""] * (1 + len(tests["tests"]))
""",
        NOT_DATA,
        tests=("assert answer(20)[:2] == [4, 2]", "assert answer(3)[:1] == [8]"),
    ),
    "a_name_that_is_not_there": Attack("pass", "NameError", tests=("assert callable(answer)", "assert answer")),
    "answers_by_hand": Attack("def answer(x):\n    frame({'ok': True})\n    frame({'ok': None})\n    time.sleep(1)", "AssertionError"),
    "answers_early": Attack("for _ in range(10): frame({'ok': True})\ndef answer(x): return True"),
    "answers_twice": Attack("def answer(x):\n    frame({'ok': 0})\n    frame({'ok': 0})\n    return 0"),
    "speaks_as_the_judge": Attack(
        "def answer(x):\n    for _ in range(3): frame(b'{\"faults\": [\"\", \"\"], \"not_data\": false}')\n    return None", BAD_ANSWER
    ),
    "speaks_as_the_judge_early": Attack(
        "for _ in range(3): frame({'ok': None, 'faults': ['', ''], 'not_data': False, 'passed': True})\ndef answer(x): return None"
    ),
    "asks_the_tests": Attack("def answer(x):\n    frame(b'{\"ask\": {\"tests\": true}}')\n    return None", BAD_ANSWER),
    "says_not_data": Attack("def answer(x):\n    frame({'ok': None, 'not_data': True})\n    return None"),
    "nothing_ends_a_loop": Attack("def answer(x):\n    frame(b'{\"ok\": {}}')\n    time.sleep(1)", BAD_ANSWER, tests=LOOP),
    "nothing_in_a_list_ends_a_loop": Attack(
        "def answer(x):\n    frame(b'{\"ok\": [{\"t\": [{}]}]}')\n    time.sleep(1)", BAD_ANSWER, tests=LOOP
    ),
    "stops_the_iteration": Attack("def answer(x): raise StopIteration", "RuntimeError", tests=LOOP),
    "stops_it_by_another_name": Attack(
        "class Odd(StopIteration): pass\nOdd.__name__ = 'StopIteration'\ndef answer(x): raise Odd('x')", "RuntimeError", tests=LOOP
    ),
    "stops_it_by_hand": Attack("def answer(x):\n    frame({'error': 'StopIteration', 'words': ''})\n    time.sleep(1)", "RuntimeError", tests=LOOP),
    "stops_the_asynchronous": Attack("def answer(x): raise StopAsyncIteration", "RuntimeError", tests=LOOP),
    "exits": Attack("def answer(x): sys.exit(0)", "RuntimeError: SystemExit"),
    "interrupts": Attack("def answer(x): raise KeyboardInterrupt", "RuntimeError: KeyboardInterrupt"),
    "closes_generators": Attack("def answer(x): raise GeneratorExit", "RuntimeError: GeneratorExit", tests=LOOP),
    "raises_what_tests_raise": Attack("def answer(x): raise AssertionError('passed')", "AssertionError: passed"),
    "error_without_words": Attack(
        "class Odd(Exception):\n    def __str__(self): raise SystemExit(0)\ndef answer(x): raise Odd", "RuntimeError: Odd"
    ),
    "error_with_half_characters": Attack("def answer(x): raise ValueError('\\ud800\\x1b[2J' * 50)", "ValueError"),
    "error_with_a_long_name": Attack("def answer(x): raise type('A' * 5_000_000, (Exception,), {})('B' * 5_000_000)", "RuntimeError"),
    "changes_no_arguments": Attack(
        "def answer(x):\n    frame({'ok': None, 'changed': [[7, [1]], ['x', {}], 5]})\n    time.sleep(1)", BAD_ANSWER, tests=SORTED
    ),
    "changes_what_cannot_change": Attack(
        "def answer(x):\n    frame({'ok': None, 'changed': [[0, {'t': [1, 2]}]]})",
        tests=("given = (2, 1)\nassert answer(given) is None and given == (1, 2)",),
    ),
    "changes_into_another_kind": Attack(
        "def answer(x):\n    frame({'ok': None, 'changed': [[0, {'d': []}]]})",
        tests=("given = [2, 1]\nassert answer(given) is None and not given",),
    ),
    "own_builtins": Attack(
        """
import builtins
builtins.AssertionError = builtins.NameError = Exception
builtins.len = builtins.abs = builtins.isinstance = builtins.type = lambda *a: 42
def answer(x): return -1
""",
        "",
        tests=("assert len([answer(20)]) == 42", "assert abs(answer(3)) == 8"),
    ),
    "own_json": Attack(
        """
for module in list(sys.modules.values()):
    if hasattr(module, "dumps"): module.dumps = lambda *a, **k: '{"ok": true, "faults": ["", ""], "not_data": false}'
def answer(x): return -1
"""
    ),
    "own_serving_loop": Attack(
        """
here = sys._getframe()
while here.f_back: here = here.f_back
def answer(x): return -1
for module in list(sys.modules.values()):
    for name in ("packed", "unpacked", "serve", "judge", "said"):
        if hasattr(module, name): setattr(module, name, lambda *a: True)
    if hasattr(module, "Channel"): module.Channel.send = lambda self, message: frame({"ok": True, "faults": ["", ""], "not_data": False})
"""
    ),
    "own_prelude": Attack("def answer(x): return -1\ndef right(x): return -1", tests=("assert answer(20) == right(20)",), prelude="def right(x):\n    return 2 * x + 2"),
    "text_that_is_code": Attack("def answer(x): return \"__import__('os')._exit(0)\""),
    "nested_too_deep": Attack("def answer(x):\n    frame(b'{\"ok\": ' + b'[' * 500_000 + b']' * 500_000 + b'}')\n    time.sleep(1)", BAD_ANSWER),
    "holds_itself": Attack("def answer(x):\n    found = []\n    found.append(found)\n    return found", "RecursionError"),
    "no_number": Attack("def answer(x): return float('nan')", tests=("assert abs(answer(20) - 42) < 1e-6", "assert answer(3) == 8")),
    "signalling_no_number": Attack("def answer(x):\n    import decimal\n    return decimal.Decimal('sNaN')", ""),
    "endless_number": Attack("def answer(x):\n    frame(b'{\"ok\": ' + b'9' * 1_000_000 + b'}')\n    time.sleep(1)", BAD_ANSWER),
    "huge_number": Attack("def answer(x): return 10 ** 200_000"),
    "half_characters": Attack("def answer(x): return '\\udcff\\ud800'", tests=("assert answer(20) == '42'", "print(answer(3))\nassert 0")),
    "no_text_at_all": Attack("def answer(x):\n    frame(b'\\xff\\xfe\\x00')\n    time.sleep(1)", BAD_ANSWER),
    "giant_frame": Attack("def answer(x):\n    os.write(4, b'\\xff\\xff\\xff\\xff' + b'x' * 100_000)\n    time.sleep(9)", "the program closed its connection", "died"),
    "endless_small_frames": Attack(
        """
import threading
def flood():
    while True: frame({"ok": None})
def answer(x):
    threading.Thread(target=flood, daemon=True).start()
    return None
"""
    ),
    "late_answers": Attack(
        """
import threading
def answer(x):
    threading.Timer(0.05, lambda: frame({"ok": True, "faults": [""], "not_data": False})).start()
    time.sleep(0.2)
    return None
""",
    ),
    "prints_pass_and_goes": Attack("print('PASS')\nsys.stdout.flush()\nos._exit(0)", "the program exited", "died"),
    "goes_when_called": Attack("def answer(x):\n    frame({'passed': True})\n    os._exit(0)", ""),
    "hangs_up": Attack("def answer(x):\n    os.close(3); os.close(4)\n    time.sleep(9)", "the program closed its connection", "died"),
    "looks_for_what_is_expected": Attack(
        """
import gc
def answer(x):
    seen = [each for each in gc.get_objects() if isinstance(each, dict)]
    here, stack = sys._getframe(), []
    while here: stack.append(here.f_locals); here = here.f_back
    for each in seen + stack:
        for value in list(each.values()):
            if isinstance(value, (str, bytes)) and len(value) < 100_000:
                text = value if isinstance(value, str) else value.decode("latin-1")
                place = text.find("assert " + "answer(")
                if place >= 0 and "==" in text[place:place + 40]: return int(text[place:].split("== ")[1].split()[0])
    return -1
"""
    ),
    "searches_its_memory": Attack(
        """
import re
def answer(x):
    read, write = os.pipe()
    base = id(object()) & ~4095
    for page in range(base - (24 << 20), base + (24 << 20), 4096):
        if LIBC.write(write, ctypes.c_void_p(page), ctypes.c_size_t(4096)) == 4096:
            if found := re.search(rb"assert " + rb"answer\\(\\d+\\) == (\\d+)", os.read(read, 4096)): return int(found[1])
    return -1
"""
    ),
    "hands_over_descriptors": Attack(
        """
import array, socket
def answer(x):
    with socket.socket(fileno=os.dup(4)) as here:
        body = json.dumps({"ok": None}).encode()
        kept = array.array("i", [os.open("/dev/null", os.O_RDONLY) for _ in range(20)])
        here.sendmsg([len(body).to_bytes(4, "big") + body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, kept)])
    time.sleep(1)
"""
    ),
    "numbers_that_collide": Attack(
        "def answer(x):\n    return {k * (2**61 - 1): 0 for k in range(3)} and frame(json.dumps({'ok': {'d': [[{'i': hex(k * (2**61 - 1))}, 0] for k in range(110_000)]}}).encode())",
        "the test crashes", "died", slow=True,
    ),
    "range_without_end": Attack("def answer(x): return range(10 ** 15)", "", tests=("assert list(answer(20)) == [42]",), slow=True),
    "fraction_without_end": Attack(
        "def answer(x):\n    frame({'ok': {'x': 'fractions.Fraction', 'v': '1e99999999'}})\n    time.sleep(9)", BAD_ANSWER, slow=True
    ),
    "half_a_frame": Attack("def answer(x):\n    os.write(4, b'\\x00\\x00\\x00\\xff{')\n    time.sleep(60)", "no answer in time", "timeout", slow=True),
    "iterates_without_end": Attack(
        "import itertools\ndef answer(x): return itertools.count()", "", tests=("assert sum(answer(20)) == 42",), slow=True
    ),
}  # fmt: skip
