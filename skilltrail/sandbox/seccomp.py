"""A system-call filter: no new namespaces, no mounts, no looking into other processes.

Without it code in a sandbox could make a user namespace of its own, mount a file system without
a size limit there, and fill the memory of the host.

The filter is a classic BPF program over `struct seccomp_data` {int nr; u32 arch; u64 ip; u64
args[6]}. Source: Linux `Documentation/userspace-api/seccomp_filter.rst`.
"""

from __future__ import annotations

import errno
import platform
import struct

from skilltrail.sandbox.protocol import SandboxError

_LOAD, _JEQ, _JSET, _JGE, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_CLONE_NEWUSER = 0x10000000
_X32 = 0x40000000

# Machine -> (audit architecture, system call numbers).
_CALLS = {
    "x86_64": (
        0xC000003E,
        {"unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155,
         "chroot": 161, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
         "keyctl": 250, "add_key": 248, "request_key": 249, "bpf": 321,
         "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425, "fsopen": 430,
         "fsmount": 432, "move_mount": 429, "open_tree": 428, "clone": 56, "clone3": 435},
    ),
    "aarch64": (
        0xC00000B7,
        {"unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41,
         "chroot": 51, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271,
         "keyctl": 219, "add_key": 217, "request_key": 218, "bpf": 280,
         "perf_event_open": 241, "userfaultfd": 282, "io_uring_setup": 425, "fsopen": 430,
         "fsmount": 432, "move_mount": 429, "open_tree": 428, "clone": 220, "clone3": 435},
    ),
}  # fmt: skip


def program(machine: str | None = None) -> bytes:
    """Return the compiled filter for `machine` (this one by default).

    Raises:
        SandboxError: a processor whose system calls are not known here.
    """
    machine = platform.machine() if machine is None else machine
    if machine not in _CALLS:
        raise SandboxError(
            "the system-call filter of the sandbox",
            f"processor {machine!r}",
            f"It knows {', '.join(sorted(_CALLS))}",
        )
    architecture, calls = _CALLS[machine]
    refused = [number for name, number in calls.items() if name not in ("clone", "clone3")]
    lines = [
        _line(_LOAD, 4),
        _line(_JEQ, architecture, 1, 0),
        _line(_RETURN, _KILL),
        _line(_LOAD, 0),
        _line(_JGE, _X32, 0, 1),
        _line(_RETURN, _KILL),
    ]
    for number in refused:
        lines += [_line(_JEQ, number, 0, 1), _line(_RETURN, _ERRNO | errno.EPERM)]
    # "No such call" makes the C library fall back to `clone`, whose flags can be read.
    lines += [_line(_JEQ, calls["clone3"], 0, 1), _line(_RETURN, _ERRNO | errno.ENOSYS)]
    lines += [
        _line(_JEQ, calls["clone"], 0, 3),
        _line(_LOAD, 16),
        _line(_JSET, _CLONE_NEWUSER, 0, 1),
        _line(_RETURN, _ERRNO | errno.EPERM),
        _line(_RETURN, _ALLOW),
    ]
    return b"".join(lines)


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
