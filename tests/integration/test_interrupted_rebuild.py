"""Whether a daemon should go on with a rebuild that somebody has left."""

from __future__ import annotations

from pathlib import Path

import memory

from syncer import lock
from syncer.cli import opening
from syncer.cli.rebuild import alone, is_interrupted


def test_a_rebuild_is_left_while_what_serves_is_another_recipes_and_nobody_builds(
    tmp_path: Path,
) -> None:
    memory.make_memory(tmp_path, ["one"])
    settings = memory.settings_for(tmp_path)
    memory.sync_memory(settings)
    with opening.opened(settings) as sides:
        assert not is_interrupted(sides), "what serves is what the settings ask for"
    with opening.opened(memory.settings_for(tmp_path, **{"embed.dimension": 16})) as sides:
        with alone(sides):
            assert not is_interrupted(sides), "somebody is at work on it"
        assert is_interrupted(sides)
        for path, _ in opening.lock_files(sides):
            assert lock.deaths(path) == 0
