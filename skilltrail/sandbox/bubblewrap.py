"""Sandbox `bubblewrap`: namespaces of its own, everything read-only but a small work folder.

A job sees `/usr/bin` and `/usr/lib`, the interpreter and its packages (read-only), and in
memory, of fixed size: `/box` (the work folder), `/tmp` and `/dev/shm`. It has no network, no
capability, no `/proc` (whose `mountinfo` would tell paths of the host), a user id of its own,
the limits of `Limits`, and where one can be made a control group.

Started by root, bubblewrap makes the namespaces with root's rights and a fresh unprivileged
user id is taken inside (the kernel counts processes per user, and never those of root);
started by anybody else, a user namespace gives the id 65534.
Not isolated: kernel and processor are shared; docs/sandbox.md says what that means.
"""

from __future__ import annotations

import io
import itertools
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from skilltrail.sandbox import python, seccomp
from skilltrail.sandbox.process import run_process
from skilltrail.sandbox.protocol import Job, Limits, Ran, SandboxError, is_plain_name
from skilltrail.sandbox.scope import open_scope

WORK = "/box"
IN_MEMORY = ("/dev/shm", "/tmp", WORK)
PROGRAMS = ("bwrap", "prlimit", "setpriv")

# Runs the program, then writes the kept files as a tar stream to descriptor 0: a pipe to us,
# which the program itself never holds. All words that vary are arguments, never shell text.
_THEN_KEEP = (
    'keep=$1; shift; "$@" </dev/null; code=$?; '
    'if [ -n "$keep" ]; then tar -C /box -cf - -- "$keep" >&0 2>/dev/null; fi; exit $code'
)
_FIRST_UID, _UIDS = 60_000, 5_000
_MOST_FILES = 1000  # that a job may leave
_counter = itertools.count()


class Bubblewrap:
    """The sandbox; make it by `choose.open_sandbox`, which probes it first."""

    name = "bubblewrap"

    @property
    def interpreter(self) -> str:
        return python.interpreter()

    async def run(self, job: Job) -> Ran:
        limits = job.limits
        most_bytes = limits.disk_mb * 2**20
        with _descriptors(job) as (files, filter_fd), open_scope(limits) as scope:
            argv = self.command(job, files, filter_fd)
            ended = await run_process(
                scope.joined(argv),
                limits,
                env={"PATH": "/usr/bin:/bin"},
                pass_fds=(*files.values(), filter_fd),
                channel_bytes=2 * most_bytes,
                places=IN_MEMORY,
                is_over=scope.is_out_of_memory,
            )
            if scope.is_out_of_memory():
                return Ran("out_of_memory", None, ended.stdout, ended.stderr)
        if ended.code is not None and ended.stderr.startswith("bwrap: "):
            raise SandboxError("the sandbox could not be set up", ended.stderr.strip())
        kept = files_in(ended.channel, most_bytes)
        return Ran(ended.ending, ended.code, ended.stdout, ended.stderr, kept)

    def command(self, job: Job, files: dict[str, int], filter_fd: int) -> list[str]:
        """Return the whole command line; `files` gives an open descriptor for each name."""
        is_root = os.geteuid() == 0
        inner = [*_limited(job), "/bin/sh", "-c", _THEN_KEEP, "sh", job.keep or ""]
        return [
            "bwrap",
            *(_ROOT_NAMESPACES if is_root else _USER_NAMESPACES),
            *("--die-with-parent", "--new-session", "--clearenv", "--hostname", "sandbox"),
            *_environment(),
            *_system(),
            *_folders([*python.mounts(), *((path, str(path)) for path in job.shown)]),
            *_hidden(),
            *(("--proc", "/proc", "--dev", "/dev") if job.is_program else _devices()),
            *_writable(job.limits),
            *_files(files),
            *("--seccomp", str(filter_fd), "--remount-ro", "/dev", "--remount-ro", "/"),
            *("--chdir", WORK, "--"),
            *(_own_user() if is_root else ()),
            *inner,
            *job.argv,
        ]


# Root keeps the two capabilities that `setpriv` needs to become somebody else, and loses them
# by that; no program can give them back, for bubblewrap forbids new privileges.
_ROOT_NAMESPACES = (
    "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
    "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID",
)  # fmt: skip
_USER_NAMESPACES = ("--unshare-all", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL")


def missing_programs() -> list[str]:
    """Return which of the needed programs are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def shows(folder: Path) -> bool:
    """Return whether `folder` lies inside anything that a job can read."""
    real = folder.resolve()
    seen = [Path("/usr/bin"), Path("/usr/lib"), *python.sources()]
    return any(real.is_relative_to(one.resolve()) for one in seen)


def _own_user() -> list[str]:
    uid = str(_FIRST_UID + (os.getpid() * 97 + next(_counter)) % _UIDS)
    return [
        "setpriv",
        f"--reuid={uid}",
        f"--regid={uid}",
        "--clear-groups",
        "--inh-caps=-all",
        "--",
    ]


def _limited(job: Job) -> list[str]:
    limits = job.limits
    return [
        "prlimit",
        f"--as={limits.memory_mb * 2**20}",
        f"--cpu={limits.cpu_s}:{limits.cpu_s + 1}",
        f"--nproc={limits.processes}",
        f"--fsize={limits.file_mb * 2**20}",
        f"--nofile={256 if job.is_program else 64}",
        *("--msgqueue=0", "--core=0", "--"),
    ]


def _environment() -> Iterator[str]:
    values = {"PATH": "/usr/bin:/bin", "HOME": WORK, "TMPDIR": "/tmp", **python.environment()}
    for name, value in values.items():
        yield from ("--setenv", name, value)


def _system() -> Iterator[str]:
    """Yield the mounts of the operating system's programs and libraries."""
    yield from ("--perms", "0755", "--dir", "/usr")
    for name in ("bin", "lib", "lib32", "lib64"):
        if Path("/usr", name).is_dir():
            yield from ("--ro-bind", f"/usr/{name}", f"/usr/{name}")
        root = Path("/", name)
        if root.is_symlink():
            yield from ("--symlink", str(root.readlink()), str(root))
        elif root.is_dir():
            yield from ("--ro-bind", str(root), str(root))


def _folders(mounts: list[tuple[Path, str]]) -> Iterator[str]:
    """Yield read-only mounts; folders above them are made readable for every user."""
    made = {"/usr"}
    for path, place in mounts:
        for above in reversed(Path(place).parents[:-1]):
            if str(above) not in made:
                made.add(str(above))
                yield from ("--perms", "0755", "--dir", str(above))
        yield from ("--ro-bind", str(path), place)


def _hidden() -> Iterator[str]:
    """Yield the mounts over what would tell of this machine, or is not this Python's."""
    for file in python.telling():
        yield from ("--ro-bind", "/dev/null", file)
    for place in python.foreign():
        yield from ("--tmpfs", place, "--remount-ro", place)


def _devices() -> Iterator[str]:
    """Yield the mounts of `/dev`, none of which gives memory or terminals; `/proc` is empty."""
    yield from ("--perms", "0755", "--dir", "/proc", "--perms", "0755", "--tmpfs", "/dev")
    for name in ("null", "full", "random", "urandom"):
        yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")


def _writable(limits: Limits) -> Iterator[str]:
    """Yield the mounts that can be written: in memory and of fixed size."""
    for place, size_mb in zip(IN_MEMORY, (4, 16, limits.disk_mb), strict=True):
        yield from ("--size", str(size_mb * 2**20), "--perms", "0777", "--tmpfs", place)


def _files(files: dict[str, int]) -> Iterator[str]:
    made: set[Path] = set()
    for name, descriptor in files.items():
        for above in reversed(Path(name).parents[:-1]):
            if above not in made:
                made.add(above)
                yield from ("--perms", "0777", "--dir", f"{WORK}/{above}")
        yield from ("--perms", "0666", "--file", str(descriptor), f"{WORK}/{name}")


@contextmanager
def _descriptors(job: Job) -> Iterator[tuple[dict[str, int], int]]:
    """Yield open descriptors: one for each file of the job, and one of the call filter."""
    with ExitStack() as stack:

        def opened(content: bytes) -> int:
            descriptor = os.memfd_create("job")
            stack.callback(os.close, descriptor)
            with open(descriptor, "wb", closefd=False) as file:
                file.write(content)
            os.lseek(descriptor, 0, os.SEEK_SET)
            return descriptor

        files = {name: opened(content) for name, content in job.files.items()}
        yield files, opened(seccomp.program(is_program=job.is_program))


def files_in(stream: bytes, most_bytes: int) -> dict[str, bytes]:
    """Return name -> content of the plain files of a tar stream, sorted by name.

    The stream is untrusted. Links, devices and names that lead elsewhere are passed over: they
    can stand for nothing outside, because nothing is ever unpacked to the disk.

    At most `_MOST_FILES` files and `most_bytes` bytes in all; what is over, and what follows a
    damaged place, is left out.
    """
    found: dict[str, bytes] = {}
    left = most_bytes
    try:
        with tarfile.open(fileobj=io.BytesIO(stream), mode="r:") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if not member.isreg() or not is_plain_name(name):
                    continue
                if len(found) >= _MOST_FILES or member.size > left:
                    break
                content = archive.extractfile(member)
                found[name] = b"" if content is None else content.read(left)
                left -= len(found[name])
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError):
        pass
    return dict(sorted(found.items()))
