"""No test reaches beyond this machine: a connection to any other address is an error."""

from __future__ import annotations

import ipaddress
import sys
from typing import Any


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return host in ("localhost", "")


def _refuse_the_world(event: str, args: tuple[Any, ...]) -> None:
    if event not in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        return
    address = args[0] if event == "socket.getaddrinfo" else args[1]
    host = address[0] if isinstance(address, tuple) else address
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    is_path = event != "socket.getaddrinfo" and not isinstance(address, tuple)
    if host is not None and not is_path and not _is_local(str(host)):
        raise PermissionError(f"tests may not reach beyond loopback, asked for {host}")


sys.addaudithook(_refuse_the_world)
