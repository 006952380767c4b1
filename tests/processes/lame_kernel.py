"""The kernel with a zygote that ends before it has said anything: what a machine looks like that lacks a layer of the seal."""

from __future__ import annotations

import sys

from kernel import zygote
from kernel.__main__ import main

if __name__ == "__main__":
    # The program alone; the arguments after it are the kernel's own.
    zygote.launch_command = lambda: [sys.executable, "-c", "pass"]  # type: ignore[attr-defined]
    sys.exit(main())
