"""Programs that try to get out of a sandbox, to stay in it, or to hold more than they may.

Each prints, as its last line, `escaped WHAT` for what it got that it should not have, or
`held N` for the megabytes that it says it holds at the end.
"""

from __future__ import annotations

PRELUDE = """
import array, ctypes, errno, fcntl, mmap, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
MB = 2 ** 20
got = 0
def settle():
    time.sleep(1.5)
def spread(work, count=20):
    # as many processes as may be, each holding what `work` does; the parent waits for all
    made = 0
    for _ in range(count):
        try:
            if os.fork() == 0:
                try: work()
                except Exception: pass
                time.sleep(8); os._exit(0)
            made += 1
        except OSError: break
    time.sleep(5)
    return made
"""

# Name -> code that tries to hold 1.5 GB or more. What one call refuses, another may give.
HOLDING = {
    "memfd": """
for n in range(30):
    file = os.memfd_create('x'); os.write(file, b'x' * 50 * MB); got += 50
""",
    "shm_detached": """
for n in range(30):
    one = libc.shmget(0, 50 * MB, 0o1600)
    if one < 0: break
    libc.shmat.restype = ctypes.c_void_p
    at = libc.shmat(one, None, 0); ctypes.memset(at, 1, 50 * MB)
    libc.shmdt(ctypes.c_void_p(at)); got += 50
""",
    "shared_anonymous": """
def work():
    one = mmap.mmap(-1, 400 * MB)
    for at in range(0, 400 * MB, 4096): one[at] = 1
    one.madvise(mmap.MADV_DONTNEED)
got = 400 * spread(work, 8) if mmap.mmap(-1, 4096) else 0
""",
    "dev_zero": """
file = os.open('/dev/zero', os.O_RDWR)
one = mmap.mmap(file, 900 * MB, mmap.MAP_SHARED)
for at in range(0, 900 * MB, 4096): one[at] = 1
one.madvise(mmap.MADV_DONTNEED); got = 900
""",
    "inodes": """
for n in range(3_000_000):
    os.close(os.open('/tmp/' + str(n).rjust(250, 'x'), os.O_CREAT | os.O_WRONLY))
    got = n // 900
""",
    "inodes_everywhere": """
for n in range(1_000_000):
    for place in ('/tmp', '/box', '/dev/shm'): os.mkdir(f'{place}/{n}')
    got = 3 * n // 1100
""",
    "links": """
for n in range(3_000_000):
    os.symlink('x' * 120, f'/tmp/{n}'); got = n // 1000
""",
    "attributes": """
for n in range(200_000):
    name = f'/tmp/{n}'
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
    for a in range(8): os.setxattr(name, f'user.{a}', b'x' * 8000)
    got = n * 64 // 1000
""",
    "access_lists": """
entries = [(1, -1), *[(2, os.getuid())] * 8000, (4, -1), (16, -1), (32, -1)]
one = struct.pack('<I', 2)
one += b''.join(struct.pack('<HHI', tag, 7, id & 0xffffffff) for tag, id in entries)
for n in range(20_000):
    os.mkdir(f'/tmp/{n}')
    for kind in ('access', 'default'):
        os.setxattr(f'/tmp/{n}', f'system.posix_acl_{kind}', one); got += 0.0625
""",
    "huge_pages_in_part": """
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.prctl(41, 0, 0, 0, 0)
def huge():
    one = mmap.mmap(-1, 4 * MB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); one.madvise(14)
    at = ctypes.addressof(ctypes.c_char.from_buffer(one)); at += -at % (2 * MB)
    ctypes.memset(at, 1, 2 * MB); libc.madvise(at + 4096, 2 * MB - 4096, 4)
    return one
def work():
    kept.extend(huge() for _ in range(110))
kept = []
spread(work, 15)
""",
    "zero_copies": """
def connected():
    one = socket.socket(); one.bind(('127.0.0.1', 0)); one.connect(one.getsockname())
    one.setsockopt(socket.SOL_SOCKET, 60, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10 * MB); one.setblocking(False)
    return one
libc.send.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
kept = [connected() for _ in range(8)]
for one in kept:
    try:
        while True: one.send(b'x' * 60000)
    except BlockingIOError: pass
    for n in range(400):
        page = mmap.mmap(-1, 4 * MB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); page.madvise(14)
        at = ctypes.addressof(ctypes.c_char.from_buffer(page)); at += -at % (2 * MB)
        ctypes.memset(at, 1, 2 * MB)
        if libc.send(one.fileno(), at, 4096, 0x4000040) < 0: break
        page.madvise(mmap.MADV_DONTNEED); got += 2
""",
    "spliced_files": """
def work():
    while True:
        file = os.open(f'/box/{os.getpid()}', os.O_CREAT | os.O_RDWR | os.O_TRUNC)
        os.write(file, b'x' * MB); os.lseek(file, 0, 0)
        reading, writing = os.pipe(); kept.append((reading, writing))
        try: fcntl.fcntl(writing, 1031, MB)
        except OSError: pass
        os.splice(file, writing, MB, flags=2); os.ftruncate(file, 0); os.close(file)
kept = []
spread(work)
""",
    "orphaned_sockets": """
def work():
    while True:
        one, far = socket.socket(), socket.socket()
        for end in (one, far): end.bind(('127.0.0.1', 0)); end.setblocking(False)
        one.connect_ex(far.getsockname()); far.connect_ex(one.getsockname())
        try:
            while True: one.send(b'x' * 60000)
        except OSError: pass
        one.close(); kept.append(far)
kept = []
spread(work)
""",
    "queued_signals": """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 64))
while libc.sigqueue(os.getpid(), 40, None) == 0: got += 160 / MB
timer = ctypes.c_void_p()
while libc.timer_create(0, None, ctypes.byref(timer)) == 0: got += 400 / MB
""",
    "unlinked_files": """
files = []
for place in ('/tmp', '/box', '/dev/shm'):
    try:
        while True:
            name = f'{place}/{len(files)}'
            file = open(name, 'wb'); os.unlink(name); files.append(file)
            file.write(b'x' * 10 * MB); file.flush(); got += 10
    except OSError: pass
""",
    "mapped_files": """
def work():
    for place in ('/tmp', '/box', '/dev/shm'):
        file = os.open(f'{place}/{os.getpid()}', os.O_CREAT | os.O_RDWR)
        os.ftruncate(file, 15 * MB)
        one = mmap.mmap(file, 15 * MB)
        for at in range(0, 15 * MB, 4096): one[at] = 1
        one.madvise(mmap.MADV_DONTNEED)
spread(work)
""",
    "forks": """
def work():
    global x
    x = bytearray(120 * MB)
got = 120 * spread(work, 16)
""",
    "socket_pairs": """
def work():
    while True:
        for end in (pair := socket.socketpair()):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10 * MB); end.setblocking(False)
            kept.append(end)
            try:
                while True: end.send(b'x' * 60000)
            except BlockingIOError: pass
kept = []
spread(work); got = 0
""",
    "unaccepted": """
server = socket.socket(socket.AF_UNIX); server.bind('/tmp/s'); server.listen(4000)
for n in range(4000):
    one = socket.socket(socket.AF_UNIX); one.connect('/tmp/s'); one.setblocking(False)
    try:
        while True: one.send(b'x' * 60000); got += 0.06
    except BlockingIOError: one.close()
""",
    "unaccepted_tcp": """
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(4000)
for n in range(4000):
    one = socket.create_connection(server.getsockname()); one.setblocking(False)
    try:
        while True: got += one.send(b'x' * 60000) / MB
    except BlockingIOError: one.close()
""",
    "self_connected": """
def work():
    while True:
        one = socket.socket(); one.bind(('127.0.0.1', 0)); one.connect(one.getsockname())
        one.setblocking(False); kept.append(one)
        try:
            while True: one.send(b'x' * 60000)
        except BlockingIOError: pass
kept = []
spread(work)
""",
    "pipes": """
def work():
    while True:
        reading, writing = os.pipe(); kept.append((reading, writing))
        try: fcntl.fcntl(writing, 1031, MB)
        except OSError: pass
        os.set_blocking(writing, False)
        try:
            while True: os.write(writing, b'x' * 4096)
        except BlockingIOError: pass
kept = []
spread(work)
""",
    "gifted_pages": """
class IoVec(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
while got < 3000:
    reading, writing = os.pipe(); fcntl.fcntl(writing, 1031, MB)
    for n in range(200):
        one = mmap.mmap(-1, 4 * MB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); one.madvise(14)
        at = ctypes.addressof(ctypes.c_char.from_buffer(one)); at += -at % (2 * MB)
        ctypes.memset(at, 1, 2 * MB)
        if libc.vmsplice(writing, ctypes.byref(IoVec(at, 4096)), 1, 2) < 0: raise OSError
        got += 2
""",
    "in_flight": """
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
for n in range(2000):
    end, far = socket.socketpair(); end.setblocking(False)
    try:
        while True: end.send(b'x' * 60000); got += 0.06
    except BlockingIOError: pass
    rights = array.array('i', [end.fileno()])
    one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    end.close(); far.close()
""",
    "queues": """
for n in range(30000):
    one = libc.msgget(0, 0o1600)
    if one < 0: break
    got += 0.016
for n in range(1000):
    if libc.mq_open(f'/{n}'.encode(), 0o102, 0o600, 0) < 0: break
    got += 1
for n in range(30000):
    if libc.semget(0, 32000, 0o1600) < 0: break
    got += 4
""",
    "keys": """
for n in range(100000):
    if libc.syscall(248, b'user', str(n).encode(), b'x' * 20000, 20000, -3) < 0: break
    got += 0.02
""",
    "locks": """
files = [open(f'/tmp/{n}', 'wb') for n in range(40)]
end = time.monotonic() + 6
n = 0
while time.monotonic() < end:
    for file in files: fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * n)
    n += 1
got = n * 40 * 200 // MB
""",
    "watches": """
def work():
    one = libc.inotify_init()
    for n in range(10**6): libc.inotify_add_watch(one, f'/tmp/{n}'.encode(), 2)
for n in range(100_000): os.mkdir(f'/tmp/{n}')
spread(work); got = 100
""",
    "threads": """
import threading
def work():
    x = bytearray(60 * MB); time.sleep(8)
for n in range(20): threading.Thread(target=work, daemon=True).start()
time.sleep(3); got = 1200
""",
    "output": """
for n in range(3000): os.write(1, b'x' * MB)
got = 0
""",
    "kept_files": """
for n in range(60): open(f'/box/{n}', 'wb').truncate(19 * MB)
got = 0
""",
}

# Name -> code that sets `out` where something of the host was got.
GETTING = {
    "user_namespace": "out = libc.unshare(0x10000000) == 0",
    "clone_user_namespace": "out = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) > 0",
    "clone3": "out = libc.syscall(435, (ctypes.c_uint64 * 11)(0x10000000), 88) > 0",
    "mount": "out = libc.mount(b'none', b'/tmp', b'tmpfs', 0, b'size=10g') == 0",
    "new_mount_calls": "out = any(libc.syscall(n, b'tmpfs', 0) >= 0 for n in (428, 430))",
    "chroot": "out = libc.chroot(b'/tmp') == 0",
    "remount_root": "out = libc.mount(b'', b'/', b'', 32, b'') == 0",
    "ptrace": "out = libc.ptrace(16, 1, 0, 0) == 0",
    "read_other_memory": "out = libc.syscall(310, 1, 0, 0, 0, 0, 0) == 0",
    "bpf": "out = libc.syscall(321, 5, 0, 0) >= 0",
    "perf": "out = libc.syscall(298, 0, 0, -1, -1, 0) >= 0",
    "io_uring": "out = libc.syscall(425, 8, ctypes.create_string_buffer(200)) >= 0",
    "userfaultfd": "out = libc.syscall(323, 1) >= 0",
    "host_reads": "out = libc.syscall(206, 1000, ctypes.byref(ctypes.c_ulong(0))) == 0",
    "huge_pages": "out = libc.prctl(41, 0, 0, 0, 0) == 0 or libc.prctl(42, 0, 0, 0, 0) != 1",
    "access_list": """
os.mkdir('/tmp/d')
one = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', t, 7, 2**32 - 1) for t in (1, 4, 32))
os.setxattr('/tmp/d', 'system.posix_acl_default', one); out = True
""",
    "x32_call": "out = libc.syscall(0x40000000 + 39) > 0",
    "kernel_log": "out = libc.klogctl(10, 0, 0) >= 0",
    "reboot": "out = libc.reboot(0) == 0",
    "set_time": "time.clock_settime(0, 1.0); out = True",
    "set_host_name": "socket.sethostname('x'); out = True",
    "be_root": "os.setuid(0); out = True",
    "own_groups": "os.setgroups([0]); out = True",
    "device_node": """
os.mknod('/tmp/d', 0o60600, os.makedev(8, 0))
out = open('/tmp/d', 'rb')
""",
    "set_uid_file": """
os.chmod('/box/solution.py', 0o4755)
out = os.geteuid() == 0
""",
    "kill_outside": "os.kill(-1, 0); out = any(p.isdigit() for p in os.listdir('/proc'))",
    "priority": "out = os.nice(-5) < 0",
    "raise_limits": "import resource; resource.setrlimit(7, (10**6, 10**6)); out = True",
    "more_processes": "import resource; resource.setrlimit(6, (10**6, 10**6)); out = True",
    "write_interpreter": "open(os.path.realpath(sys.executable), 'ab'); out = True",
    "write_packages": "open('/site/x', 'w'); out = True",
    "write_library": "open('/usr/lib/x', 'w'); out = True",
    "write_root": "open('/x', 'w'); out = True",
    "write_dev": "open('/dev/x', 'w'); out = True",
    "passwd": "out = os.path.exists('/etc/passwd')",
    "homes": "out = any(map(os.path.exists, ('/home', '/root', '/var', '/etc/ssh', '/sys')))",
    "proc": "out = os.listdir('/proc')",
    "dotdot": "out = os.path.exists('/box/../../../etc/passwd')",
    "hard_link": "os.link('/usr/bin/env', '/tmp/e'); out = True",
    "outer_files": "out = [f for f in range(3, 200) if os.path.exists(f'/dev/fd/{f}')]",
    "open_descriptors": """
def is_open(n):
    try: return os.fstat(n).st_mode and n
    except OSError: return 0
out = [n for n in range(3, 64) if is_open(n)]
""",
    "standard_input": "out = os.read(0, 1) or os.fstat(0).st_rdev != os.makedev(1, 3)",
    "terminal": "out = fcntl.ioctl(0, 0x5412, b'x') == 0",
    "network": "socket.create_connection(('192.0.2.1', 80), 2); out = True",
    "name_service": "out = socket.gethostbyname('example.org')",
    "host_loopback": """
ports = (22, 80, 443, 5432, 6379, 8080)
out = [p for p in ports if socket.socket().connect_ex(('127.0.0.1', p)) == 0]
""",
    "abstract_socket": """
out = socket.socket(socket.AF_UNIX).connect_ex('\\0/tmp/.X11-unix/X0') == 0
""",
    "docker_socket": """
out = socket.socket(socket.AF_UNIX).connect_ex('/var/run/docker.sock') == 0
""",
    "vsock": "out = libc.socket(40, 1, 0) >= 0",
    "netlink": "out = libc.socket(16, 3, 0) >= 0",
    "kernel_ciphers": "out = libc.socket(38, 5, 0) >= 0",
    "raw_socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); out = True",
    "packet_socket": "socket.socket(17, socket.SOCK_RAW, 3); out = True",
    "variables": "out = [k for k in os.environ if 'KEY' in k or 'TOKEN' in k or 'SECRET' in k]",
    "host_name": "out = os.uname().nodename != 'sandbox'",
    "package_paths": """
import pathlib
out = [str(p) for p in pathlib.Path('/site').glob('*.pth') if os.access(p, os.R_OK)
       and p.is_file()]
""",
    "compiled_paths": """
import itertools, marshal, pathlib
def names(code):
    yield code.co_filename
    for one in code.co_consts:
        if hasattr(one, 'co_filename'): yield from names(one)
out = [n for top in ('/site', '/py/bin', '/py/lib')
       for p in itertools.islice(pathlib.Path(top).rglob('*.pyc'), 300)
       for n in names(marshal.loads(p.read_bytes()[16:]))
       if n.startswith('/') and not n.startswith(('/site', '/py/', '/usr/'))][:3]
""",
    "direct_urls": """
import pathlib
def text(p):
    try: return p.read_text()
    except OSError: return ''
out = [p for p in pathlib.Path('/site').glob('*/direct_url.json') if text(p)]
""",
}
