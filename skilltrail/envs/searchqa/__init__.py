"""Environment `searchqa`: trivia clues answered from search snippets."""
