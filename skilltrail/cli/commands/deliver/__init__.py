"""From a trained skill to where it is used."""
