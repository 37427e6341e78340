"""Measure skills and methods."""
