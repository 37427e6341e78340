"""A run in the forms of other programs that keep runs."""
