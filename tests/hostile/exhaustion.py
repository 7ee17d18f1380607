"""Programs that take what they can get, and are right only if nothing stopped them."""

# ruff: noqa: E501 (programs keep their lines)
from tests.hostile import Attack

MEMORY = ""  # ended for it, or refused it: both are bounds

ATTACKS = {
    "processor": Attack("def attack():\n    while time.process_time() < 8: pass\n    return True", "used more than", "timeout"),
    "processor_while_defined": Attack("while time.process_time() < 8: pass\ndef attack(): return True", "used more than", "timeout", slow=True),
    "processor_in_threads": Attack(
        """
import threading
def burn():
    while time.process_time() < 8: pass
def attack():
    several = [threading.Thread(target=burn) for _ in range(4)]
    for each in several: each.start()
    for each in several: each.join()
    return True
""",
        "used more than", "timeout", slow=True,
    ),
    "memory": Attack(
        "def attack():\n    held = [bytearray(b'x') * (8 << 20) for _ in range(90)]\n    time.sleep(0.5)\n    return len(held) == 90",
        "used more than", "memory",
    ),
    "memory_at_once": Attack("def attack():\n    held = bytearray(b'x') * (2 << 30)\n    return True", "MemoryError"),
    "memory_that_is_shared": Attack(
        """
import mmap
def attack():
    held = [mmap.mmap(-1, 100 << 20) for _ in range(8)]
    for each in held:
        for at in range(0, 100 << 20, 4096): each[at] = 1
    time.sleep(0.5)
    return True
""",
        "PermissionError",
    ),
    "memory_in_many_processes": Attack(
        """
def attack():
    for _ in range(12):
        if os.fork() == 0:
            held = bytearray(b'x') * (60 << 20)
            time.sleep(3)
            os._exit(0)
    time.sleep(1.5)
    return True
""",
        "used more than", "memory",
    ),
    "memory_in_hidden_processes": Attack(
        """
import mmap
def attack():
    for _ in range(10):
        if os.fork() == 0:
            if os.fork(): os._exit(0)
            os.setsid()
            LIBC.prctl(4, 0, 0, 0, 0)
            held = mmap.mmap(-1, 80 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            for at in range(0, 80 << 20, 4096): held[at] = 1
            time.sleep(3)
            os._exit(0)
    time.sleep(2)
    return True
""",
        "used more than", "memory", slow=True,
    ),
    "memory_without_a_first_thread": Attack(
        """
import mmap, threading
def attack():
    read, write = os.pipe()
    def hold():
        time.sleep(0.05)
        held = mmap.mmap(-1, 200 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, 200 << 20, 4096): held[at] = 1
        os.write(write, b"x")
        time.sleep(3)
        os._exit(0)
    for _ in range(2):
        if os.fork() == 0:
            threading.Thread(target=hold).start()
            LIBC.syscall(93 if os.uname().machine == "aarch64" else 60, 0)
    os.read(read, 1), os.read(read, 1)
    time.sleep(0.5)
    return True
""",
        "used more than", "memory",
    ),
    "processor_in_many_processes": Attack(
        """
def attack():
    for _ in range(6):
        if (pid := os.fork()) == 0:
            while time.process_time() < 1: pass
            os._exit(0)
        os.waitpid(pid, 0)
    return True
""",
        "used more than", "timeout",
    ),
    "processor_in_processes_that_nobody_waits_for": Attack(
        """
import signal
def attack():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(12):
        if (pid := os.fork()) == 0:
            while time.process_time() < 0.5: pass
            os._exit(0)
        while works(os.kill, pid, 0): time.sleep(0.01)
    return True
""",
        "used more than", "timeout", slow=True,
    ),
    "memory_in_many_pieces": Attack(
        """
import mmap
held = mmap.mmap(-1, 200 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
def attack():
    at = ctypes.addressof(ctypes.c_char.from_buffer(held))
    for place in range(0, 200 << 20, 8192): held[place] = 1
    for place in range(0, 200 << 20, 8192): LIBC.mprotect(ctypes.c_void_p(at + place), ctypes.c_size_t(4096), 1)
    for _ in range(30):
        if os.fork() == 0:
            LIBC.madvise(ctypes.c_void_p(at), ctypes.c_size_t(200 << 20), 22)
            time.sleep(30)
            os._exit(0)
    time.sleep(6)
    return True
""",
        MEMORY, slow=True,
    ),
    "memory_kept_from_swap": Attack(
        "import mmap\ndef attack():\n    held = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n    at = ctypes.addressof(ctypes.c_char.from_buffer(held))\n"
        "    return LIBC.mlock(ctypes.c_void_p(at), ctypes.c_size_t(64 << 20)) == 0 or LIBC.mlockall(1) == 0"
    ),
    "fork_bomb": Attack(
        """
def attack():
    born = 0
    for _ in range(400):
        try:
            if os.fork() == 0: time.sleep(30); os._exit(0)
            born += 1
        except OSError: pass
    return born > 200
"""
    ),
    "fork_bomb_that_grows": Attack(
        """
def attack():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try: os.fork()
        except OSError: pass
    return True
""",
        "", slow=True,
    ),
    "threads": Attack(
        """
import threading
def attack():
    threading.stack_size(65536)
    born = 0
    for _ in range(400):
        try: threading.Thread(target=time.sleep, args=(30,), daemon=True).start(); born += 1
        except RuntimeError: break
    return born > 200
"""
    ),
    "zombies": Attack(
        """
def attack():
    born = 0
    for _ in range(400):
        try:
            if os.fork() == 0:
                try: os.fork()
                finally: os._exit(0)
            born += 1
        except OSError: pass
    return born > 200
"""
    ),
    "disk": Attack(
        """
def attack():
    def fill(place):
        for number in range(30):
            with open(f"{place}/parley-hostile-{number}", "wb") as file: file.write(bytes(4 << 20))
    return works(fill, "/tmp") or works(fill, "/dev/shm")
"""
    ),
    "one_file": Attack(
        "def attack():\n    def fill():\n        with open('/tmp/parley-hostile', 'wb') as file: file.write(bytes(24 << 20))\n    return works(fill)"
    ),
    "holes": Attack("def attack():\n    return works(lambda: os.truncate(os.open('/tmp/parley-hostile', os.O_CREAT | os.O_RDWR), 1 << 40))"),
    "names": Attack(
        "def attack():\n    def fill():\n        for number in range(40_000): os.close(os.open(f'/tmp/parley-hostile-{number}', os.O_CREAT))\n"
        "    return works(fill)"
    ),
    "descriptors": Attack("def attack():\n    return works(lambda: [os.open('/dev/null', os.O_RDONLY) for _ in range(500)])"),
    "output": Attack(
        "def attack():\n    for _ in range(64): os.write(1, bytes(1 << 20)); os.write(2, bytes(1 << 20)); print('x' * 10_000)\n    return False"
    ),
    "sleep": Attack("def attack():\n    time.sleep(600)\n    return True", "no answer in time", "timeout", slow=True),
    "stops_itself": Attack(
        "import signal\ndef attack():\n    for each in (signal.SIGSTOP, signal.SIGTSTP): os.kill(os.getpid(), each)\n"
        "    time.sleep(600)\n    return True",
        "no answer in time", "timeout", slow=True,
    ),
    "ignores_signals": Attack(
        "import signal\ndef attack():\n    for each in set(signal.Signals) - {9, 19}: signal.signal(each, signal.SIG_IGN)\n"
        "    while time.process_time() < 8: pass\n    return True",
        "used more than", "timeout", slow=True,
    ),
    "recursion": Attack(
        "def deep(n): return deep(n + 1)\ndef attack():\n    sys.setrecursionlimit(10 ** 9)\n    deep(0)\n    return True", "", slow=True
    ),
    "reads_nowhere": Attack("def attack():\n    ctypes.string_at(0)\n    return True", "the program exited (signal 11)", "died"),
    "aborts": Attack("def attack():\n    os.abort()", "the program exited", "died"),
    "answers_too_much": Attack("def answer(x): return 'x' * (64 << 20)", "ValueError"),
    "doubles_its_lists": Attack("def answer(x):\n    found = []\n    for _ in range(60): found = [found, found]\n    return found", "", slow=True),
    "buffers_of_the_kernel": Attack(
        """
import socket, struct
def attack():
    read, write = os.pipe()
    born, held = 0, 0
    for _ in range(80):
        try: pid = os.fork()
        except OSError: break
        if pid:
            born += 1
            continue
        count, kept = 0, []
        try:
            while True:
                kept.append(pair := socket.socketpair())
                for each in pair:
                    try: each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                    except OSError: pass
                    each.setblocking(False)
                    try:
                        while True: count += each.send(bytes(32768))
                    except BlockingIOError: pass
        except OSError: pass
        os.write(write, struct.pack("q", count))
        time.sleep(30)
        os._exit(0)
    for _ in range(born): held += struct.unpack("q", os.read(read, 8))[0]
    time.sleep(20)
    return held > 384 << 20
""",
        "used more than", "memory",
    ),
    "lowers_its_time": Attack(
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\ndef answer(x):\n    while True: pass", "ValueError"
    ),
    "raises_its_limits": Attack(
        """
import resource
def attack():
    wide = resource.RLIM_INFINITY
    for which in ("AS", "CPU", "NPROC", "NOFILE", "FSIZE"):
        try: resource.setrlimit(getattr(resource, "RLIMIT_" + which), (wide, wide)); return True
        except (OSError, ValueError): pass
    return False
"""
    ),
}  # fmt: skip
