"""Code in the sandbox tries to get out, to stay, and to use the machine up. It fails each time,
and the job ends with a result."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import psutil
import pytest

from skilltrail.core.errors import UsageError
from skilltrail.sandbox import seccomp
from skilltrail.sandbox.bubblewrap import files_in, shows
from skilltrail.sandbox.choose import open_sandbox, why_not
from skilltrail.sandbox.protocol import Job, Limits, Ran, Sandbox, SandboxError, is_plain_name
from skilltrail.sandbox.scope import _candidates, _group

FAST = Limits(wall_s=20, cpu_s=5)
needs_bubblewrap = pytest.mark.skipif(
    why_not() is not None, reason=f"bubblewrap does not work here: {why_not()}"
)
both = pytest.mark.parametrize(
    "kind", [pytest.param("bubblewrap", marks=needs_bubblewrap), "none"]
)


def run(code: str, kind: str = "bubblewrap", limits: Limits = FAST, keep: str = ".") -> Ran:
    """Run Python code as a job."""
    return asyncio.run(ran(open_sandbox(kind), code, limits, keep))


async def ran(sandbox: Sandbox, code: str, limits: Limits = FAST, keep: str = ".") -> Ran:
    argv = (sandbox.interpreter, "solution.py")
    return await sandbox.run(Job(argv, {"solution.py": code.encode()}, keep, limits))


# --- what works ---------------------------------------------------------------------------


@both
def test_files_go_in_and_come_out(kind: str) -> None:
    sandbox = open_sandbox(kind)
    code = b"import pathlib; pathlib.Path('b/out').write_text(open('b/in').read() + '!')"
    files = {"solution.py": code, "b/in": b"hello"}
    done = asyncio.run(sandbox.run(Job((sandbox.interpreter, "solution.py"), files, "b/out")))
    assert done == Ran("finished", 0, "", "", {"b/out": b"hello!"})


@both
def test_openpyxl_can_be_imported(kind: str) -> None:
    assert run("import openpyxl; print('ok')", kind).stdout == "ok\n"


@both
def test_a_file_can_be_replaced(kind: str) -> None:
    code = "import os; os.remove('solution.py'); open('solution.py', 'w').write('new')"
    assert run(code, kind).files == {"solution.py": b"new"}


@both
def test_an_exception_is_shown_without_a_path_of_the_host(kind: str) -> None:
    done = run("raise ValueError('bad')", kind)
    assert done.exit_code == 1
    assert "ValueError: bad" in done.stderr
    assert 'solution.py", line 1' in done.stderr
    assert "/tmp" not in done.stderr


@both
def test_the_environment_is_an_allow_list(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    code = "import os; print([k for k in os.environ if 'KEY' in k])"
    assert run(code, kind).stdout == "[]\n"


@both
def test_no_shell_reads_arguments(kind: str) -> None:
    sandbox = open_sandbox(kind)
    code = b"import sys; print(sys.argv[1:])"
    argv = (sandbox.interpreter, "a.py", "; echo hacked > out.txt", "$(id)")
    done = asyncio.run(sandbox.run(Job(argv, {"a.py": code}, ".")))
    assert done.stdout == "['; echo hacked > out.txt', '$(id)']\n"
    assert list(done.files) == ["a.py"]


@both
def test_two_runs_of_the_same_code_agree(kind: str) -> None:
    code = "print(hash('a'), {'x', 'y', 'z'})"
    assert run(code, kind).stdout == run(code, kind).stdout


# --- looking out --------------------------------------------------------------------------


@needs_bubblewrap
def test_the_answer_key_cannot_be_read(tmp_path: Path) -> None:
    key = tmp_path / "answer.xlsx"
    key.write_text("42", encoding="utf-8")
    assert "FileNotFoundError" in run(f"open({str(key)!r})").stderr


@needs_bubblewrap
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/etc/shadow",
        str(Path.home()),
        "/root",
        "/home",
        "/var",
        "/proc/1/root/etc/passwd",
    ],
)
def test_nothing_of_the_host_is_there(path: str) -> None:
    code = f"import os; print(os.path.exists({path!r}))"
    assert run(code).stdout == "False\n"


@needs_bubblewrap
def test_the_project_and_its_data_are_not_there() -> None:
    root = Path(__file__).resolve().parent.parent
    code = f"import os; print(os.path.exists({str(root)!r}))"
    assert run(code).stdout == "False\n"
    assert not shows(root)


@needs_bubblewrap
def test_data_that_the_sandbox_would_show_is_refused() -> None:
    with pytest.raises(SandboxError, match="lies inside a folder that the sandbox shows"):
        open_sandbox("bubblewrap", (Path("/usr/lib"),))


@needs_bubblewrap
def test_a_link_left_behind_brings_nothing_back() -> None:
    code = (
        "import os\n"
        "os.symlink('/etc/passwd', 'output.xlsx')\n"
        "os.symlink('/', 'root')\n"
        "os.mkfifo('pipe')\n"
        "os.link('solution.py', 'again')\n"
    )
    assert set(run(code).files) <= {"solution.py", "again"}
    assert run(code, keep="output.xlsx").files == {}


@needs_bubblewrap
def test_processes_of_the_host_are_out_of_sight() -> None:
    code = "import os; print(len([p for p in os.listdir('/proc') if p.isdigit()]) < 8)"
    assert run(code).stdout == "True\n"


@needs_bubblewrap
def test_it_is_not_root_and_has_no_capability() -> None:
    code = (
        "import ctypes, os\n"
        "sets = (ctypes.c_uint32 * 6)(*[~0] * 6)\n"
        "libc = ctypes.CDLL(None)\n"
        "done = libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), sets)\n"
        "none = libc.prctl(39, 0, 0, 0, 0)\n"
        "print(os.getuid() > 0, os.getgid() > 0, done, list(sets), none)\n"
    )
    assert run(code).stdout == f"True True 0 {[0] * 6} 1\n"  # and no new privileges


@needs_bubblewrap
def test_no_path_and_no_name_of_this_machine_is_told() -> None:
    """Where packages, interpreter and project lie, and what the host is called.

    But for compiled modules: Python writes into them where their source lay.
    """
    code = (
        "import os, pathlib\n"
        "print(os.uname().nodename, os.listdir('/proc'))\n"
        "for top in (*pathlib.Path('/').glob('site*'), pathlib.Path('/py/lib')):\n"
        "    for file in top.rglob('*'):\n"
        "        name = file.name if file.suffix != '.pyc' else ''\n"
        "        if '.dist-info' in str(file) or '.pth' in name or 'editable' in name:\n"
        "            try: print(file.read_text(errors='replace'))\n"
        "            except OSError as error: print(error)\n"
    )
    told = run(code, limits=Limits(wall_s=60, output_chars=50_000_000)).stdout
    assert told.startswith("sandbox []\n")
    here = (Path(__file__).resolve().parents[1], sysconfig.get_path("purelib"))
    assert [str(path) for path in here if str(path) in told] == []
    assert socket.gethostname() not in told.split()


# --- writing out --------------------------------------------------------------------------


@needs_bubblewrap
@pytest.mark.parametrize(
    "place", ["/", "/usr/bin", "/usr/lib", "/py/bin", "/site", "/dev", "/etc"]
)
def test_nothing_can_be_written_outside(place: str) -> None:
    done = run(f"open({place!r} + '/escaped', 'w').write('x')")
    assert done.exit_code == 1
    assert "Error" in done.stderr


@needs_bubblewrap
def test_what_is_written_to_tmp_stays_inside() -> None:
    assert run("open('/tmp/skilltrail-escape', 'w').write('x')").exit_code == 0
    assert not Path("/tmp/skilltrail-escape").exists()


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a/../../x", "a\\b", "", "x\0", "x" * 300, "C:x"]
)
def test_a_file_name_that_leads_out_is_refused(name: str) -> None:
    assert not is_plain_name(name)
    with pytest.raises(UsageError, match="file of a sandbox job"):
        Job(("python",), {name: b""})


# --- the network --------------------------------------------------------------------------


@needs_bubblewrap
def test_a_listener_on_this_machine_is_out_of_reach() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = server.getsockname()
        code = f"import socket; socket.create_connection({address!r}, 2)"
        assert "ConnectionRefusedError" in run(code).stderr


@needs_bubblewrap
def test_the_outside_is_unreachable() -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 80), 2)"
    assert "Network is unreachable" in run(code).stderr


@needs_bubblewrap
def test_an_abstract_socket_is_out_of_reach() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0skilltrail-test")
        server.listen()
        code = "import socket; socket.socket(socket.AF_UNIX).connect('\\0skilltrail-test')"
        assert "ConnectionRefusedError" in run(code).stderr


# --- using the machine up -----------------------------------------------------------------


@needs_bubblewrap
def test_a_fork_bomb_is_stopped() -> None:
    code = (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 500:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(60)\n"
        "            os._exit(0)\n"
        "        made += 1\n"
        "except BlockingIOError:\n"
        "    print('stopped at', made)\n"
    )
    done = run(code)
    assert done.stdout.startswith("stopped at")
    assert int(done.stdout.split()[-1]) < FAST.processes


@needs_bubblewrap
def test_the_disk_cannot_be_filled() -> None:
    code = (
        "n = 0\n"
        "try:\n"
        "    while True:\n"
        "        open(f'f{n}', 'wb').write(b'x' * 5_000_000); n += 1\n"
        "except OSError as error:\n"
        "    print(error.errno, n)\n"
    )
    done = run(code, keep="solution.py")
    assert done.stdout.split()[0] == "28"
    assert int(done.stdout.split()[1]) <= 13


@needs_bubblewrap
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "/box"])
def test_no_place_can_hold_more_than_its_size(place: str) -> None:
    code = (
        "n = 0\n"
        "try:\n"
        "    while n < 200:\n"
        f"        open(f'{place}/f{{n}}', 'wb').write(b'x' * 1_000_000); n += 1\n"
        "except OSError:\n"
        "    pass\n"
        "print(n)\n"
    )
    assert int(run(code, keep="solution.py").stdout) < 70


@both
def test_one_file_cannot_outgrow_its_limit(kind: str) -> None:
    code = "open('big', 'wb').write(b'x' * 30_000_000)"
    done = run(code, kind, keep="solution.py")
    assert not done.ok


@both
def test_files_of_holes_do_not_flood_the_host(kind: str) -> None:
    code = "[open(f'hole{n}', 'wb').truncate(5_000_000) for n in range(40)]"
    done = run(code, kind, Limits(disk_mb=16))
    assert sum(map(len, done.files.values())) <= 16 * 2**20


@both
def test_ten_gigabytes_are_refused(kind: str) -> None:
    assert "MemoryError" in run("x = bytearray(10 * 10**9)", kind).stderr


@needs_bubblewrap
def test_many_processes_cannot_hold_more_memory_together() -> None:
    limits = Limits(wall_s=20, memory_mb=300)
    code = (
        "import os, time\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0: break\n"
        "x = bytearray(150_000_000)\n"
        "time.sleep(30)\n"
    )
    assert run(code, limits=limits).ending == "out_of_memory"


@both
def test_an_endless_loop_ends_at_the_wall_clock(kind: str) -> None:
    done = run("while True: pass", kind, Limits(wall_s=1))
    assert (done.ending, done.exit_code, done.files) == ("out_of_time", None, {})


@both
def test_an_endless_loop_ends_at_the_processor_limit(kind: str) -> None:
    assert run("while True: pass", kind, Limits(wall_s=20, cpu_s=1)).exit_code == 128 + 24


@both
def test_endless_output_is_cut_and_does_not_fill_memory(kind: str) -> None:
    done = run("while True: print('x' * 1000)", kind, Limits(wall_s=1, output_chars=500))
    assert done.ending == "out_of_time"
    assert len(done.stdout) == 500


@both
def test_a_background_child_does_not_outlive_the_job(kind: str) -> None:
    marker = f"skilltrail-child-{os.getpid()}-{kind}"
    own_session = kind == "bubblewrap"  # without a sandbox a child that leaves the group stays
    code = (
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)', {marker!r}],"
        f" start_new_session={own_session})\n"
    )
    run(code, kind)
    # Killed already; the kernel may still be at it.
    alive = [p for p in psutil.process_iter(["cmdline"]) if marker in (p.info["cmdline"] or [])]
    assert psutil.wait_procs(alive, timeout=20)[1] == []


@both
def test_a_cancelled_job_leaves_no_process(kind: str) -> None:
    marker = f"skilltrail-cancelled-{os.getpid()}-{kind}"

    async def cancelled() -> None:
        sandbox = open_sandbox(kind)
        argv = (sandbox.interpreter, "-c", "import time; time.sleep(30)", marker)
        task = asyncio.create_task(sandbox.run(Job(argv)))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    # Killed already; the kernel may still be at it.
    alive = [p for p in psutil.process_iter(["cmdline"]) if marker in (p.info["cmdline"] or [])]
    assert psutil.wait_procs(alive, timeout=20)[1] == []


# --- the kernel ---------------------------------------------------------------------------


@needs_bubblewrap
@pytest.mark.parametrize(
    "call",
    [
        "libc.unshare(0x10000000)",  # a new user namespace
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, b'size=10g')",
        "libc.chroot(b'/tmp')",
        "libc.ptrace(16, 1, 0, 0)",
        "libc.syscall(321, 0, 0, 0)",  # bpf on x86_64, another refused call elsewhere
        "libc.memfd_create(b'x', 0)",
        "libc.shmget(0, 4096, 0o1600)",
        "libc.msgget(0, 0o1600)",
        "libc.semget(0, 1, 0o1600)",
        "libc.mq_open(b'/x', 0o102, 0o600, 0)",
        "libc.listen(libc.socket(1, 1, 0), 9)",
        "ctypes.c_long(libc.mmap(0, 4096, 3, 0x21, -1, 0)).value",  # shared, of no file
        "ctypes.c_long(libc.mmap(0, 2 << 20, 3, 0x40022, -1, 0)).value",  # of the huge pages
        "libc.socket(40, 1, 0)",  # vsock: to the machine around this one
        "libc.socket(16, 3, 0)",  # netlink
        "libc.socket(38, 5, 0)",  # the kernel's ciphers
        "libc.klogctl(10, 0, 0)",
    ],
)
def test_calls_that_could_lift_a_limit_are_refused(call: str) -> None:
    code = f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint({call})"
    assert run(code).stdout == "-1\n"


def test_an_unknown_processor_is_refused() -> None:
    with pytest.raises(SandboxError, match="sparc"):
        seccomp.program("sparc")


def test_a_child_cannot_be_cloned_into_a_user_namespace() -> None:
    for machine in ("x86_64", "aarch64"):
        assert len(seccomp.program(machine)) % 8 == 0


def test_a_control_group_is_sought_beside_ours_or_where_root_may_write(tmp_path: Path) -> None:
    """Version 2 gives no controllers below a group that holds processes."""
    v1 = "4:memory:/docker/1\n3:cpu,cpuacct:/\n2:pids:/\n1:name=systemd:/\n"
    v2 = "0::/user.slice/app.slice/one.scope\n"
    assert list(_candidates(v2, tmp_path)) == []  # version 2 is not mounted here
    assert list(_candidates(v1 + "0::/\n", tmp_path)) == [
        (tmp_path / "memory/docker/1", tmp_path / "pids")
    ]
    (tmp_path / "cgroup.controllers").touch()
    assert list(_candidates(v2, tmp_path)) == [(tmp_path / "user.slice/app.slice",)]
    assert list(_candidates("0::/\n", tmp_path)) == [(tmp_path,)]


def test_a_group_gets_the_bounds_that_it_knows_and_is_taken_away(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), _group(tmp_path / "one", FAST):
        pass
    assert list(tmp_path.iterdir()) == []


# --- set-up -------------------------------------------------------------------------------


def test_a_damaged_stream_gives_the_files_before_the_damage() -> None:
    assert files_in(b"no tar at all" * 100, 1000) == {}
    assert files_in(b"", 1000) == {}


@both
def test_jobs_run_side_by_side(kind: str) -> None:
    async def several() -> list[Ran]:
        sandbox = open_sandbox(kind)
        return await asyncio.gather(*(ran(sandbox, f"print({n})") for n in range(4)))

    assert [done.stdout for done in asyncio.run(several())] == ["0\n", "1\n", "2\n", "3\n"]


def test_without_bubblewrap_it_refuses_and_says_what_to_do(tmp_path: Path) -> None:
    code = (
        "from skilltrail.sandbox.choose import open_sandbox\n"
        "from skilltrail.sandbox.protocol import SandboxError\n"
        "try:\n    open_sandbox('bubblewrap')\n"
        "except SandboxError as error:\n    print(error)\n"
        "print(open_sandbox('none').name)\n"
    )
    root = str(Path(__file__).resolve().parent.parent)
    env = {"PATH": str(tmp_path), "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert "not installed: bwrap" in done.stdout
    assert "apt-get install bubblewrap" in done.stdout
    assert "sandbox: none" in done.stdout
    assert done.stdout.endswith("none\n")


@needs_bubblewrap
def test_a_job_may_be_started_from_a_thread() -> None:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(run("print('ok')").stdout))
    thread.start()
    thread.join()
    assert found == ["ok\n"]
