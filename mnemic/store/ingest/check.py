"""Check a memory as a writer if possible, else as a reader with fewer checks."""

from contextlib import ExitStack

from mnemic.store.contract import CheckReport, StoreError
from mnemic.store.ingest.forget import finish_scrub
from mnemic.store.relational import Store

SCRUB_CHECK = "clearing the files of what was forgotten"


def check_store(store: Store) -> CheckReport:
    """Check a memory, after finishing a scrub that a killed process left undone."""
    with ExitStack() as write_stack:
        try:
            write_stack.enter_context(store.write_session())
        except StoreError as error:
            reason = str(error)
        else:
            finish_scrub(store, wait=True)
            return store.check()
    report = store.check()
    skipped_checks = (*report.left_out, SCRUB_CHECK) if store.has_pending_scrub() else report.left_out
    return CheckReport(report.faults, skipped_checks, reason if skipped_checks else "")
