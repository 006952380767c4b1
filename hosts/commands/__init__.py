"""The verbs of the `lineup` command, one file a group; hosts.cli puts them together."""
