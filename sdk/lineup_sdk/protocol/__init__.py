"""The worker wire: codes, framing, messages and the kernel's control channel to the zygote. Pure: no I/O, no clock."""
