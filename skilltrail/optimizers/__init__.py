"""Who proposes edits: `rules` (embedded, no model) and `llm` (prompted)."""
