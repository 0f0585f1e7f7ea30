"""Filter the system calls of the sandbox process (Linux; x86_64 and aarch64).

Refused are sockets, new processes and programs, files that are opened for writing, changes of
folders, and calls that reach other processes or the kernel's settings. Threads, reading and memory
stay as they are.
"""

import ctypes
import errno
import os
import platform
from collections.abc import Iterable

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
ALLOW, KILL_PROCESS = 0x7FFF0000, 0x80000000
REFUSE, PRETEND_MISSING = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_IF_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
CLONE_THREAD = 0x00010000
WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
NUMBER_OFFSET, ARCHITECTURE_OFFSET, FIRST_ARGUMENT_OFFSET = 0, 4, 16  # in the kernel's record of a call
X32_CALLS = 0x40000000  # numbers from here on are another interface of x86_64


NETWORK_CALLS = {
    "x86_64": "socket 41 connect 42 accept 43 sendto 44 sendmsg 46 bind 49 listen 50 socketpair 53 accept4 288 "
    "sendmmsg 307",
    "aarch64": "socket 198 socketpair 199 bind 200 listen 201 accept 202 connect 203 sendto 206 sendmsg 211 "
    "accept4 242 sendmmsg 269",
}
LISTEN_CALLS = frozenset({"socket", "bind", "listen", "accept", "accept4"})
AF_UNIX = 1
PROGRAM_CALLS = {"x86_64": "fork 57 vfork 58 execve 59 execveat 322", "aarch64": "execve 221 execveat 281"}
WRITE_CALLS = {
    "x86_64": "truncate 76 rename 82 mkdir 83 rmdir 84 creat 85 link 86 unlink 87 symlink 88 chmod 90 fchmod 91 "
    "chown 92 fchown 93 lchown 94 utime 132 mknod 133 setxattr 188 lsetxattr 189 fsetxattr 190 removexattr 197 "
    "lremovexattr 198 fremovexattr 199 utimes 235 mkdirat 258 mknodat 259 fchownat 260 futimesat 261 unlinkat 263 "
    "renameat 264 linkat 265 symlinkat 266 fchmodat 268 utimensat 280 renameat2 316 fchmodat2 452",
    "aarch64": "setxattr 5 lsetxattr 6 fsetxattr 7 removexattr 14 lremovexattr 15 fremovexattr 16 mknodat 33 "
    "mkdirat 34 unlinkat 35 symlinkat 36 linkat 37 renameat 38 truncate 45 fchmod 52 fchmodat 53 fchownat 54 "
    "fchown 55 utimensat 88 renameat2 276 fchmodat2 452",
}
SYSTEM_CALLS = {  # other processes, the kernel, and ways around this filter
    "x86_64": "shmget 29 kill 62 msgget 68 ptrace 101 pivot_root 155 chroot 161 mount 165 umount2 166 reboot 169 "
    "init_module 175 delete_module 176 tkill 200 mq_open 240 kexec_load 246 add_key 248 request_key 249 keyctl 250 "
    "unshare 272 perf_event_open 298 setns 308 process_vm_readv 310 process_vm_writev 311 finit_module 313 bpf 321 "
    "userfaultfd 323 pidfd_send_signal 424 io_uring_setup 425 io_uring_enter 426 io_uring_register 427 "
    "open_tree 428 move_mount 429 fsopen 430 pidfd_open 434 pidfd_getfd 438",
    "aarch64": "umount2 39 mount 40 pivot_root 41 chroot 51 unshare 97 kexec_load 104 init_module 105 "
    "delete_module 106 ptrace 117 kill 129 tkill 130 reboot 142 mq_open 180 msgget 186 shmget 194 add_key 217 "
    "request_key 218 keyctl 219 perf_event_open 241 setns 268 process_vm_readv 270 process_vm_writev 271 "
    "finit_module 273 bpf 280 userfaultfd 282 pidfd_send_signal 424 io_uring_setup 425 io_uring_enter 426 "
    "io_uring_register 427 open_tree 428 move_mount 429 fsopen 430 pidfd_open 434 pidfd_getfd 438",
}
CHECKED_CALLS = {  # decided by an argument, or said to be missing
    "x86_64": "open 2 clone 56 openat 257 prlimit64 302 clone3 435 openat2 437",
    "aarch64": "openat 56 clone 220 prlimit64 261 clone3 435 openat2 437",
}
AUDIT_NAMES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
Instruction = tuple[int, int, int, int]  # code, jumps if true, jumps if false, value


class FilterProgram(ctypes.Structure):
    """The kernel's ``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install_filter(*, may_start_programs: bool = False) -> bool:
    """Filter the calls of this process from now on; return False where that is impossible."""
    machine = platform.machine()
    if machine not in AUDIT_NAMES:
        return False
    program = build_filter(machine, may_start_programs=may_start_programs)
    code = b"".join(
        value.to_bytes(size, "little") for row in program for value, size in zip(row, (2, 1, 1, 4), strict=True)
    )
    libc = ctypes.CDLL(None, use_errno=True)
    address = ctypes.byref(FilterProgram(len(program), code))
    return libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, address, 0, 0) == 0


def build_filter(machine: str, *, may_start_programs: bool) -> list[Instruction]:
    """Build the filter's program; readers that start programs may also write files."""
    program: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE_OFFSET),
        (JUMP_EQUAL, 1, 0, AUDIT_NAMES[machine]),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, NUMBER_OFFSET),
        (JUMP_AT_LEAST, 0, 1, X32_CALLS),
        (RETURN, 0, 0, REFUSE),
    ]
    network = parse_numbers(NETWORK_CALLS[machine])
    if may_start_programs:  # LibreOffice listens at a local socket of its own; nothing connects
        program += check_argument(network["socket"], 0, (JUMP_EQUAL, AF_UNIX), (ALLOW, REFUSE))
        network = {name: number for name, number in network.items() if name not in LISTEN_CALLS}
    program += refuse_calls(network.values())
    for calls in [SYSTEM_CALLS] + ([] if may_start_programs else [PROGRAM_CALLS, WRITE_CALLS]):
        program += refuse_calls(parse_numbers(calls[machine]).values())
    numbers = parse_numbers(CHECKED_CALLS[machine])
    program += check_argument(numbers["prlimit64"], 0, (JUMP_EQUAL, 0), (ALLOW, REFUSE))  # of this process only
    if not may_start_programs:
        for name in ("clone3", "openat2"):  # their arguments cannot be seen; programs then use the older calls
            program += [(JUMP_EQUAL, 0, 1, numbers[name]), (RETURN, 0, 0, PRETEND_MISSING)]
        program += check_argument(numbers["clone"], 0, (JUMP_IF_BITS, CLONE_THREAD), (ALLOW, REFUSE))
        for name, argument in (("open", 1), ("openat", 2)):
            if name in numbers:
                program += check_argument(numbers[name], argument, (JUMP_IF_BITS, WRITE_FLAGS), (REFUSE, ALLOW))
    return [*program, (RETURN, 0, 0, ALLOW)]


def parse_numbers(calls: str) -> dict[str, int]:
    """Parse pairs of a call's name and its number."""
    words = calls.split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


def refuse_calls(numbers: Iterable[int]) -> list[Instruction]:
    """Refuse calls whatever their arguments are."""
    return [row for number in numbers for row in ((JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE))]


def check_argument(number: int, argument: int, test: tuple[int, int], verdicts: tuple[int, int]) -> list[Instruction]:
    """Decide a call by a test of the lower half of one argument."""
    return [
        (JUMP_EQUAL, 0, 4, number),
        (LOAD, 0, 0, FIRST_ARGUMENT_OFFSET + 8 * argument),
        (test[0], 0, 1, test[1]),
        (RETURN, 0, 0, verdicts[0]),
        (RETURN, 0, 0, verdicts[1]),
    ]
