"""A connection to a PostgreSQL server: what it must be able to do, and its errors in words."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from mnemic.store.contract import RaceError, StoreError
from mnemic.store.postgres.address import Address
from mnemic.store.postgres.migrations import migrate, version_of

PATIENCE = 10  # seconds to wait for a server that does not answer, unless the address says it
OLDEST = 140000  # PostgreSQL 14
VECTORS = (0, 7)  # pgvector's first version with vectors of halves
CONFLICTS = {"23505", "23503", "40P01", "40001"}  # equal keys, a lost parent, locks in a circle

# What the server says, by its code or its words, and what a person can do about it.
WORDS = {
    "lost": "the connection was lost; what was acknowledged is there, do the rest again",
    "password": "the password is wrong, or none was given; ~/.pgpass or $PGPASSWORD can hold it",
    "does not exist": "the server has no such database or user; `createdb NAME` makes a database",
    "slots": "the server has no connection left; close others, or raise max_connections",
    "too many": "the server has no connection left; close others, or raise max_connections",
    "FATAL": "the server answers, and lets nobody in",
    "connection": "no PostgreSQL server answers there; is it running, is the address right?",
    "resolve host": "there is no machine of that name; is the address right?",
    "42501": "this user may not do that there; the database's owner can: GRANT CREATE ON DATABASE",
    "25006": "the database is read-only, perhaps a replica; reading it still works",
    "53100": "the server's disk is full; make room and do it again",
    "55P03": "another process keeps the tables locked; wait for it to end",
    "22P05": "a text has characters that the database cannot hold",
    "57014": "the server ended it, because it took longer than its statement_timeout",
}
WRITABLE = """
    SELECT current_setting('transaction_read_only') = 'off',
        has_table_privilege('documents', 'INSERT')
"""
Values: TypeAlias = Sequence[Any] | Mapping[str, Any]


class Connection:
    """A connection whose errors are ``StoreError``; one that was lost is made again on next use."""

    def __init__(self, address: Address, *, create: bool) -> None:
        self.address = address
        self.raw: Any = None
        self.inside = False  # a change
        self.connect(create=create)

    def connect(self, *, create: bool) -> None:
        psycopg = driver()
        try:
            given = psycopg.conninfo.conninfo_to_dict(self.address.url)
        except psycopg.ProgrammingError:
            raise StoreError(  # without what the driver says, which may quote a password
                f"{self.address} cannot be understood; an address looks like postgresql://"
                "user@host:5432/database#name, with special characters as in %40 for @"
            ) from None
        usual = {"connect_timeout": PATIENCE, "fallback_application_name": "mnemic"}
        self.raw = None
        with self.worded():
            self.raw = psycopg.connect(**(usual | given), autocommit=True)
        try:
            self.prepare(create=create)
        except BaseException:
            self.raw.close()
            raise

    def prepare(self, *, create: bool) -> None:
        """Find the memory and bring it up to date; make it, if asked for."""
        version = self.raw.info.server_version
        encoding = self.value("SHOW server_encoding")
        if version < OLDEST or encoding != "UTF8":
            raise StoreError(
                f"{self.address}: PostgreSQL 14 or newer with a UTF8 database is needed, this is "
                f"{version // 10000} with {encoding}"
            )
        there = version_of(self)
        if there == 0 and not create:
            raise StoreError(
                f"there is no memory {self.address}; begin one: mnemic remember FILE_OR_FOLDER"
            )
        path = ", ".join(f'"{name}"' for name in (self.address.schema, vectors_in(self, create)))
        self.execute("SELECT set_config('search_path', %s, false)", (path,))
        self.execute("SET jit = off")  # compiling takes longer than reading
        migrate(self)

    def alive(self) -> Any:
        """The connection; a new one, if it was lost and nothing had begun."""
        if (self.raw is None or self.raw.closed) and not self.inside:
            self.connect(create=False)
        return self.raw

    def execute(self, sql: str, values: Values = ()) -> Any:
        raw = self.alive()
        with self.worded():
            return raw.execute(sql, values or None)

    def rows(self, sql: str, values: Values = ()) -> list[tuple[Any, ...]]:
        raw = self.alive()
        with self.worded():
            return list(raw.execute(sql, values or None))

    def value(self, sql: str, values: Values = ()) -> Any:
        """The first column of the first row; None if there is no row."""
        found = self.rows(sql, values)
        return found[0][0] if found else None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that happens in the block, for good, or nothing of it."""
        raw = self.alive()
        before = self.inside
        with self.worded(), raw.transaction():
            self.inside = True
            try:
                yield
            finally:
                self.inside = before

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See one state of the memory throughout the block, whatever others write meanwhile."""
        if self.alive().info.transaction_status:  # 0: none
            yield
            return
        with self.transaction():
            self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def expect_writable(self) -> None:
        """An error if this is a replica, or a user who may only read."""
        ((changing, allowed),) = self.rows(WRITABLE)
        if not changing:
            raise StoreError(f"{self.address}: {WORDS['25006']}")
        if not allowed:
            raise StoreError(
                f"{self.address}: this user may only read it; its owner may write into it"
            )

    @contextmanager
    def worded(self) -> Iterator[None]:
        """The driver's and the server's errors in words."""
        psycopg = driver()
        try:
            yield
        except psycopg.Error as error:
            code, said = error.sqlstate or "", str(error).strip()
            if code in CONFLICTS:
                raise RaceError(
                    f"{self.address}: another process changed the same at the same moment; do it "
                    f"again ({said.splitlines()[0]})"
                ) from error
            lost = self.raw is not None and self.raw.closed
            for sign, words in WORDS.items():
                if sign == code or (lost and sign == "lost") or (not code and sign in said):
                    raise StoreError(f"{self.address}: {words} ({said})") from error
            raise StoreError(f"{self.address}: {said}") from error

    def close(self) -> None:
        if self.raw is not None:
            self.raw.close()


def driver() -> Any:
    """psycopg, imported where a server is used."""
    try:
        import psycopg
    except ImportError:
        raise StoreError(
            "a memory on a PostgreSQL server needs psycopg: pip install 'mnemic[postgres]'"
        ) from None
    return psycopg


def vectors_in(connection: Connection, create: bool) -> str:
    """The schema that pgvector lies in; it is switched on, if it is there and we may."""
    asked = (
        "SELECT nspname, extversion FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace "
        "WHERE extname = 'vector'"
    )
    offered = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
    if create and not connection.rows(asked):
        if not connection.rows(offered):
            raise StoreError(
                f"{connection.address}: the server has no pgvector; install it there (in Debian "
                "postgresql-16-pgvector), see https://github.com/pgvector/pgvector"
            )
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(hashtext('mnemic pgvector'))")
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        except StoreError as error:
            raise StoreError(
                f"{connection.address}: pgvector is not switched on in this database, and this "
                "user may not do it; have a superuser run there, once: CREATE EXTENSION vector"
            ) from error
    found = connection.rows(asked)
    if not found:
        raise StoreError(
            f"{connection.address}: pgvector was removed; run: CREATE EXTENSION vector"
        )
    schema, version = found[0]
    if tuple(map(int, version.split(".")[:2])) < VECTORS:
        raise StoreError(
            f"{connection.address}: pgvector {version} is too old; update it to 0.7 or newer, then "
            "run: ALTER EXTENSION vector UPDATE"
        )
    return str(schema)
