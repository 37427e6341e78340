"""No test reaches beyond loopback: the guard of `conftest.py` at work."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable

import openai
import pytest

# 192.0.2.0/24 is for documentation (RFC 5737); nobody is there.
ELSEWHERE = ("192.0.2.1", 9)


def udp() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


@pytest.mark.parametrize(
    "reach",
    [
        lambda: socket.create_connection(ELSEWHERE, timeout=1),
        lambda: socket.socket().connect_ex(ELSEWHERE),
        lambda: udp().sendto(b"x", ELSEWHERE),
        lambda: udp().sendmsg([b"x"], [], 0, ELSEWHERE),
        lambda: socket.getaddrinfo("example.org", 80),
        lambda: socket.gethostbyname("example.org"),
    ],
)
def test_nothing_beyond_loopback_is_reached(reach: Callable[[], object]) -> None:
    with pytest.raises(PermissionError, match="beyond loopback"):
        reach()


def test_an_sdk_does_not_get_out_either() -> None:
    client = openai.OpenAI(api_key="none", base_url="http://example.org/v1", max_retries=0)
    with pytest.raises(openai.APIConnectionError):
        client.models.list()


def test_a_program_that_a_test_starts_finds_a_dead_proxy() -> None:
    code = "import urllib.request as u; u.urlopen('http://192.0.2.1:9/', timeout=5)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "refused" in done.stderr.lower()


def test_loopback_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
