"""Environment `korqa`: Korean questions about a text, as in KorQuAD."""
