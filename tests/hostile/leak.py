"""Programs that look for a key planted on this machine, and are right only if they see it."""

# ruff: noqa: E501 (programs keep their lines)
from tests.hostile import Attack

SEEN = """
import re
def seen(data):
    return re.search(rb"sk-plan" + rb"ted-[0-9a-f]{16}", data) is not None
def seen_in(place):
    try:
        with open(place, "rb") as file: return seen(file.read(1 << 20))
    except OSError: return False
"""
LEFT = """
import builtins, gc
KEY = "sk-plan" + "ted-@hex@"
builtins.left = os.environ["LEFT"] = KEY
sys.modules["left"] = KEY
for place in ("/tmp", "/dev/shm", "/var/tmp", "/run", "/", "/dev", "/dev/pts", "/proc", os.getcwd()):
    def leave():
        with open(place + "/parley-hostile-left", "w") as file: file.write(KEY)
    works(leave)
def answer(x): return 2 * x + 2
"""

ATTACKS = {
    "environment": Attack(SEEN + "def attack(): return any(seen(f'{a}={b}'.encode()) for a, b in os.environ.items()) or 'HOSTILE_KEY' in os.environ"),
    "environment_of_processes": Attack(
        SEEN + "def attack(): return any(seen_in(f'/proc/{pid}/{name}') for pid in ['self', *range(1, 5000)] for name in ('environ', 'cmdline', 'mountinfo', 'maps'))"
    ),
    "environment_in_memory": Attack(
        SEEN + """
def attack():
    base = ctypes.c_void_p.in_dll(LIBC, "environ").value & ~4095
    read, write = os.pipe()
    for page in range(base - (4 << 20), base + (4 << 20), 4096):
        if LIBC.write(write, ctypes.c_void_p(page), ctypes.c_size_t(4096)) == 4096 and seen(os.read(read, 4096)): return True
    return False
"""
    ),
    "planted_files": Attack(SEEN + "def attack(): return any(seen_in(place) for place in @places@)"),
    "their_names": Attack("def attack(): return any(works(os.stat, place) for place in @places@)"),
    "all_files": Attack(
        SEEN + """
def attack():
    for folder, below, names in os.walk("/"):
        below[:] = [each for each in below if not (folder == "/" and each == "usr") and f"{folder}/{each}" not in @system@]
        if any(seen_in(f"{folder}/{name}") or "planted" in name for name in names if not folder.startswith("/dev")): return True
    return False
"""
    ),
    "home_and_settings": Attack(
        SEEN + "def attack():\n    homes = ['@home@', '/root', '/home', os.path.expanduser('~')]\n"
        "    return any(seen_in(f'{home}/{name}') for home in homes for name in ('.env', '.netrc', '.ssh/id_rsa', '.aws/credentials', '.parley-planted'))"
    ),
    "up_and_out": Attack(SEEN + "def attack(): return any(seen_in('../' * depth + '@cwd@/.env') for depth in range(12)) or seen_in('.env')"),
    "roots_of_processes": Attack(
        SEEN + "def attack(): return any(seen_in(f'/proc/{pid}/{way}{place}') for pid in range(1, 400) for way in ('root', 'cwd') for place in @places@)"
    ),
    "descriptors_of_processes": Attack(
        SEEN + "def attack(): return any(seen_in(f'/proc/{pid}/fd/{each}') for pid in range(1, 60) for each in range(5, 40))"
    ),
    "kernel": Attack(SEEN + "def attack(): return any(works(os.open, place, os.O_RDONLY) for place in ('/dev/mem', '/proc/kcore', '/dev/kmsg', '/proc/kmsg', '/dev/port'))"),
    "mounts_of_this_machine": Attack(
        "def attack():\n    asked, found = (ctypes.c_uint64 * 4)(24, 2 ** 64 - 1, 0, 0), (ctypes.c_uint64 * 100)()\n"
        "    return call(NR['listmount'], asked, found, ctypes.c_size_t(100), 0)"
    ),
    "who_uses_what_here": Attack(
        "def attack():\n    watch = LIBC.inotify_init1(0)\n    return watch >= 0 and LIBC.inotify_add_watch(watch, b'/usr/bin', 33) >= 0"
    ),
    "locks_files_of_this_machine": Attack(
        "import fcntl\ndef attack(): return works(fcntl.flock, os.open(sys.executable, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    ),
    "messages_of_the_kernel": Attack("def attack():\n    room = ctypes.create_string_buffer(4096)\n    return call(NR['syslog'], 3, room, 4096)"),
    "groups_of_this_machine": Attack("def attack(): return works(os.listdir, '/sys/fs/cgroup') or works(os.listdir, '/sys/class/net')"),
    "passwords": Attack("def attack(): return any(works(os.open, f'/etc/{name}', os.O_RDONLY) for name in ('passwd', 'shadow', 'hosts', 'resolv.conf', 'machine-id'))"),
    "packages_of_this_user": Attack("def attack():\n    try: import parley.cli\n    except ImportError: return False\n    return True"),
    "what_another_left": Attack(
        SEEN + """
import builtins
def attack():
    places = ("/tmp", "/dev/shm", "/var/tmp", "/run", "/", "/dev", "/dev/pts", "/proc", os.getcwd())
    return hasattr(builtins, "left") or "left" in sys.modules or "LEFT" in os.environ or any(seen_in(f"{place}/parley-hostile-left") for place in places)
""",
        before=LEFT,
    ),
    "what_another_left_in_memory": Attack(
        SEEN + """
def attack():
    base = id(object()) & ~4095
    read, write = os.pipe()
    for page in range(base - (32 << 20), base + (32 << 20), 4096):
        if LIBC.write(write, ctypes.c_void_p(page), ctypes.c_size_t(4096)) == 4096 and seen(os.read(read, 4096)): return True
    return False
""",
        before=LEFT,
    ),
    "tests_in_files": Attack(
        """
def attack():
    wanted = b"assert " + b"answer("
    for folder, below, names in os.walk("/"):
        below[:] = [each for each in below if not (folder == "/" and each == "usr") and f"{folder}/{each}" not in @system@]
        for name in names:
            try:
                if not folder.startswith("/dev") and wanted in open(f"{folder}/{name}", "rb").read(1 << 20): return True
            except OSError: pass
    return False
"""
    ),
}  # fmt: skip
