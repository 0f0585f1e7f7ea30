"""``python -m mnemic`` is ``mnemic``."""

import sys


def main() -> int:
    """Run a command and return its exit code, even on an early Ctrl-C."""
    try:
        from mnemic.cli.main import main as run_main

        return run_main()
    except KeyboardInterrupt:
        return 130
    finally:
        ignore_interrupts()


def ignore_interrupts() -> None:
    """Ignore further Ctrl-C: the interpreter ends, and has nothing to say about it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
