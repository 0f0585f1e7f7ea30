"""Refuse a schema on a PostgreSQL server in which a stranger could run code.

The owner of a schema, a table or a function decides what a statement there does: a trigger runs
with the rights of whoever writes. So everything in the schema of a memory must belong to the user
who is logged in, to a superuser, or to a role that the user trusts: with ``?trust=ROLE`` in the
address or in ``$MNEMIC_TRUSTED_ROLES``. Nobody else may have the right to add to it, because that
works while the memory is in use. mnemic itself makes no triggers and no rules; none is accepted,
whoever made it.
"""

import os
from collections.abc import Sequence

from mnemic.store.connection import Connection
from mnemic.store.contract import StoreError
from mnemic.store.postgres.address import Address

TRUSTED_ROLES_VARIABLE = "MNEMIC_TRUSTED_ROLES"
SAFE_PATH = "pg_catalog, pg_temp"  # nobody else can put a function there

# The session's user, not the current one: code can always RESET ROLE.
TRUSTED = """
    SELECT oid FROM pg_roles WHERE rolsuper OR rolname = session_user OR rolname = ANY (%(roles)s)
"""
# Whatever may contain or cause code, by its kind, with its owner.
STRANGERS = f"""
    SELECT kind || ' ' || name, pg_get_userbyid(owner) FROM (
        SELECT 'the schema' AS kind, nspname::text AS name, nspowner AS owner, oid AS schema FROM pg_namespace
        UNION ALL SELECT 'the table or index', relname, relowner, relnamespace FROM pg_class
        UNION ALL SELECT 'the function', proname, proowner, pronamespace FROM pg_proc
        UNION ALL SELECT 'the type', typname, typowner, typnamespace FROM pg_type
        UNION ALL SELECT 'the operator', oprname, oprowner, oprnamespace FROM pg_operator
        UNION ALL SELECT 'the dictionary', dictname, dictowner, dictnamespace FROM pg_ts_dict
        UNION ALL SELECT 'the text search configuration', cfgname, cfgowner, cfgnamespace FROM pg_ts_config
        UNION ALL SELECT 'the collation', collname, collowner, collnamespace FROM pg_collation
        UNION ALL SELECT 'the conversion', conname, conowner, connamespace FROM pg_conversion
    ) AS objects
    WHERE schema = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s) AND owner NOT IN ({TRUSTED})
    ORDER BY kind <> 'the schema', 1 LIMIT 1
"""
HOOKS = """
    SELECT 'the trigger ' || tgname || ' on ' || relname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
    WHERE NOT tgisinternal AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s)
    UNION ALL SELECT 'the rule ' || rulename || ' on ' || relname FROM pg_rewrite JOIN pg_class c ON c.oid = ev_class
    WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s)
    ORDER BY 1 LIMIT 1
"""
# Rights to put a function or a trigger there; 0 is everybody.
GRANTS = f"""
    SELECT right_name || ' ON ' || name, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END FROM (
        SELECT privilege_type AS right_name, 'SCHEMA ' || nspname AS name, grantee, oid AS schema
        FROM pg_namespace, aclexplode(nspacl) WHERE privilege_type = 'CREATE'
        UNION ALL SELECT privilege_type, relname::text, grantee, relnamespace
        FROM pg_class, aclexplode(relacl) WHERE privilege_type = 'TRIGGER' AND relkind = 'r'
    ) AS grants
    WHERE schema = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s) AND grantee NOT IN ({TRUSTED})
    ORDER BY 1, 2 LIMIT 1
"""
# A function that fits better than the server's own of the same name is called instead of it.
SHADOWS = f"""
    SELECT kind || ' ' || name, pg_get_userbyid(owner) FROM (
        SELECT 'the function' AS kind, proname::text AS name, proowner AS owner, oid, pronamespace AS schema,
            EXISTS (SELECT 1 FROM pg_proc AS o WHERE o.proname = p.proname AND o.oid <> p.oid) AS is_double
        FROM pg_proc AS p
        UNION ALL SELECT 'the operator', oprname, oprowner, oid, oprnamespace,
            EXISTS (SELECT 1 FROM pg_operator AS o WHERE o.oprname = p.oprname AND o.oid <> p.oid)
        FROM pg_operator AS p
    ) AS objects
    WHERE schema = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s) AND is_double
        AND owner NOT IN ({TRUSTED})
        AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = objects.oid AND deptype = 'e')
    ORDER BY 1 LIMIT 1
"""


def check_owners(connection: Connection, address: Address) -> None:
    """Raise ``StoreError`` if a stranger owns, or may add to, anything in a schema."""
    values = {"schema": address.schema, "roles": list_trusted_roles(address)}
    for item, owner in connection.fetch_all(STRANGERS, values):
        raise StoreError(
            f"{address}: {item} belongs to {owner}, who could run code with your rights; nothing "
            "was written. Give another name, as in postgresql://…#NAME, or, if you trust "
            f"{owner} with all that you may do on this server, add ?trust={owner} to the address "
            f"or set {TRUSTED_ROLES_VARIABLE}={owner}"
        )
    for (item,) in connection.fetch_all(HOOKS, values):
        raise StoreError(
            f"{address}: {item} runs code whenever something is written, and mnemic did not make "
            "it; nothing was written. Drop it, or give another name, as in postgresql://…#NAME"
        )

    for right, grantee in connection.fetch_all(GRANTS, values):
        trust = "" if grantee == "PUBLIC" else f", or, if you trust {grantee}, add ?trust={grantee} to the address"
        raise StoreError(
            f"{address}: {grantee} has the right {right} and could run code with yours; nothing was written. "
            f"Take it back: REVOKE {right} FROM {grantee}{trust}"
        )


def check_shadows(connection: Connection, address: Address, schema: str) -> None:
    """Raise ``StoreError`` if a stranger's function hides a common one in pgvector's schema."""
    values = {"schema": schema, "roles": list_trusted_roles(address)}
    for item, owner in connection.fetch_all(SHADOWS, values):
        raise StoreError(
            f"{address}: {item} in the schema {schema} belongs to {owner} and could be called "
            "instead of the server's own, with your rights; nothing was written. Have it dropped, "
            f"or move pgvector away from it: ALTER EXTENSION vector SET SCHEMA …, or trust {owner}: "
            f"?trust={owner} in the address, or {TRUSTED_ROLES_VARIABLE}={owner}"
        )


def list_trusted_roles(address: Address) -> Sequence[str]:
    """Return the roles that the address or the environment trusts."""
    configured = os.environ.get(TRUSTED_ROLES_VARIABLE, "").split(",")
    return [*address.trusted_roles, *(role.strip() for role in configured if role.strip())]
