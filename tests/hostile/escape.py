"""Programs that want out, and are right only if they got somewhere."""

# ruff: noqa: E501 (programs keep their lines)
from tests.hostile import Attack

DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    import signal
    for each in set(signal.Signals) - {9, 19}: signal.signal(each, signal.SIG_IGN)
    time.sleep(600)
    os._exit(0)
"""

ATTACKS = {
    "network": Attack(
        """
import socket
def attack():
    def reach(family, kind, address):
        with socket.socket(family, kind) as here:
            here.settimeout(2)
            here.connect(address)
            here.send(b"out")
    return works(reach, socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", @port@)) or works(
        reach, socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", @port@)) or works(
        reach, socket.AF_INET6, socket.SOCK_STREAM, ("::1", @port@)) or works(reach, socket.AF_INET, socket.SOCK_STREAM, ("1.1.1.1", 53))
"""
    ),
    "every_family": Attack(
        """
import socket
def attack():
    def open_one(family, kind): socket.socket(family, kind).close()
    return any(works(open_one, family, kind) for family in range(46) for kind in (1, 2, 3, 5))
"""
    ),
    "every_family_in_pairs": Attack(
        "import socket\ndef attack():\n    def pair(family):\n        try: [each.close() for each in socket.socketpair(family, socket.SOCK_STREAM)]\n"
        "        except ValueError: pass\n    return any(works(pair, family) for family in range(2, 46))"
    ),
    "socket_of_this_machine": Attack(
        "import socket\ndef attack():\n    def reach():\n        with socket.socket(socket.AF_UNIX) as here: here.connect(chr(0) + '@abstract@')\n"
        "    return works(reach)"
    ),
    "name_service": Attack("import socket\ndef attack(): return works(socket.getaddrinfo, 'example.org', 80)"),
    "trace": Attack("def attack(): return call(NR['ptrace'], 0, 0, 0, 0) or call(NR['ptrace'], 16, 1, 0, 0)"),
    "an_address_for_letters": Attack(
        """
import socket
def attack():
    def letters():
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        here.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        here.send(b"x")
        if not here.getsockname(): raise OSError
    return works(letters)
"""
    ),
    "memory_of_others": Attack(
        """
def attack():
    room = ctypes.create_string_buffer(64)
    part = (ctypes.c_void_p * 2)(ctypes.addressof(room), 64)
    return any(call(NR[name], pid, part, 1, part, 1, 0) for name in ("process_vm_readv", "process_vm_writev") for pid in range(1, 5)) or any(
        works(lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))) for pid in range(1, 400) if pid != os.getpid() and pid not in @watchers@)
"""
    ),
    "proc_of_this_machine": Attack(
        """
def attack():
    places = ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/acpi", "/proc/1/oom_score_adj"]
    folders = ["/proc/1/root/root", "/proc/1/cwd/home"]
    if @watchers@:  # the first process is the sandbox's own
        places, folders = places[:4], []
    return any(works(lambda: os.close(os.open(place, os.O_WRONLY))) for place in places) or any(works(os.listdir, each) for each in folders)
"""
    ),
    "mounts": Attack(
        """
def attack():
    there = (b"tmpfs", b"/tmp", b"tmpfs", 0, None)
    return call(NR["mount"], *there) or call(NR["mount"], b"/", b"/tmp", None, 4096, None) or call(NR["mount"], b"proc", b"/proc", b"proc", 0, None)
"""
    ),
    "unmounts": Attack("def attack(): return any(call(NR['umount2'], place, 2) for place in (b'/tmp', b'/proc', b'/dev/shm', b'/usr'))"),
    "mounts_the_new_way": Attack("def attack(): return call(NR['fsopen'], b'tmpfs', 0) or call(NR['open_tree'], -100, b'/', 1)"),
    "other_root": Attack("def attack(): return call(NR['chroot'], b'/tmp') or call(NR['pivot_root'], b'/', b'/tmp')"),
    "new_namespaces": Attack("def attack(): return any(call(NR['unshare'], flag) for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000))"),
    "new_namespaces_by_clone": Attack(
        """
def attack():
    number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    pid = LIBC.syscall(number, ctypes.c_ulong(0x10000000 | 17), None, None, None, None)
    if pid == 0: os._exit(0)
    return pid > 0
"""
    ),
    "new_namespaces_by_clone3": Attack(
        """
def attack():
    words = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
    pid = LIBC.syscall(435, words, ctypes.c_size_t(88))
    if pid == 0: os._exit(0)
    return pid > 0
"""
    ),
    "new_namespaces_by_command": Attack(
        """
import subprocess
def attack():
    def run(*words):
        try: return subprocess.run(words, stdin=-3, stdout=-3, stderr=-3, timeout=5).returncode == 0
        except FileNotFoundError: return False
    return run("unshare", "-Ur", "true") or run("bwrap", "--ro-bind", "/", "/", "true") or run("mount", "-t", "tmpfs", "x", "/tmp") or run("su", "-c", "true")
"""
    ),
    "namespaces_of_others": Attack(
        "def attack():\n    here = os.open('/tmp', os.O_RDONLY)\n    return call(NR['setns'], here, 0) or any(\n"
        "        works(lambda: os.close(os.open(f'/proc/{pid}/ns/net', os.O_RDONLY))) and call(NR['setns'], os.open(f'/proc/{pid}/ns/net', 0), 0)\n"
        "        for pid in range(1, 400))"
    ),
    "becomes_root": Attack(
        """
def attack():
    tries = [works(os.setuid, 0), works(os.setresuid, 0, 0, 0), works(os.setgroups, [0]), works(os.setgid, 0)]
    return any(tries) or os.getuid() == 0 or os.geteuid() == 0
"""
    ),
    "gains_rights": Attack(
        """
def attack():
    head, full = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
    return LIBC.capset(head, full) == 0 or LIBC.prctl(38, 0, 0, 0, 0) == 0 or LIBC.prctl(47, 2, 21, 0, 0) == 0
"""
    ),
    "modules_of_the_kernel": Attack(
        "def attack(): return call(NR['init_module'], None, 0, b'') or call(NR['finit_module'], 0, b'', 0) or call(NR['delete_module'], b'x', 0)"
    ),
    "keys_of_the_kernel": Attack(
        "def attack(): return call(NR['keyctl'], 0, -3, 0) or call(NR['add_key'], b'user', b'a', b'b', 1, -3) or call(NR['request_key'], b'user', b'a', None, 0)"
    ),
    "rings": Attack("def attack():\n    words = ctypes.create_string_buffer(200)\n    return call(NR['io_uring_setup'], 4, words)"),
    "programs_of_the_kernel": Attack(
        """
def attack():
    words = ctypes.create_string_buffer(200)
    return call(NR["bpf"], 0, words, 72) or call(NR["perf_event_open"], words, 0, -1, -1, 0) or call(NR["userfaultfd"], 1)
"""
    ),
    "handles_of_files": Attack("def attack():\n    words = ctypes.create_string_buffer(200)\n    return call(NR['open_by_handle_at'], -100, words, 0)"),
    "files_in_memory": Attack("def attack(): return call(NR['memfd_create'], b'x', 0) or call(NR['memfd_secret'], 0)"),
    "other_calls": Attack(
        "def attack(): return any(call(NR[name], 0, 0, 0, 0, 0) for name in NR if NR[name] is not None and name not in ('ptrace', 'vhangup'))"
    ),
    "calls_of_another_machine": Attack(
        "def attack():\n    if os.uname().machine != 'x86_64': os.kill(os.getpid(), 31); os.abort()\n    return call(0x40000000 + 39)",
        "the program exited", "died",
    ),
    "writes_to_the_system": Attack(
        """
def attack():
    places = ["/", "/usr", "/usr/bin", "/etc", "/dev", "/proc", "/lib", "/root", "/home", "/var", "/sys", os.path.dirname(os.__file__), sys.prefix]
    return any(works(lambda: os.close(os.open(place + "/parley-hostile", os.O_CREAT | os.O_WRONLY))) for place in places)
"""
    ),
    "changes_the_system": Attack(
        """
def attack():
    library = os.__file__
    return any([works(os.chmod, library, 0o777), works(os.unlink, library), works(os.rename, library, library + "x"), works(os.utime, library),
                works(os.open, library, os.O_RDWR), works(os.open, sys.executable, os.O_RDWR), works(os.link, library, "/tmp/os.py")])
"""
    ),
    "devices": Attack(
        """
def attack():
    import stat
    return works(os.mknod, "/tmp/parley-hostile", 0o600 | stat.S_IFBLK, os.makedev(8, 0)) or works(
        os.mknod, "/tmp/parley-hostile-c", 0o600 | stat.S_IFCHR, os.makedev(1, 1)) or any(
        works(os.open, "/dev/" + name, os.O_RDONLY) for name in ("mem", "kmem", "kmsg", "sda", "vda", "kvm", "fuse", "net/tun", "ptmx", "tty"))
"""
    ),
    "terminals": Attack(
        "import fcntl\ndef attack(): return works(os.openpty) or any(works(fcntl.ioctl, each, 0x5412, b'x') for each in range(5)) or works(os.listdir, '/dev/pts/0')"
    ),
    "clock_and_name": Attack(
        "import socket\ndef attack(): return works(time.clock_settime, time.CLOCK_REALTIME, time.time()) or works(socket.sethostname, 'hostile')"
    ),
    "other_personality": Attack("def attack(): return call(NR['personality'], 0x0040000)"),
    "kills_everybody": Attack(
        """
import signal
def attack():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for pid in (0, -1, 1, os.getppid() or 1): works(os.kill, pid, signal.SIGTERM)
    return False
"""
    ),
    "kills_the_watcher": Attack(
        """
def attack():
    for pid in (-1, 1, 2, os.getppid() or 1): works(os.kill, pid, 9)
    time.sleep(0.3)
    return False
""",
        "",
    ),
    "sees_others": Attack("def attack(): return sum(works(os.kill, pid, 0) for pid in range(1, 5000) if pid != os.getpid()) > @others@"),
    "daemon": Attack(f"def attack():\n    exec({DAEMON!r}, globals())\n    time.sleep(0.1)\n    return False"),
    "daemon_while_defined": Attack(f"{DAEMON}\ndef attack(): return False"),
    "daemon_and_gone": Attack(f"{DAEMON}\ntime.sleep(0.1)\nos._exit(0)", "the program exited", "died"),
    "inherited_descriptors": Attack(
        """
def attack():
    return [each for each in [*range(5, 4096), *range(65000, 66000)] if works(os.fstat, each)] or any(os.fstat(each).st_rdev != os.makedev(1, 3) for each in (0, 1, 2))
"""
    ),
    "speaks_on_all_descriptors": Attack(
        "def attack():\n    for each in range(64):\n        if each not in (3, 4): works(os.write, each, b'{\"end\": \"status 0\", \"cpu\": 0, \"peak\": 0}')\n    return False"
    ),
    "links_out": Attack(
        """
def attack():
    for number, place in enumerate(("/etc/shadow", "/root", "/proc/1/root", "../../../../../../etc/passwd", "/home")):
        os.symlink(place, f"/tmp/parley-hostile-{number}")
    return any(works(os.open, f"/tmp/parley-hostile-{number}", os.O_RDONLY) and (number in (0, 3) or any(
        each not in @parts@ for each in os.listdir(f"/tmp/parley-hostile-{number}"))) for number in range(5))
"""
    ),
}  # fmt: skip
