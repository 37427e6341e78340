"""Before a run: workspace, data, params, what it would cost, what is missing."""
