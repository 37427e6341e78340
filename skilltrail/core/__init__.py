"""What things are: items, scores, trajectories, edits, the skill document, params.

Frozen data and pure functions; imports the standard library and little else.
"""
