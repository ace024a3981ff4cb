"""``python -m syncer``, and the console script."""

import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    from syncer.cli import main as run  # noqa: PLC0415 - nothing is imported for a mere import

    sys.exit(int(run()))


if __name__ == "__main__":
    main()
