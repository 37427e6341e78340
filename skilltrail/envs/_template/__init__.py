"""Environment `_template`: say in one line what its items ask for."""
