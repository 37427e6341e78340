"""Environment `alfworld`: household tasks in a text game."""
