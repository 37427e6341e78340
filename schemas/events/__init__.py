"""One JSON Schema per event type; each describes a whole line of the log."""
