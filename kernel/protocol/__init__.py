"""The other two wires, pure: `lineup.v1` envelopes of an Agent (agent), the host channel (host), and the strict border for all (strict)."""
