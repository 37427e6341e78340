"""Items from the sessions that people had with agents: read, found, proposed, reviewed."""
