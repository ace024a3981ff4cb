"""All collections and aliases, in one folder."""

from __future__ import annotations

import json
import shutil
import threading
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from qdrant_client.http import models

from qdrant_http.answers import already_there, invalid, no_collection, not_found, wrong_input
from qdrant_http.collection import FILE, Collection, Kept, write

_FORBIDDEN = '<>:"/\\|?*\0\x1f'  # in a collection's name
_LONGEST = 255


class Store:
    """The collections below a folder.

    Each has a folder of its own, named by a random id and not by the collection: any name will do,
    and a collection that is made again under its name shares nothing with the old one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        self._aliases_file = folder / "aliases.json"
        self._collections: dict[str, Collection] = {}
        self._aliases: dict[str, str] = {}
        self._open()

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir():
            if (path / FILE).exists():
                found = Collection.open(path)
                self._collections[found.name] = found
            elif path.is_dir():  # killed before it was made, or while it was deleted
                shutil.rmtree(path)
        if self._aliases_file.exists():
            self._aliases = json.loads(self._aliases_file.read_bytes())

    def close(self) -> None:
        """Let go of the folder."""
        with self._lock, ExitStack() as stack:
            for found in self._collections.values():
                stack.callback(found.close)
            self._collections = {}

    def names(self) -> list[str]:
        """Return the collections' names."""
        with self._lock:
            return sorted(self._collections)

    def aliases(self, collection: str | None = None) -> list[models.AliasDescription]:
        """Return all aliases, or those of one collection."""
        with self._lock:
            return [
                models.AliasDescription(alias_name=alias, collection_name=name)
                for alias, name in sorted(self._aliases.items())
                if collection in {None, name}
            ]

    def get(self, name: str) -> Collection:
        """Return the collection of this name or alias; raises RefusedError if there is none."""
        with self._lock:
            found = self._collections.get(self._aliases.get(name, name))
            if found is None:
                raise no_collection(name)
            return found

    def exists(self, name: str) -> bool:
        """Say whether a collection has this name or alias."""
        with self._lock:
            return self._aliases.get(name, name) in self._collections

    def create(self, kept: Kept) -> None:
        """Make a collection; raises RefusedError if its name is taken or not allowed."""
        _check_name(kept.name)
        with self._lock:
            if kept.name in self._collections:
                raise already_there(kept.name)
            if kept.name in self._aliases:
                raise wrong_input(
                    f"Can't create collection with name {kept.name}. "
                    "Alias with the same name already exists"
                )
            folder = self.folder / uuid.uuid4().hex
            self._collections[kept.name] = Collection.create(folder, kept)

    def delete(self, name: str) -> bool:
        """Delete a collection and its aliases; say whether it was there. No alias will do."""
        with self._lock:
            found = self._collections.pop(name, None)
            if found is None:
                return False
            remaining = {alias: to for alias, to in self._aliases.items() if to != name}
            if remaining != self._aliases:
                self._set_aliases(remaining)
            (found.folder / FILE).unlink()
            found.close()
            shutil.rmtree(found.folder)
            return True

    def change_aliases(self, actions: Sequence[models.AliasOperations]) -> None:
        """Change aliases in one step.

        Nobody sees what lies between. If an action is refused, those before it stay: the server
        does not take them back either.
        """
        with self._lock:
            aliases = dict(self._aliases)
            try:
                for action in actions:
                    self._change(aliases, action)
            finally:
                self._set_aliases(aliases)

    def _change(self, aliases: dict[str, str], action: models.AliasOperations) -> None:
        if isinstance(action, models.CreateAliasOperation):
            made = action.create_alias
            if made.collection_name not in self._collections:
                raise no_collection(made.collection_name)
            if made.alias_name in self._collections:
                raise already_there(made.alias_name)
            aliases[made.alias_name] = made.collection_name
        elif isinstance(action, models.DeleteAliasOperation):
            aliases.pop(action.delete_alias.alias_name, None)
        else:
            renamed = action.rename_alias
            if renamed.old_alias_name not in aliases:
                raise not_found(f"Alias {renamed.old_alias_name} does not exists!")
            aliases[renamed.new_alias_name] = aliases.pop(renamed.old_alias_name)

    def _set_aliases(self, aliases: dict[str, str]) -> None:
        write(self._aliases_file, json.dumps(aliases).encode())
        self._aliases = aliases


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= _LONGEST:
        raise invalid(
            f"collection_name: value has a length of {len(name)}, must be from 1 to {_LONGEST}",
            "path parameters",
        )
    for one in _FORBIDDEN:
        if one in name:
            raise invalid(
                f'collection_name: collection name cannot contain "{one}" char', "path parameters"
            )
