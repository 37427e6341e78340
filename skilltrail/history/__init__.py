"""The event log, its hash chain, its git commits, replay, lineage, blame, audit."""
