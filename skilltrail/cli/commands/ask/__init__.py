"""What a run did, and why."""
