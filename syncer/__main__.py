"""``python -m syncer``, and the console script."""

import os
import signal
import sys
import threading


def main() -> None:
    """Run the command line and leave with its exit code.

    A thread that is left over is stuck inside a library: Python would wait for it for ever.
    """
    # gRPC writes failed handshakes to stderr, in the midst of the log; they are told as errors
    # anyway. Read when it is imported; what the operator has set is kept.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        from syncer.cli import main as run  # noqa: PLC0415 - nothing is imported for a mere import

        code = int(run())
    except KeyboardInterrupt:  # before there was anybody to hear of it
        code = 128 + signal.SIGINT
    left = [each for each in threading.enumerate() if not each.daemon]
    if left != [threading.main_thread()]:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
