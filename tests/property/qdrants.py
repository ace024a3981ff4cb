"""The two targets of a schedule: dictionaries, and the client's local mode in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import memory
from contract.fake_target import FakeTarget

from syncer.errors import IdentityError
from syncer.generations import Catalog as CatalogPort
from syncer.keys import PointId
from syncer.model import Description, Point, Recipe, SparseVector, Vector
from syncer.ports import Lender, Target
from syncer.target import Catalog, Connection, GenerationTarget, StoredPoints, TargetSpec

Held = Mapping[PointId, tuple[object, Mapping[str, Sequence[float]]]]
"""Payload and vectors by point id."""


class Qdrant(Protocol):
    """Collections and aliases; what is written stays when it is closed and opened again."""

    def open(self) -> None:
        """Open it for one process."""

    def close(self) -> None:
        """Close it; may be repeated."""

    def catalog(self) -> CatalogPort:
        """Return the collections and aliases."""

    def target(self, generation: str) -> Target:
        """Return one generation."""

    def lender(self, generation: str) -> Lender:
        """Return the vectors of one generation."""

    def points(self, generation: str) -> Held:
        """Return all points of a generation."""


class FakeCatalog:
    """Collections and aliases in dictionaries; see ``syncer.generations.Catalog``."""

    def __init__(self) -> None:
        self.targets: dict[str, FakeTarget] = {}
        self._described: dict[str, Description] = {}
        self._aliases: dict[str, str] = {}

    def resolve(self, alias: str) -> str | None:
        """Look the alias up."""
        return self._aliases.get(alias)

    def exists(self, generation: str) -> bool:
        """Look the collection up."""
        return generation in self.targets

    def create(
        self,
        generation: str,
        alias: str,
        description: Description,
        indexes: Sequence[str],  # noqa: ARG002 - a dictionary needs none
    ) -> None:
        """Make what is not there yet, and let the alias point at it."""
        if generation not in self.targets:
            self.targets[generation] = FakeTarget()
            self._described[generation] = description
        self._aliases[alias] = generation

    def describe(self, generation: str) -> Description:
        """Return the description."""
        if generation not in self._described:
            raise IdentityError(f"collection {generation} is not there any more")
        return self._described[generation]

    def set_description(self, generation: str, description: Description) -> None:
        """Replace the description."""
        self._described[generation] = description

    def mend(self, generation: str, recipe: Recipe, indexes: Sequence[str]) -> None:
        """Do nothing: a dictionary keeps what it is given."""

    def token(self, generation: str) -> str | None:
        """Return the token."""
        return self.targets[generation].token()


class FakeQdrant:
    """Everything in dictionaries."""

    def __init__(self, _folder: Path) -> None:
        self._catalog = FakeCatalog()

    def open(self) -> None:
        """Do nothing: dictionaries are open."""

    def close(self) -> None:
        """Do nothing."""

    def catalog(self) -> FakeCatalog:
        """Return the dictionaries."""
        return self._catalog

    def target(self, generation: str) -> FakeTarget:
        """Return a generation's dictionary."""
        return self._catalog.targets[generation]

    def lender(self, generation: str) -> FakeTarget:
        """Return a generation's dictionary."""
        return self._catalog.targets[generation]

    def points(self, generation: str) -> Held:
        """Return what a generation's dictionary holds."""
        points = self._catalog.targets[generation].points
        return {point.id: (point.payload, _dense(point)) for point in points.values()}


def _dense(point: Point) -> dict[str, Vector]:
    """Return a point's vectors; the schedules have no sparse ones."""
    return {
        name: vector
        for name, vector in point.vectors.items()
        if not isinstance(vector, SparseVector)
    }


class LocalQdrant:
    """The client's local mode, opened anew by every process."""

    def __init__(self, folder: Path) -> None:
        self._spec = TargetSpec(path=folder / "qdrant", lock_wait=0)
        self._connection: Connection | None = None

    def open(self) -> None:
        """Open the folder."""
        self._connection = memory.connect(self._spec)

    def close(self) -> None:
        """Close the folder."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def catalog(self) -> Catalog:
        """Return the folder's catalogue."""
        return Catalog(self._opened())

    def target(self, generation: str) -> GenerationTarget:
        """Return a collection of the folder."""
        return GenerationTarget(self._opened(), generation)

    def lender(self, generation: str) -> StoredPoints:
        """Return the vectors of a collection of the folder."""
        return StoredPoints(self._opened(), generation, 2, "document")

    def points(self, generation: str) -> Held:
        """Return all points of a collection."""
        return memory.all_points(self._opened(), generation)  # type: ignore[return-value]

    def _opened(self) -> Connection:
        assert self._connection is not None, "no process has the folder open"
        return self._connection
