"""What a question shows of a run: each module turns one kind of material into text. Pure.

runs       a rollout, or one item under two documents
turns      the turns of a trajectory, told once, and cut turn by turn where room is short
layout     messages, tool calls and JSON as lines that a reader takes in
room       how much of each run a request can hold
past       what earlier steps tried and how it ended
coverage   what the document covers, by task type
"""
