"""Format the commands that rebuild tables, from their results."""

import shlex
from typing import Any

NUM_TASKS = 20  # of bAbI


def format_babi_command(table: dict[str, Any]) -> str:
    """Format the command that measured a bAbI table."""
    command = ["mnemic", "table", "babi", "--recipe", table["recipe"], "--size", table["size"]]
    command += ["--joint"] if table["setting"] == "joint" else []
    command += ["--seeds", str(len(table["seeds"])), "--data", "DIR"]
    if len(tasks := table["ours"]["per_task"]) < NUM_TASKS:
        command += ["--tasks", ",".join(tasks)]
    for text in table["overrides"]:
        command += ["--set", text]
    return shlex.join(command)
