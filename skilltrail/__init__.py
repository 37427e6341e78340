"""Skilltrail: train skill documents for frozen language models, with an audit trail in git.

Read `dvc.yaml` for the pipeline, then `skilltrail/method/loop.py` for the method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skilltrail.api.call import aoptimize, optimize
    from skilltrail.api.result import Result

__version__ = "0.1.0"
__all__ = ["Result", "__version__", "aoptimize", "optimize"]
_AT = {"optimize": "call", "aoptimize": "call", "Result": "result"}


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that `import skilltrail` itself stays light."""
    if name in _AT:
        from importlib import import_module

        return getattr(import_module(f"skilltrail.api.{_AT[name]}"), name)
    raise AttributeError(f"module 'skilltrail' has no attribute {name!r}")
