"""A collection that another tool has made under the name that syncer's alias should have."""

from __future__ import annotations

from syncer.errors import RefusedError
from syncer.target.connection import Connection
from syncer.target.succession import Succession


class Plain:
    """A collection of the name of an alias."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._client = connection.client
        self._name = name

    def exists(self) -> bool:
        """Say whether there is a collection of that name, and not an alias."""
        with self._connection.translated(f"looking for {self._name}"):
            if any(each.alias_name == self._name for each in self._client.get_aliases().aliases):
                return False
            return bool(self._client.collection_exists(self._name))

    def check_unused(self) -> None:
        """Raise RefusedError if an alias points at it: whoever reads through that still needs it.

        It would be found when it is to be removed, but that is late.
        """
        with self._connection.translated("looking up the aliases"):
            names = [
                each.alias_name
                for each in self._client.get_aliases().aliases
                if each.collection_name == self._name
            ]
        if names:
            raise RefusedError(
                f"{self._name} cannot be taken over: the alias {', '.join(names)} points at it",
                hint="Delete the alias first if nobody reads through it.",
            )

    def remove(self) -> None:
        """Delete the collection for good; nothing if it is not there, or an alias by now."""
        if self.exists():
            Succession(self._connection).remove(self._name)
