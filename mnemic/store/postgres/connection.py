"""A connection to a PostgreSQL server: requirements, reconnecting and readable errors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import finalize

from mnemic.store.connection import Connection, Values
from mnemic.store.contract import BEGIN_ADVICE, MissingMemoryError, RaceError, StoreError
from mnemic.store.postgres.address import Address
from mnemic.store.postgres.locks import ROW_LOCK, lock_transaction
from mnemic.store.postgres.migrations import is_migrated, migrate, read_version
from mnemic.store.postgres.strangers import SAFE_PATH, check_owners, check_shadows

CONNECT_TIMEOUT_S = 10  # unless the address has its own
MIN_SERVER_VERSION = 140000  # PostgreSQL 14
MIN_PGVECTOR_VERSION = (0, 7)  # the first version with half-precision vectors
CONFLICT_CODES = {"23505", "23503", "40P01", "40001"}  # unique and foreign keys, deadlocks, serialization

# Error codes or words of the server, and what a user can do.
ERROR_HINTS = {
    "lost": "the connection was lost; what was acknowledged is stored, repeat the rest",
    "password": "the password is wrong, or none was given; ~/.pgpass or $PGPASSWORD can hold it",
    "does not exist": "the server has no such database or user; `createdb NAME` makes a database",
    "slots": "the server has no connection left; close others, or raise max_connections",
    "too many": "the server has no connection left; close others, or raise max_connections",
    "FATAL": "the server answers, but refuses the connection",
    "connection": "no PostgreSQL server answers there; is it running, is the address right?",
    "resolve host": "there is no machine of that name; is the address right?",
    "42501": "this user may not do that there; the database's owner can: GRANT CREATE ON DATABASE",
    "25006": "the database is read-only, perhaps a replica; reading it still works",
    "53100": "the server's disk is full; free some space and try again",
    "55P03": "another process has locked the tables; wait for it to end",
    "22P05": "a text has characters that the database cannot store",
    "57014": "the server ended it, because it took longer than its statement_timeout",
}
SELECT_WRITABLE = "SELECT current_setting('transaction_read_only') = 'off', has_table_privilege('documents', 'INSERT')"


class PostgresConnection(Connection):
    """A connection that raises ``StoreError`` with advice and reconnects on next use.

    In a statement, ``?`` stands for a value as in SQLite, besides the ``%s`` of the driver, and
    ``pgvector.`` for the schema of pgvector. That schema is not searched: others may put functions
    there, at any time.
    """

    in_ids = "= ANY (?)"
    find_function = "strpos"
    path_array = "coalesce(json_agg(path), '[]')::text"
    row_lock = ROW_LOCK

    def __init__(self, address: Address, *, create: bool) -> None:
        self.address, self.location = address, str(address)
        self.raw: Any = None
        self.vector_schema = "public"
        self.in_snapshot = False  # within ``snapshot``: all statements see the same state
        self.connect(create=create)

    def connect(self, *, create: bool) -> None:
        """Connect to the server and prepare the memory."""
        psycopg = import_psycopg()
        try:
            parameters = psycopg.conninfo.conninfo_to_dict(self.address.url)
        except psycopg.ProgrammingError:
            raise StoreError(  # without the driver's message, which may quote a password
                f"{self.address} cannot be understood; an address looks like postgresql://"
                "user@host:5432/database#name, with special characters as in %40 for @"
            ) from None
        defaults = {"connect_timeout": CONNECT_TIMEOUT_S, "fallback_application_name": "mnemic"}
        self.raw = None
        with self.translate_errors():
            self.raw = psycopg.connect(**(defaults | parameters), autocommit=True)
        finalize(self, self.raw.close)  # at the latest when its thread ends
        try:
            self.prepare(create=create)
        except BaseException:
            self.raw.close()
            raise

    def prepare(self, *, create: bool) -> None:
        """Check the server, then migrate the memory or, with ``create``, create it."""
        self.set_search_path(SAFE_PATH)
        version = self.raw.info.server_version
        encoding = self.fetch_value("SHOW server_encoding")
        if version < MIN_SERVER_VERSION or encoding != "UTF8":
            raise StoreError(
                f"{self.address}: PostgreSQL 14 or newer with a UTF8 database is needed, this is "
                f"{version // 10000} with {encoding}"
            )
        check_owners(self, self.address)
        schema_version = read_version(self, self.address.schema)
        if schema_version == 0 and not create:
            raise MissingMemoryError(f"there is no memory {self.address}; {BEGIN_ADVICE}")
        self.vector_schema = find_pgvector_schema(self, create)
        if not is_migrated(schema_version):  # scripts name the types of pgvector without their schema
            check_shadows(self, self.address, self.vector_schema)
            self.set_search_path(f'"{self.address.schema}", "{self.vector_schema}", pg_temp')
            migrate(self, self.address)
        self.set_search_path(f'"{self.address.schema}", pg_temp')
        self.execute("SET jit = off")  # compiling takes longer than the queries

    def set_search_path(self, search_path: str) -> None:
        """Set the schemas in which names are looked up, after that of the server itself."""
        self.execute("SELECT pg_catalog.set_config('search_path', %s, false)", (search_path,))

    def ensure_connected(self) -> Any:
        """Return the raw connection; reconnect if it was lost outside a transaction."""
        if (self.raw is None or self.raw.closed) and not (self.in_transaction or self.in_snapshot):
            self.connect(create=False)
        return self.raw

    def execute(self, sql: str, values: Values = ()) -> Any:
        """Execute a statement."""
        raw = self.ensure_connected()
        with self.translate_errors():
            return raw.execute(sql.replace("?", "%s").replace("pgvector.", f'"{self.vector_schema}".'), values or None)

    def insert_row(self, sql: str, values: Sequence[Any]) -> int:
        """Execute an INSERT of one row and return the row's id."""
        return int(self.fetch_value(f"{sql} RETURNING id", values))

    def pack_ids(self, ids: Sequence[int]) -> list[int]:
        """Convert ids to the value that ``in_ids`` takes."""
        return list(ids)

    def read_state(self) -> object:
        """Return the snapshot of the database."""
        return self.fetch_value("SELECT pg_current_snapshot()::text")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction; roll it back on any exception."""
        raw = self.ensure_connected()
        was_inside = self.in_transaction
        with self.translate_errors(), raw.transaction():
            self.in_transaction = True
            try:
                yield
            finally:
                self.in_transaction = was_inside

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one consistent state throughout the block, whatever others write."""
        raw = self.ensure_connected()
        if raw.info.transaction_status:  # 0: none
            yield
            return
        with self.translate_errors(), raw.transaction():
            self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            self.in_snapshot = True
            try:
                yield
            finally:
                self.in_snapshot = False

    def check_writable(self) -> None:
        """Raise ``StoreError`` on a replica, or for a user who may only read."""
        ((is_primary, may_insert),) = self.fetch_all(SELECT_WRITABLE)
        if not is_primary:
            raise StoreError(f"{self.address}: {ERROR_HINTS['25006']}")
        if not may_insert:
            raise StoreError(f"{self.address}: this user may only read it; its owner may write into it")

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise errors of driver and server as ``StoreError`` with advice, or ``RaceError``."""
        psycopg = import_psycopg()
        try:
            yield
        except psycopg.Error as error:
            code, message = error.sqlstate or "", str(error).strip()
            if code in CONFLICT_CODES:
                raise RaceError(
                    f"{self.address}: another process changed the same rows at the same time; try "
                    f"again ({message.splitlines()[0]})"
                ) from error
            is_lost = self.raw is not None and self.raw.closed
            for sign, hint in ERROR_HINTS.items():
                if sign == code or (is_lost and sign == "lost") or (not code and sign in message):
                    raise StoreError(f"{self.address}: {hint} ({message})") from error
            raise StoreError(f"{self.address}: {message}") from error

    def close(self) -> None:
        if self.raw is not None:
            self.raw.close()


def import_psycopg() -> Any:
    """Import psycopg, which only a memory on a server needs."""
    try:
        import psycopg
    except ImportError:
        raise StoreError("a memory on a PostgreSQL server needs psycopg: pip install 'mnemic[postgres]'") from None
    return psycopg


def find_pgvector_schema(connection: PostgresConnection, create: bool) -> str:
    """Return the schema of pgvector; with ``create``, enable the extension."""
    select_extension = (
        "SELECT nspname, extversion FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace "
        "WHERE extname = 'vector'"
    )
    select_available = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
    if create and not connection.fetch_all(select_extension):
        if not connection.fetch_all(select_available):
            raise StoreError(
                f"{connection.address}: the server has no pgvector; install it there (in Debian "
                "postgresql-16-pgvector), see https://github.com/pgvector/pgvector"
            )
        try:
            with connection.transaction():
                lock_transaction(connection, "mnemic pgvector")
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        except StoreError as error:
            raise StoreError(
                f"{connection.address}: pgvector is not enabled in this database, and this "
                "user may not do it; have a superuser run there, once: CREATE EXTENSION vector"
            ) from error
    extensions = connection.fetch_all(select_extension)
    if not extensions:
        raise StoreError(f"{connection.address}: pgvector was removed; run: CREATE EXTENSION vector")
    schema, version = extensions[0]
    if tuple(map(int, version.split(".")[:2])) < MIN_PGVECTOR_VERSION:
        raise StoreError(
            f"{connection.address}: pgvector {version} is too old; update it to 0.7 or newer, then "
            "run: ALTER EXTENSION vector UPDATE"
        )
    return str(schema)
