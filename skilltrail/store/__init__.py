"""Recorded facts: everything that cost money or time, kept by content key.

`facts` keeps them, `claims` lets one payer make each, `exports` carries them between clones,
`usage` counts what a run paid for and what it reused, `ops` notes what happened when.
"""
