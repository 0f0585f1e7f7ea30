"""Ctrl-C in a command that knows better than its own words how to go on."""


class Stopped(KeyboardInterrupt):
    """Its message is all that is said: what was done, and the command that goes on, if any."""
