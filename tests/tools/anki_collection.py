"""Does to an Anki collection what the named steps say, one after the other, through Anki's library.

Runs in Anki's own environment: ``anki_collection.py FOLDER '[["add", "Front", "Back"], …]'``. What
a step ``run`` leaves behind, with the collection open, is printed: its exit code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from anki._backend import RustBackend  # type: ignore[import-not-found]
from anki.collection import Collection  # type: ignore[import-not-found]


def add(collection: Collection, front: str, back: str) -> None:
    note = collection.new_note(collection.models.by_name("Basic"))
    note["Front"], note["Back"], note.tags = front, back, ["test"]
    collection.add_note(note, collection.decks.id("Default"))


def edit(collection: Collection, search: str, back: str) -> None:
    (found,) = collection.find_notes(search)
    note = collection.get_note(found)
    note["Back"] = back
    collection.update_note(note)


def delete(collection: Collection, search: str) -> None:
    collection.remove_notes(collection.find_notes(search))


def undo(collection: Collection) -> None:
    collection.undo()


def review(collection: Collection) -> None:
    """Answer the next card."""
    card = collection.sched.getCard()
    collection.sched.answerCard(card, 3)


def check(collection: Collection) -> None:
    """Do what Tools > Check Database does."""
    problems, is_well = collection.fix_integrity()
    if not is_well:
        raise ValueError(problems)


def export(collection: Collection, path: str) -> None:
    collection.export_collection_package(path, include_media=False, legacy=False)


def run(_: Collection, *command: str) -> None:
    print(subprocess.run(command, check=False, capture_output=True).returncode)  # noqa: T201


STEPS = {step.__name__: step for step in (add, edit, delete, undo, review, check, export, run)}


def replace(folder: Path, package: str) -> None:
    """Put the package's collection in the place of this one."""
    RustBackend(langs=["en"]).import_collection_package(
        col_path=str(folder / "collection.anki2"),
        backup_path=package,
        media_folder=str(folder / "collection.media"),
        media_db=str(folder / "collection.media.db"),
    )


def main(folder: Path, steps: list[list[str]]) -> None:
    if steps[0][0] == "replace":
        replace(folder, steps[0][1])
        return
    collection = Collection(str(folder / "collection.anki2"))
    for name, *words in steps:
        STEPS[name](collection, *words)
    collection.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
