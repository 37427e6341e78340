"""From a reply's text to one object that follows our schema: found, spelled, checked."""
