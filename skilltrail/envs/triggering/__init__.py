"""Environment `qa`: any set of questions in a JSONL file, scored by what the file declares."""
