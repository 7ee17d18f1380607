"""A temporary Linux system: a root folder of its own in which everything may be written but the
programs of this machine, with users of its own. Its maker is the first process of new mount and
process namespaces."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
from typing import Any

from parley.sandbox.inside import confine, model_files, proc

BIND, DEEP, PRIVATE, REMOUNT = 4096, 1 << 14, 1 << 18, 32
NAME, BOUNDING_DROP = 15, 24
IDS = 1 << 16  # users of a view
# What root of the view may do there: change owners, read and write what is others', become others,
# end their processes.
KEPT = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "FSETID": 4,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
}
# what copying needs: to read everything, and to give it the owner and the mode that it had
COPYING = {KEPT[name] for name in ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID")}
LAST_RIGHT = 40
FOLDERS = {
    "/etc": 0o755, "/home": 0o755, "/mnt": 0o755, "/opt": 0o755, "/root": 0o700, "/run": 0o755,
    "/srv": 0o755, "/tmp": 0o1777,
    "/var": 0o755, "/var/cache": 0o755, "/var/lib": 0o755, "/var/log": 0o755, "/var/mail": 0o775,
    "/var/spool": 0o755,
    "/var/tmp": 0o1777, "/usr/local/bin": 0o755, "/usr/local/etc": 0o755, "/usr/local/lib": 0o755,
    "/usr/local/sbin": 0o755,
    "/usr/local/share": 0o755, "/usr/local/src": 0o755,
}  # fmt: skip
# Programs load from here before they do what they are asked to: whoever writes here decides what a
# check finds.
EMPTY_HOME = "/etc/empty"
SEALED_FILES = ("/etc/ld.so.cache", "/etc/ld.so.preload")
SEALED_FOLDERS = (
    "/etc/alternatives", "/etc/pam.d", "/etc/perl", "/etc/security", "/etc/ssl",
    "/usr/local/include", "/usr/local/lib", "/usr/local/lib64", "/usr/local/share", EMPTY_HOME,
)  # fmt: skip
# Where bubblewrap leaves room for the file system of a view, and what it consists of: the root
# folder, what stands beside the folders of /usr, /usr/local, and /dev/shm.
ROOM = "/.view"
ROOT, BESIDE, LOCAL, SHARED = PARTS = ("root", "beside", "local", "shared")
STAGE = f"{ROOM}/{ROOT}"
SEARCHED = ("etc", "lib32", "lib64", "libexec", "libx32")  # below /usr, where programs look
BASH, PYTHON = "/usr/bin/bash", "/usr/bin/python3"


def make_view(settings: dict[str, Any]) -> int:
    """Make the view for a model, and become root of it, but of nothing else. Returns a descriptor
    of the folder with all that can be written."""
    owner = settings["owner"]
    mount_room(settings["limits"]["disk"])
    for name in PARTS:
        os.mkdir(f"{ROOM}/{name}")
        set_owner(f"{ROOM}/{name}", 0o1777 if name == SHARED else 0o755, owner)
    mount_system(settings)
    written = os.open(ROOM, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    enter()
    own = {settings["home"]: FOLDERS.get(settings["home"], 0o755)}
    for place, mode in {**FOLDERS, **own}.items():
        os.makedirs(place, exist_ok=True)
        set_owner(place, mode, owner)
    for place, mode, text in (*((place, 0o644, "") for place in SEALED_FILES), *settings["files"]):
        write_file(place, mode, bytes.fromhex(text), owner)
    for place in (*SEALED_FOLDERS, *settings["sealed"]):
        os.makedirs(place, exist_ok=True)
        set_owner(place, 0o755, owner)
    for place, target in settings["links"]:
        os.symlink(target, place)
        os.lchown(place, owner, owner)
    seal(settings)
    become_root(settings)
    return written


def copy_view(settings: dict[str, Any], written: int, with_proc: bool) -> None:
    """Make a view with a copy of what a model has written in another one.

    Without /proc, no file and no link shows what a process of a check is, reads or was given. With
    it, at least the shell and the Python interpreter cannot be read, so that no program which they
    start can look into their memory.
    """
    filter_program = bytes.fromhex(settings["filter"])
    # Whoever has filled his disk must not keep the copy from having room.
    mount_room(2 * settings["limits"]["disk"])
    model_files.copy(written, PARTS, ROOM, lambda: limit_rights(COPYING, filter_program))
    os.close(written)
    mount_system(settings)
    for program in (BASH, PYTHON) if with_proc else ():
        hide_text(os.path.realpath(program))
    enter()
    seal(settings)
    model_files.remove_settings()
    if not with_proc:
        proc.hide()
    become_root(settings)


def mount_room(size: int) -> None:
    """Mount an empty file system in memory, and keep all mounts from now on to ourselves."""
    confine.check_result(confine.LIBC.mount(None, b"/", None, DEEP | PRIVATE, None), "/")
    options = b"size=%d,nr_inodes=%d,mode=755" % (size, max(4096, size >> 12))
    flags = confine.NO_SUID | confine.NO_DEV
    confine.check_result(confine.mount(b"tmpfs", ROOM.encode(), flags, options), ROOM)


def mount_system(settings: dict[str, Any]) -> None:
    """Mount what belongs to a system in the root folder.

    An overlay is mounted over /usr. Files may be added beside its folders, but the folders
    themselves stay as they are, and locks on files there are invisible outside.
    """
    bind(STAGE, STAGE)
    os.makedirs(f"{ROOM}/work", exist_ok=True)
    for name in ("usr", "proc", "dev", *settings["programs"]):
        os.makedirs(f"{STAGE}/{name}", exist_ok=True)
    folders, usr = folders_of_usr(), f"{STAGE}/usr"
    for name in folders:
        if not os.path.lexists(f"/usr/{name}"):
            os.makedirs(f"{ROOM}/{BESIDE}/{name}", 0o755, exist_ok=True)
    options = f"lowerdir=/usr,upperdir={ROOM}/{BESIDE},workdir={ROOM}/work,userxattr".encode()
    flags = confine.NO_SUID | confine.NO_DEV
    confine.check_result(
        confine.mount(b"overlay", usr.encode(), flags, options), "a layer over /usr"
    )
    for name in folders:
        bind(f"{usr}/{name}", f"{usr}/{name}", confine.READ_ONLY)
    for name, target in settings["programs"].items():
        source = f"{STAGE}{target}" if target.startswith("/usr/") else target
        bind(source, f"{STAGE}/{name}", confine.READ_ONLY)
        hide_packages(target, f"{STAGE}/{name}", settings["packages"])
    hide_packages("/usr", usr, settings["packages"])
    bind(f"{ROOM}/{LOCAL}", f"{usr}/local")
    bind("/dev", f"{STAGE}/dev", DEEP)
    bind(f"{ROOM}/{SHARED}", f"{STAGE}/dev/shm")
    flags |= confine.NO_EXEC
    confine.check_result(confine.mount(b"proc", f"{STAGE}/proc".encode(), flags, None), "/proc")


def hide_packages(source: str, place: str, packages: list[str]) -> None:
    """Mount an empty folder over each folder of installed packages."""
    flags = confine.READ_ONLY | confine.NO_SUID | confine.NO_DEV
    for each in packages:
        if each.startswith(f"{source}/"):
            found = f"{place}{each.removeprefix(source)}"
            confine.check_result(
                confine.mount(b"tmpfs", found.encode(), flags, b"size=4k,mode=755"), found
            )


def folders_of_usr() -> list[str]:
    """The folders of /usr that nobody may write in."""
    found = [each.name for each in os.scandir("/usr") if each.is_dir(follow_symlinks=False)]
    missing = [name for name in SEARCHED if not os.path.lexists(f"/usr/{name}")]
    return [name for name in (*found, *missing) if name != "local"]


def hide_text(program: str) -> None:
    """Put a copy of a program in its place that can be started and not be read. Of a process that
    started so, nobody else reads the memory or the descriptors (the kernel calls it not
    dumpable)."""
    if not os.path.exists(program):
        return
    place = f"{ROOM}/{os.path.basename(program)}"
    shutil.copyfile(program, place)
    os.chmod(place, 0o111)
    bind(place, f"{STAGE}{program}", confine.READ_ONLY)


def enter() -> None:
    """Make the file systems below STAGE the only ones."""
    os.chdir(STAGE)
    confine.check_result(confine.LIBC.pivot_root(b".", b"."), "a root folder")
    confine.check_result(confine.LIBC.umount2(b".", proc.DETACH), "the root folder before")
    os.chdir("/")


def seal(settings: dict[str, Any]) -> None:
    bind("/etc", "/etc")  # a folder on which something is mounted can be neither moved nor removed
    for place in (*SEALED_FILES, *SEALED_FOLDERS, *settings["sealed"]):
        bind(place, place, confine.READ_ONLY)


def become_root(settings: dict[str, Any]) -> None:
    """Become root of the view, whom nobody inside can look into."""
    if settings["owner"]:
        make_users(settings["owner"], settings["limits"]["processes"])
    rename_process(b"init")
    confine.control(confine.DUMPABLE, 0, "dumpable")  # nobody inside reads or writes our memory


def rename_process(name: bytes) -> None:
    """Change our process name, because our command line reveals where this machine keeps its
    programs."""
    with proc.open_file("self/stat") as file:
        begins, ends = map(int, file.read().rpartition(")")[2].split()[45:47])
    ctypes.memmove(begins, name.ljust(ends - begins, b"\0"), ends - begins)
    confine.check_result(confine.LIBC.prctl(NAME, name, 0, 0, 0), "name")


def set_owner(place: str, mode: int, owner: int) -> None:
    os.chown(place, owner, owner)
    os.chmod(place, mode)


def write_file(place: str, mode: int, text: bytes, owner: int) -> None:
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as file:
        file.write(text)
    set_owner(os.path.dirname(place), os.stat(os.path.dirname(place)).st_mode & 0o7777, owner)
    set_owner(place, mode, owner)


def bind(source: str, place: str, flags: int = 0) -> None:
    """Mount a file or a folder a second time, with flags of its own."""
    deep = flags & DEEP
    done = confine.LIBC.mount(source.encode(), place.encode(), None, BIND | deep, None)
    confine.check_result(done, place)
    if not deep:
        flags |= REMOUNT | BIND | confine.NO_SUID | confine.NO_DEV
        confine.check_result(confine.LIBC.mount(None, place.encode(), None, flags, None), place)


def make_users(base: int, processes: int) -> None:
    """Create a user namespace with a range of users that do not exist on this machine.

    Its creator is a user with a limited number of processes, so that the limit holds for all users
    inside together.
    """
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    entered, waiting = os.pipe()
    mapper = os.fork()
    if mapper == 0:
        os.close(waiting)
        os.read(entered, 1)
        for name in ("uid_map", "gid_map"):
            with proc.open_file(f"1/{name}", "w") as file:
                file.write(f"0 {base} {IDS}")
        os._exit(0)
    os.setgroups([])
    os.setresgid(base, base, base)
    os.setresuid(base, base, 0)
    confine.check_result(confine.LIBC.unshare(confine.NEW_USER), "a user namespace")
    os.close(waiting)
    if os.waitpid(mapper, 0)[1]:
        raise confine.Unable("users: their numbers could not be written")
    os.close(entered)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def confine_process(limits: dict[str, Any], program: bytes) -> None:
    """Restrict the current process before it becomes a shell or a script: root's rights over the
    view's own files and users, and nothing else."""
    confine.set_limits(limits)
    confine.set_limit("CPU", limits["cpu"])
    limit_rights({*KEPT.values()}, program)


def limit_rights(rights: set[int], program: bytes) -> None:
    """Keep some rights for the program that the current process becomes, and filter its system
    calls. Until then it cannot read what is forbidden to its user: a program that can only be
    started then hides its memory."""
    for right in range(LAST_RIGHT + 1):
        if right not in rights:
            confine.check_result(
                confine.LIBC.prctl(BOUNDING_DROP, right, 0, 0, 0), f"right {right}"
            )
    permitted = sum(1 << right for right in rights)
    effective = permitted & ~(1 << KEPT["DAC_OVERRIDE"])
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    # all rights are below 32: the second half of each set is empty
    data = (ctypes.c_uint32 * 6)(effective, permitted, 0, 0, 0, 0)
    confine.check_result(confine.LIBC.capset(header, data), "rights")
    confine.control(confine.NO_NEW_RIGHTS, 1, "no new rights")
    confine.install_filter(program)
