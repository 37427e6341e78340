"""A view of packages: the same files, and nothing in it tells where they lie."""

from __future__ import annotations

import marshal
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from skilltrail.sandbox.view import view_of


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages below a person's name, and an environment beside it."""
    folder = tmp_path / "home/ann/env/site-packages"
    inner = folder / "pack/inner"
    inner.mkdir(parents=True)
    (folder / "pack/__init__.py").write_text("def f():\n    return [lambda: 1]\n")
    (inner / "more.py").write_text("class A:\n    def g(self): pass\n")
    (inner / "linked.py").symlink_to("more.py")
    for path in (folder / "pack/__init__.py", inner / "more.py"):
        py_compile.compile(str(path), doraise=True)
    (folder / "ann.pth").write_text("/home/ann/project\n")
    (folder / "pack-1.dist-info").mkdir()
    (folder / "pack-1.dist-info/direct_url.json").write_text('{"url": "file:///home/ann"}')
    (folder / "pack-1.dist-info/RECORD").write_text("")
    (folder / "left/deep").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "home/ann/env"))
    return folder


def test_a_view_has_the_same_modules_and_tells_no_place(site: Path) -> None:
    view = view_of(site, "/site", emptied=site / "left")
    assert view != site
    assert view_of(site, "/site", emptied=site / "left") == view
    names = {p.relative_to(view).as_posix() for p in view.rglob("*") if p.is_file()}
    assert {"pack/__init__.py", "pack/inner/more.py", "pack/inner/linked.py"} <= names
    assert not any(name.endswith((".pth", "direct_url.json")) for name in names)
    assert (view / "left").is_dir()
    assert not (view / "left/deep").exists()
    assert os.path.samefile(view / "pack/__init__.py", site / "pack/__init__.py")
    compiled = list(view.rglob("*.pyc"))
    assert len(compiled) == 2
    for path in compiled:
        assert b"ann" not in path.read_bytes()
        assert marshal.loads(path.read_bytes()[16:]).co_filename.startswith("/site/pack/")
    run = [
        sys.executable,
        "-B",
        "-v",
        "-c",
        "import pack.inner.more, pack; print(pack.f()[0]())",
    ]
    done = subprocess.run(run, env={"PYTHONPATH": str(view)}, capture_output=True, text=True)
    assert done.stdout == "1\n"
    for path in compiled:  # it is taken for what its source was compiled to
        assert f"{path} matches {path.parent.parent}" in done.stderr


def test_another_view_is_made_when_something_is_installed(site: Path) -> None:
    first = view_of(site, "/site")
    (site / "new-2.dist-info").mkdir()
    (site / "new-2.dist-info/RECORD").write_text("")
    assert view_of(site, "/site") != first


def test_a_damaged_compiled_module_is_left_out_and_a_view_that_cannot_be_made_is_the_folder(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "pack/broken.pyc").write_bytes(b"x" * 20)
    assert not (view_of(site, "/site") / "pack/broken.pyc").exists()
    monkeypatch.setattr(sys, "prefix", str(site / "nowhere"))
    assert view_of(site, "/py") == site
