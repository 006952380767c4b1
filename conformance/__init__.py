"""The conformance suite: it plays the kernel to one worker and says which clauses of the specification the worker keeps.

Use: `python -m conformance TARGET` for the cases, `python -m conformance.chaos APP` for trouble by seed. It stands on the SDK's wire and
fake rules and executes the launcher; it knows nothing of the kernel's inside, and needs no kernel.
"""
