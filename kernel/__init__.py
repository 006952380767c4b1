"""The kernel process: the only owner of state and policy. `python -m kernel`."""
