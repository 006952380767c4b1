"""The published JSON Schemas of Manifest and envelope, their golden vectors, and the kernel's own reading of the same Manifests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from kernel.core.manifest import ManifestInvalid, parse_manifest
from kernel.protocol.agent import InertMessage
from kernel.protocol.envelopes import parse_envelope
from kernel.protocol.strict import Invalid

pytestmark = pytest.mark.clause("2.7")
ROOT = Path(__file__).parents[2]


def load(*names: str) -> dict:
    return json.loads(files("lineup_sdk.protocol").joinpath(*names).read_text())


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(load(name), format_checker=FormatChecker())


MANIFESTS = load("vectors", "manifests.json")
ENVELOPES = load("vectors", "envelopes.json")


def named(vectors: Sequence[dict]) -> list:
    return [pytest.param(v, id=v["name"]) for v in vectors]


@pytest.mark.parametrize("name", ["envelope.schema.json", "manifest.schema.json"])
def test_a_published_schema_is_a_schema_of_2020_12(name: str) -> None:
    Draft202012Validator.check_schema(load(name))


@pytest.mark.clause("4.1")
@pytest.mark.parametrize("vector", named(MANIFESTS["valid"]))
def test_a_valid_manifest_is_taken_by_the_schema_and_by_the_kernel(vector: dict) -> None:
    validator("manifest.schema.json").validate(vector["manifest"])
    assert parse_manifest(vector["manifest"]).app_scope == vector["manifest"]["app_scope"]


@pytest.mark.clause("4.1")
@pytest.mark.parametrize("vector", named(MANIFESTS["invalid"]))
def test_an_invalid_manifest_is_refused_by_the_kernel_at_the_stated_place_and_by_the_schema(vector: dict) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        parse_manifest(vector["manifest"])
    assert caught.value.pointer == vector["pointer"]
    assert validator("manifest.schema.json").is_valid(vector["manifest"]) != vector.get("by_schema", True)


@pytest.mark.clause("4.1")
@pytest.mark.parametrize("path", sorted([*ROOT.glob("manifests/*.json"), *ROOT.glob("tests/fixtures/apps/*/manifest.json")]), ids=str)
def test_every_manifest_of_this_tree_fits_the_published_schema_and_the_kernel(path: Path) -> None:
    manifest = json.loads(path.read_bytes())
    validator("manifest.schema.json").validate(manifest)
    assert parse_manifest(manifest).app_scope == manifest["app_scope"]


TO_AGENT = ("lineup.v1.tool.progress", "lineup.v1.tool.result", "lineup.v1.client.inventory")  # inert to the kernel


@pytest.mark.clause("11.1")
@pytest.mark.parametrize("vector", named(ENVELOPES["valid"]))
def test_a_valid_envelope_fits_the_published_schema_and_the_kernel_takes_it(vector: dict) -> None:
    validator("envelope.schema.json").validate(vector["envelope"])
    taken = parse_envelope(vector["envelope"])
    assert isinstance(taken, InertMessage) == (vector["envelope"]["type"] in TO_AGENT)


@pytest.mark.clause("11.1")
@pytest.mark.parametrize("vector", named(ENVELOPES["invalid"]))
def test_an_invalid_envelope_fits_neither_the_published_schema_nor_the_kernel(vector: dict) -> None:
    assert not validator("envelope.schema.json").is_valid(vector["envelope"])
    if vector["name"] in ("unknown type", "another version") or vector["envelope"]["type"] in TO_AGENT:
        assert isinstance(parse_envelope(vector["envelope"]), InertMessage)
    elif vector["name"] == "tool.call without a revision":  # judged with the call, so that the refusal carries the current revision
        assert parse_envelope(vector["envelope"]).inventory_revision is None  # type: ignore[union-attr]
    else:
        with pytest.raises(Invalid):
            parse_envelope(vector["envelope"])
