"""Clients that hold on to the live page: it answers who has the token, and stays quiet."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from live_server import HALF, Server, serving

Figure = Callable[[str, int, int], None]
MOST_SAID_BYTES = 4000
FLOOD = 1100


def half_sent(server: Server) -> socket.socket:
    client = server.connect()
    client.sendall(HALF)
    return client


def nothing_sent(server: Server) -> socket.socket:
    return server.connect()


def no_request(server: Server) -> socket.socket:
    client = server.connect()
    client.sendall(b"\x16\x03\x01\x00" * 50 + b"\r\n\r\n")
    return client


def half_a_body(server: Server) -> socket.socket:
    client = server.connect()
    client.sendall(
        f"POST /api/start HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nX-Skilltrail: 1\r\n"
        "Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n{".encode()
    )
    return client


def without_token(server: Server) -> socket.socket:
    client = server.connect()
    client.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
    return client


def upgrade(server: Server) -> socket.socket:
    client = server.connect()
    client.sendall(
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    return client


def headers_without_end(server: Server) -> socket.socket:
    client = server.connect()
    client.sendall(HALF + b"X: y\r\n" * 9000)
    return client


KINDS = (
    half_sent, nothing_sent, no_request, half_a_body, without_token, upgrade,
    headers_without_end,
)  # fmt: skip


def held(server: Server, kind: Callable[[Server], socket.socket], count: int) -> int:
    """Open `count` connections, asking with the token between; return how often it answered."""
    clients: list[socket.socket] = []
    answered = 0
    try:
        for number in range(count):
            with contextlib.suppress(OSError):  # was dropped while it sent
                clients.append(kind(server))
            if number % 100 == 99 or number == count - 1:
                answered += server.get() == 200
    finally:
        for client in clients:
            client.close()
    assert server.process.poll() is None
    assert server.said.stat().st_size <= MOST_SAID_BYTES, server.said.read_text("utf-8")[:3000]
    return answered


def test_half_sent_requests_neither_stop_the_page_nor_fill_stderr(tmp_path: Path) -> None:
    with serving(tmp_path, descriptors=220) as server:
        assert held(server, half_sent, 300) == 3


@pytest.mark.attack
def test_a_connection_that_sends_no_whole_request_is_dropped(tmp_path: Path) -> None:
    with serving(tmp_path, descriptors=220) as server:
        client = half_sent(server)
        client.settimeout(20)
        for _ in range(3):  # a byte now and then does not buy more time
            client.sendall(b"X")
        assert client.recv(100) == b""


@pytest.mark.attack
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_connections_held(
    tmp_path: Path, kind: Callable[[Server], socket.socket], figure: Figure
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with serving(tmp_path, descriptors=1024) as server:
            before = psutil.Process(server.process.pid).memory_info().rss
            answered = held(server, kind, FLOOD)
            grown = psutil.Process(server.process.pid).memory_info().rss - before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    figure(f"page answered while {FLOOD} connections of one kind were held", answered, 11)
    assert answered == 11
    assert grown < 60 * 2**20


@pytest.mark.attack
def test_a_flood_of_new_connections_keeps_nobody_out(tmp_path: Path, figure: Figure) -> None:
    over = threading.Event()

    def flood(server: Server) -> None:
        clients: deque[socket.socket] = deque(maxlen=300)
        while not over.is_set():
            with contextlib.suppress(OSError):
                clients.append(half_sent(server))

    with serving(tmp_path, descriptors=1024) as server:
        threads = [threading.Thread(target=flood, args=(server,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        answered = 0
        for _ in range(50):
            with contextlib.suppress(OSError):
                answered += server.get() == 200
        over.set()
        for thread in threads:
            thread.join()
        assert server.said.stat().st_size <= MOST_SAID_BYTES
    figure("page answered under a flood of half-sent requests", answered, 50)
    assert answered >= 45
