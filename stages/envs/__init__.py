"""Environments: one folder per benchmark. `stages.envs.protocol` is the contract."""
