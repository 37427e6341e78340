"""Prompts of the optimizer `llm`: Markdown files, part of the code.

`optimizers/llm/prompts.py` says how they are filled and how an environment replaces one.
"""
