"""Running code that a model wrote: `skilltrail.sandbox.protocol` is the contract.

`bubblewrap` isolates; `none` does not and is used only where a person says so.
"""
