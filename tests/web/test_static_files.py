"""The table of the page's files, and what the start of the web host may not wait for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from hosts.web.static_files import PAGE, STATIC_FOLDER, read_static


def test_the_page_names_every_script_once_before_it_starts_them() -> None:
    files = read_static()
    page = files[PAGE].body.decode()
    named = re.findall(r'<link rel="modulepreload" href="([^"]+)">', page)
    assert sorted(named) == sorted(f"/static/{path.relative_to(STATIC_FOLDER).as_posix()}" for path in STATIC_FOLDER.rglob("*.js"))
    assert page.index("modulepreload") < page.index('<script type="module"')
    assert "<!-- scripts -->" not in page


def test_what_is_drawn_before_the_scripts_has_the_places_of_the_shell() -> None:
    page = read_static()[PAGE].body.decode()
    shell = (STATIC_FOLDER / "parts" / "shell.js").read_text()
    for name in ("shell", "side", "brand", "middle", "blank", "spinner"):
        assert f'class="{name}"' in page
        assert re.search(rf"class=[\"{{$`]*{name}", shell), name


def test_links_and_other_kinds_of_files_are_not_in_the_table(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!-- scripts -->")
    (tmp_path / "app.js").write_text("1;")
    (tmp_path / "types.d.ts").write_text("type A = 1;")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link.js").symlink_to(tmp_path / "secret")
    files = read_static(tmp_path)
    assert files.keys() == {"/static/app.js", "/static/index.html"}
    assert files[PAGE].body == b'<link rel="modulepreload" href="/static/app.js">'


def test_the_kernel_does_not_wait_for_the_import_of_the_server() -> None:
    loaded = "{name.partition('.')[0] for name in sys.modules} & {'hypercorn', 'pydantic', 'starlette'}"
    code = f"import sys, hosts.web.host; print(sorted({loaded}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
