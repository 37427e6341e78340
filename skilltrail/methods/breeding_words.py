"""What PromptBreeder tells the optimizer: tasks by operator, first instructions, thoughts.

The paper prints its own lists; these are other words for the same roles.
"""

from __future__ import annotations

from collections.abc import Mapping

TASKS: Mapping[str, str] = {
    "begin": "Change the document of now by the instruction, with the thought in mind.",
    "zero_order": (
        "Write a document for these tasks from nothing, led by the thought alone; what the "
        "tasks are, the text of that name tells."
    ),
    "first_order": "Change the document as the instruction says, and in no other way.",
    "distribution": (
        "The documents are a family. Write one more that belongs to it and is unlike each."
    ),
    "ranked": (
        "The documents stand in the order of their worth, the best last. Write one that would "
        "stand after the last."
    ),
    "lineage": (
        "Each document was once the best of its line, the newest last. Write the one that "
        "comes next."
    ),
    "working": (
        "Somebody did the runs below rightly, with a document that you do not have. Write the "
        "document that they must have had; the one of now may help."
    ),
}

HYPER: Mapping[str, str] = {
    "hyper_zero": "Turn the thought into an instruction.",
    "hyper_first": "Say the instruction anew, shorter and so that it brings about more.",
}

INSTRUCTIONS = (
    "Say everything in half as many words.",
    "Turn each piece of advice into a step that can be checked.",
    "Put what decides most cases first.",
    "Say what a good answer looks like before how to get there.",
    "Add the one rule whose absence costs most.",
    "Take out whatever a careful reader would do anyway.",
    "Replace general words by exact ones.",
    "Name the most likely mistake, and what to do in its place.",
    "Say it as one would to somebody who has a minute.",
    "Write it as a list of questions to ask oneself while working.",
    "Make the form of the answer impossible to mistake.",
    "Change the order in which things are done.",
)

THOUGHTS = (
    "What would somebody do first who has done this a thousand times?",
    "Which part of the input is really needed?",
    "How would one check an answer without knowing the right one?",
    "What does the task ask for, word by word?",
    "Where do two readings of the task part ways?",
    "What is the simplest thing that could work?",
    "What would a wrong answer that looks right be like?",
    "Can it be broken into parts that are each easy?",
    "What may be taken for granted, and what not?",
    "What would be left if only one rule were allowed?",
    "How would the answer look if the reader were a machine?",
    "Begin at the end: what must the last line be?",
)
