"""Environment `textqa`: a question about a text, answered by a span of it."""
