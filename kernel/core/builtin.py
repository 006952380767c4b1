"""The kernel's own Manifest, scope `runtime`: tools the kernel answers itself, without a worker (SPEC 6.9). Constant text."""

from __future__ import annotations

from typing import Final

from kernel.core.manifest import Manifest, parse_manifest

RUNTIME: Final[Manifest] = parse_manifest(
    {
        "app_scope": "runtime",
        "version": "0.1.0",
        "kind": "runtime",
        "title": "Runtime",
        "description": "The kernel itself.",
        "tools": [
            {
                "id": "runtime.status",
                "version": 1,
                "title": "Runtime status",
                "description": "Say which kernel runs and how many apps, instances and open calls it has.",
                "handling": "direct",
                "target": {"app_scope": "runtime", "requires_foreground": False, "restore_previous_focus": False},
                "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
                "output_schema": {
                    "type": "object",
                    "properties": {
                        "kernel_version": {"type": "string", "description": "Version of the running kernel."},
                        "epoch": {"type": "string", "description": "Prefix of every id this kernel makes."},
                        "apps": {"type": "integer", "minimum": 0, "description": "Apps that are enabled."},
                        "instances": {"type": "integer", "minimum": 0, "description": "Instances that have not ended."},
                        "open_calls": {"type": "integer", "minimum": 0, "description": "Calls without an outcome yet."},
                    },
                    "required": ["kernel_version", "epoch", "apps", "instances", "open_calls"],
                    "additionalProperties": False,
                },
                "hints": {"read_only": True, "idempotent": True},
            }
        ],
        "subscriptions": [],
        "requested_capabilities": [],
        "host": {"min_version": "0.1.0", "surface_required": False},
    },
    builtin=True,
)
