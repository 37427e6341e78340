"""A system-call filter: no way to more rights, into other processes, or to uncounted memory.

Without it code in a sandbox could make a user namespace of its own, mount a file system without
a size limit there, and fill the memory of the host; or hold memory that no process of it shows:
shared and anonymous, in System V objects, in sockets that wait to be accepted, in access lists
of files; or take the asynchronous reads of the whole machine.

The filter is a classic BPF program over `struct seccomp_data` {int nr; u32 arch; u64 ip; u64
args[6]}. Source: Linux `Documentation/userspace-api/seccomp_filter.rst`.
"""

from __future__ import annotations

import errno
import platform
import struct

from skilltrail.sandbox.protocol import SandboxError

_LOAD, _JEQ, _JSET, _JGE, _AND, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000
_CLONE_NEWUSER = 0x10000000
_FAMILIES = (1, 2, 10)  # unix, inet, inet6: those that a network namespace holds
_PR_SET_THP_DISABLE = 41  # the job's huge pages stay off, see `process`
_MAP_TYPE, _MAP_SHARED, _MAP_ANONYMOUS, _MAP_HUGETLB = 0x0F, 0x01, 0x20, 0x40000

_NAMES = (
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "ptrace",
    "process_vm_readv", "process_vm_writev", "keyctl", "add_key", "request_key", "bpf",
    "perf_event_open", "userfaultfd", "io_uring_setup", "fsopen", "fsmount", "move_mount",
    "open_tree", "syslog", "memfd_create", "memfd_secret", "shmget", "msgget", "semget",
    "mq_open", "vmsplice", "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "io_setup",
    "listen", "socket", "mmap", "clone", "prctl", "clone3",
)  # fmt: skip
# Machine -> (audit architecture, number of each call in `_NAMES`).
_MACHINES = {
    "x86_64": (
        0xC000003E,
        (272, 308, 165, 166, 155, 161, 101, 310, 311, 250, 248, 249, 321, 298, 323, 425, 430,
         432, 429, 428, 103, 319, 447, 29, 68, 64, 240, 278, 188, 189, 190, 463, 206,
         50, 41, 9, 56, 157, 435),
    ),
    "aarch64": (
        0xC00000B7,
        (97, 268, 40, 39, 41, 51, 117, 270, 271, 219, 217, 218, 280, 241, 282, 425, 430,
         432, 429, 428, 116, 279, 447, 194, 186, 190, 180, 75, 5, 6, 7, 463, 0,
         201, 198, 222, 220, 167, 435),
    ),
}  # fmt: skip
_BY_ARGUMENT = ("socket", "mmap", "clone", "prctl", "clone3")


def program(machine: str | None = None, *, is_program: bool = False) -> bytes:
    """Return the compiled filter for `machine` (this one by default).

    `is_program`: for a program of the host, which may listen on a socket.

    Raises:
        SandboxError: a processor whose system calls are not known here.
    """
    machine = platform.machine() if machine is None else machine
    if machine not in _MACHINES:
        raise SandboxError(
            "the system-call filter of the sandbox",
            f"processor {machine!r}",
            f"It knows {', '.join(sorted(_MACHINES))}",
        )
    architecture, numbers = _MACHINES[machine]
    calls = dict(zip(_NAMES, numbers, strict=True))
    passed = {*_BY_ARGUMENT, *(("listen",) if is_program else ())}
    lines = [
        _line(_LOAD, 4),
        _line(_JEQ, architecture, 1, 0),
        _line(_RETURN, _KILL),
        _line(_LOAD, 0),
        _line(_JGE, _X32, 0, 1),
        _line(_RETURN, _KILL),
    ]
    for name, number in calls.items():
        if name not in passed:
            lines += [_line(_JEQ, number, 0, 1), _refuse(errno.EPERM)]
    # "No such call" makes the C library fall back to `clone`, whose flags can be read.
    lines += [_line(_JEQ, calls["clone3"], 0, 1), _refuse(errno.ENOSYS)]
    is_user_namespace = [_line(_JSET, _CLONE_NEWUSER, 0, 1), _refuse(errno.EPERM)]
    families = [
        _line(_JEQ, family, len(_FAMILIES) - at, 0) for at, family in enumerate(_FAMILIES)
    ]
    is_shared_memory = [
        _line(_JSET, _MAP_HUGETLB, 2, 0),
        _line(_AND, _MAP_TYPE | _MAP_ANONYMOUS),
        _line(_JEQ, _MAP_SHARED | _MAP_ANONYMOUS, 0, 1),
        _refuse(errno.EPERM),
    ]
    lines += _case(calls["clone"], 0, is_user_namespace)
    huge_pages = [_line(_JEQ, _PR_SET_THP_DISABLE, 0, 1), _refuse(errno.EPERM)]
    lines += _case(calls["prctl"], 0, huge_pages)
    lines += _case(calls["socket"], 0, [*families, _refuse(errno.EAFNOSUPPORT)])
    lines += _case(calls["mmap"], 3, is_shared_memory)
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _case(number: int, argument: int, lines: list[bytes]) -> list[bytes]:
    """Return the lines for one call: what `lines` make of an argument's low word, or allow."""
    taken = [_line(_LOAD, 16 + 8 * argument), *lines, _line(_RETURN, _ALLOW)]
    return [_line(_JEQ, number, 0, len(taken)), *taken]


def _refuse(code: int) -> bytes:
    return _line(_RETURN, _ERRNO | code)


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
