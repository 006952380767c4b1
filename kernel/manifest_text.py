"""A Manifest as it lies on disk: JSON in UTF-8, read strictly, then parsed (SPEC 5)."""

from __future__ import annotations

import json

from kernel.core.manifest import Manifest, ManifestInvalid, parse_manifest


def parse_manifest_text(data: bytes) -> Manifest:
    """Read the bytes of a Manifest's file. Raises: ManifestInvalid."""
    try:
        # NaN and Infinity pass here and are refused with the rest of the value.
        document = json.loads(data.decode(), object_pairs_hook=_distinct_members)
    except _RepeatedKey as error:
        raise ManifestInvalid("", "a key comes twice in one object") from error
    except (ValueError, RecursionError):
        raise ManifestInvalid("", "not JSON in UTF-8") from None  # the parser's own error quotes the text
    return parse_manifest(document)


class _RepeatedKey(Exception):
    pass


def _distinct_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RepeatedKey
    return members
