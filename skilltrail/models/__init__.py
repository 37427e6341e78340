"""One door to every model: a Protocol, one file per backend, retry, budget, usage."""
