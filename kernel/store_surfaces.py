"""Reads of surfaces and artifacts (kernel.core.surface_records: SurfaceView, ArtifactView), and the states held in memory for them.

Rules:
1. A state is read once, from its snapshot and the patches since, and then follows every patch in place: a patch costs what it weighs.
2. What is held is bounded: at CACHE_WEIGHT the state that was used longest ago is dropped, and read again when it is asked for.
3. As with kernel/store_memory.py: if a write is lost, so is the store, and all this with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from kernel.core import merge_patch
from kernel.core.decision import KernelBug
from kernel.core.merge_patch import Tree
from kernel.core.records import Record, decode_body
from kernel.core.retention_records import ForgottenSurface
from kernel.core.surface_records import AppendedPatch, Artifact, Surface, SurfaceSnapshot
from kernel.database import Database
from kernel.store_surface_rows import read_artifact, read_surface

CACHE_WEIGHT = 128 * 1024 * 1024  # about as many bytes of memory, of all states together
_MEMBER_WEIGHT = 256  # bytes of memory a member costs beside its CBOR


class SurfaceRows:
    """Surfaces of one open store; open ones that were used are held in memory, with the states that were used last."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._open: dict[int, Surface] = {}
        self._number_of: dict[str, int] = {}  # by surface_id and by app_session_id, of those
        self._states: OrderedDict[int, Tree] = OrderedDict()
        self._weights: dict[int, int] = {}

    # ----------------------------------------------------------------------------- the View

    def by_id(self, surface_id: str) -> Surface | None:
        """A surface by its id, open or closed."""
        known = self._known(surface_id)
        return known or self._read("SELECT * FROM surface WHERE surface_id = ?", surface_id)

    def of_session(self, app_session_id: str) -> Surface | None:
        """The one surface of an App session, open or closed."""
        known = self._known(app_session_id)
        return known or self._read("SELECT * FROM surface WHERE app_session_id = ?", app_session_id)

    def by_number(self, number: int) -> Surface | None:
        """A surface by its local number."""
        return self._open.get(number) or self._read("SELECT * FROM surface WHERE number = ?", number)

    def open_ones(self) -> Sequence[Surface]:
        """Every open surface, by number; as many as App sessions are open."""
        rows = self._db.run("SELECT * FROM surface WHERE closed_at IS NULL ORDER BY number")
        return [read_surface(row) for row in rows]

    def state(self, number: int) -> Tree:
        """The state of a surface. Raises: KernelBug for one that was never opened."""
        known = self._states.get(number)
        if known is None:
            known = self._states[number] = self._load(number)
            self._weigh(number)
        self._states.move_to_end(number)
        return known

    def _known(self, name: str) -> Surface | None:
        return self._open.get(self._number_of.get(name, 0))

    def _read(self, sql: str, key: str | int) -> Surface | None:
        row = self._db.run_one(sql, (key,))
        if row is None:
            return None
        surface = read_surface(row)
        self._follow_surface(surface)
        return surface

    def _load(self, number: int) -> Tree:
        row = self._db.run_one("SELECT version, state_cbor FROM surface_snapshot WHERE surface_number = ?", (number,))
        if row is None:
            raise KernelBug("a surface without a state")
        tree = merge_patch.decode(row[1])
        patches = self._db.run(
            "SELECT patch_cbor FROM surface_patch WHERE surface_number = ? AND version > ? ORDER BY version", (number, row[0])
        )
        for (patch_cbor,) in patches:
            merge_patch.apply(tree, decode_body(patch_cbor))
        return tree

    # ----------------------------------------------------------------------------- after a write

    def follow(self, records: Iterable[Record]) -> None:
        """Follow what a decision wrote."""
        for record in records:
            match record:
                case Surface():
                    self._follow_surface(record)
                case AppendedPatch():
                    self._follow_patch(record)
                case ForgottenSurface(number=number):
                    self._states.pop(number, None)
                    self._weights.pop(number, None)
                case SurfaceSnapshot(surface_number=number) if number not in self._states:
                    self._states[number] = merge_patch.decode(record.state_cbor)
                case _:
                    pass

    def _follow_surface(self, surface: Surface) -> None:
        if surface.closed_at is None:
            self._open[surface.number] = surface
            self._number_of[surface.surface_id] = self._number_of[surface.app_session_id] = surface.number
        elif self._open.pop(surface.number, None) is not None:
            del self._number_of[surface.surface_id], self._number_of[surface.app_session_id]
        if surface.number in self._states:
            self._weigh(surface.number, surface)

    def _follow_patch(self, appended: AppendedPatch) -> None:
        tree = self._states.get(appended.surface_number)
        if tree is not None:
            merge_patch.apply(tree, decode_body(appended.patch_cbor))

    def _weigh(self, number: int, surface: Surface | None = None) -> None:
        """Book what a state costs, and drop those used longest ago when all together cost too much."""
        surface = surface or self._open.get(number)
        if surface is not None:
            self._weights[number] = surface.state_bytes + _MEMBER_WEIGHT * surface.state_members
        while len(self._states) > 1 and sum(self._weights.get(held, 0) for held in self._states) > CACHE_WEIGHT:
            dropped, _ = self._states.popitem(last=False)
            self._weights.pop(dropped, None)


class ArtifactRows:
    """Artifacts of one open store."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def by_id(self, artifact_id: str) -> Artifact | None:
        """An artifact by its id, a lost one too."""
        row = self._db.run_one("SELECT * FROM artifact WHERE artifact_id = ?", (artifact_id,))
        return None if row is None else read_artifact(row)

    def by_number(self, number: int) -> Artifact | None:
        """An artifact by its local number."""
        row = self._db.run_one("SELECT * FROM artifact WHERE number = ?", (number,))
        return None if row is None else read_artifact(row)

    def of_content(self, app_session_id: str, sha256: str) -> Artifact | None:
        """The artifact of these bytes in an App session, unless it is lost."""
        row = self._db.run_one("SELECT * FROM artifact WHERE app_session_id = ? AND sha256 = ? AND is_lost = 0", (app_session_id, sha256))
        return None if row is None else read_artifact(row)

    def size_of(self, app_session_id: str) -> tuple[int, int]:
        """How many artifacts an App session has, and their bytes."""
        row = self._db.run_one(
            "SELECT count(*), ifnull(sum(size), 0) FROM artifact WHERE app_session_id = ? AND is_lost = 0", (app_session_id,)
        )
        return (0, 0) if row is None else (row[0], row[1])

    # ----------------------------------------------------------------------------- for the files: not part of the core's View

    def needs(self, sha256: str) -> bool:
        """True while any artifact has these bytes."""
        return self._db.run_one("SELECT 1 FROM artifact WHERE sha256 = ? AND is_lost = 0 LIMIT 1", (sha256,)) is not None

    def contents(self) -> Sequence[tuple[int, str, int]]:
        """(number, sha256, size) of every artifact that is not lost."""
        rows = self._db.run("SELECT number, sha256, size FROM artifact WHERE is_lost = 0 ORDER BY number")
        return [(row[0], row[1], row[2]) for row in rows]
