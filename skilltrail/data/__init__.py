"""Item files: read, checked for overlap, put into splits, frozen.

find     where the data is and which of its layouts it has
read     a file's records, each with its place (JSON, JSONL, CSV)
load     records to items: ids, groups, duplicates
assign   ratio mode: which split a group falls into; limits
overlap  what must not be shared between splits, and what a person should look at
splits   the frozen splits under data/splits/, written and read
"""
