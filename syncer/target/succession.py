"""How one generation takes another's place, and how it goes: the alias, and what nobody needs."""

from __future__ import annotations

from qdrant_client import models

from syncer.errors import IdentityError, RefusedError, SyncerError
from syncer.model import SYNC_KEY
from syncer.target.collection import Catalog, is_generation_of, pointing
from syncer.target.connection import Connection


class Succession:
    """Moves the alias, and removes generations; see ``syncer.rebuild.Heirs``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client = connection.client
        self._catalog = Catalog(connection)

    def swap(self, alias: str, expected: str | None, generation: str) -> None:
        """Let `alias` point at `generation` instead of `expected`, in one request; read it back.

        May be repeated. Raises IdentityError if it points elsewhere, before or after.
        """
        found = self._catalog.resolve(alias)
        if found == generation:
            return
        if found != expected:
            raise _moved(alias, expected, found)
        with self._connection.translated(f"moving the alias {alias}"):
            self._client.update_collection_aliases(pointing(alias, found, generation))
        if (found := self._catalog.resolve(alias)) != generation:
            raise _moved(alias, generation, found)

    def remove(self, generation: str) -> None:
        """Delete a generation's collection for good. May be repeated.

        Raises RefusedError if an alias points at it: of syncer's or of anybody's.
        """
        with self._connection.translated(f"removing {generation}"):
            if not self._client.collection_exists(generation):
                return
            names = [
                entry.alias_name
                for entry in self._client.get_aliases().aliases
                if entry.collection_name == generation
            ]
            if names:
                raise RefusedError(
                    f"{generation} was not removed: the alias {', '.join(names)} points at it",
                    hint="Delete the alias first if nobody reads through it.",
                )
            self._client.delete_collection(generation)

    def foreign(self, generation: str) -> int:
        """Return how many points of a generation syncer did not write; 0 if it is not there."""
        if not self._catalog.exists(generation):
            return 0
        unknown = models.Filter(
            must=[models.IsEmptyCondition(is_empty=models.PayloadField(key=f"{SYNC_KEY}.row"))]
        )
        with self._connection.translated(f"counting foreign points of {generation}"):
            return self._client.count(generation, count_filter=unknown, exact=True).count

    def of_source(self, alias: str, source_id: str) -> list[str]:
        """Return the names of all generations of `alias` that were made from this database."""
        with self._connection.translated("listing collections"):
            names = [each.name for each in self._client.get_collections().collections]
        return sorted(
            name
            for name in names
            if is_generation_of(name, alias) and self._source_of(name) == source_id
        )

    def _source_of(self, name: str) -> str | None:
        try:
            return self._catalog.describe(name).source_id
        except RefusedError:  # somebody else's, or gone meanwhile
            return None


def _moved(alias: str, expected: str | None, found: str | None) -> SyncerError:
    return IdentityError(
        f"the alias {alias} was to point at {expected or 'nothing'}, but points at "
        f"{found or 'nothing'}: somebody else has moved it; it was left where it is",
        hint="Find out who moves it, and let it point where it did. What was built is kept; run "
        "the command again then.",
    )
