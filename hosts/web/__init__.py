"""The web host: a page in a browser on this machine, drawn from what the kernel says. `lineup run` and `lineup desktop` open it."""
