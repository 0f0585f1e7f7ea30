"""Confine the sandbox process: limits of the system, and a filter of system calls.

What a system does not offer is left out; ``SECURITY.md`` says what holds where.
"""

import ctypes
import os
import signal
import sys
from typing import Any

from mnemic.text.documents.seccomp import install_filter

MAX_OPEN_FILES = 256  # a reader opens one; its libraries open their own
MAX_MEMBER_BYTES = 200_000_000  # of a file in memory, which holds an attachment
MAX_CPU_S = 6 * 3600  # of a process that reads many files
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000


def confine_process(max_memory_bytes: int, parent_pid: int, *, may_start_programs: bool) -> None:
    """Give up, for good, what reading a file does not need."""
    if sys.platform == "linux":
        die_with_parent(parent_pid)
    is_filtered = sys.platform == "linux" and install_filter(may_start_programs=may_start_programs)
    if sys.platform == "linux" and not is_filtered:
        leave_network()
    # A file in memory counts as written; only the filter can tell it from a file on disk.
    limit_resources(max_memory_bytes, MAX_MEMBER_BYTES if is_filtered else 0)


def die_with_parent(parent_pid: int) -> None:
    """Let the system kill this process when its parent ends, and never raise its rights."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent_pid:  # it ended before
        os._exit(1)


def leave_network() -> bool:
    """Move to a network of its own, without any interface; return whether that worked."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWUSER | CLONE_NEWNET
    return libc.unshare(flags) == 0


def limit_resources(max_memory_bytes: int, max_file_bytes: int) -> None:
    """Limit memory, files and processor time of this process."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    limits: dict[str, int] = {
        "RLIMIT_AS": max_memory_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": MAX_CPU_S,
        "RLIMIT_FSIZE": max_file_bytes,
        "RLIMIT_NOFILE": MAX_OPEN_FILES,
    }
    for name, limit in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]  # that of the user may be lower
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))


def limit_processor_time(seconds: float) -> None:
    """Let the system end this process after ``seconds`` more of processor time."""
    try:
        import resource
    except ImportError:
        return
    usage: Any = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(usage.ru_utime + usage.ru_stime + seconds) + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard < 0 else min(soft, hard), hard))
