"""Environments: one folder per benchmark. `skilltrail.envs.protocol` is the contract."""
