"""The pure core: what the kernel decides. No clock, no ids, no randomness, no I/O; it takes a View and a command and returns a Decision."""
