"""The embedded model behind a real server on loopback, for tests of the wire protocols.

`python tests/llama_server.py GGUF` prints its URL and serves until its standard input ends.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def llama_server(gguf: Path, n_ctx: int = 4096) -> Iterator[str]:
    """Serve a GGUF file in a process of its own and yield the URL."""
    command = [sys.executable, __file__, str(gguf), str(n_ctx)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = next((line for line in process.stdout if line.startswith("http")), "")
        if not url:
            raise RuntimeError(f"the server did not start, exit code {process.wait()}")
        yield url.strip()
    finally:
        process.kill()
        process.wait()


def _serve(gguf: str, n_ctx: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = gguf
    params.model_alias = ["smollm2"]
    params.n_parallel = 1
    params.n_ctx = n_ctx
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
