"""A person's own data, as it lies there: what `skilltrail init --data` makes of it.

tables    rows of a file or folder (CSV, JSON, JSONL, XLSX, saved `datasets`)
formats   rows of other tools' files (promptfoo, Inspect, DSPy, chat transcripts)
columns   which column is question, answer, context, …
records   rows to records with ids made from their content
choose    which environment and scorer fit, and why
exact     an exact, stratified assignment to splits that later items never change
power     what a split of this size can show
"""
