"""Tasks written for the evaluation framework Inspect."""
