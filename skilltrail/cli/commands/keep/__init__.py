"""Care for what is recorded, here and on a remote."""
