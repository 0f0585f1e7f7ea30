"""The exception of a command that formats its own message after Ctrl-C."""


class CommandInterrupted(KeyboardInterrupt):
    """An interrupt whose message replaces the default one.

    The message reports the work that is done, and the command that resumes, if there is one.
    """
