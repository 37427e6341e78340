"""The Python call: `optimize` and `aoptimize` for notebooks and programs.

call     one training from arguments to result
items    a program's items, in whatever form, to splits
result   what came of it: best skill, history, scores, the page
"""
