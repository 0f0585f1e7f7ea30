"""``python -m mnemic`` is ``mnemic``."""

import sys


def main() -> int:
    """Run a command and return its exit code, even on an early Ctrl-C."""
    try:
        from mnemic.cli.main import main as run_main

        return run_main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
