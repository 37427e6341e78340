"""Skilltrail: train skill documents for frozen language models, with an audit trail in git.

Read `dvc.yaml` for the pipeline, then `skilltrail/method/loop.py` for the method.
"""

__version__ = "0.1.0"
