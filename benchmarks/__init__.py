"""Benchmarks and trials: heavy checks that the tests leave out."""
