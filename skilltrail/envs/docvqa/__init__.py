"""Environment `docvqa`: a question about one page of a document."""
