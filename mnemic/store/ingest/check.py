"""Check a memory as one who writes; where nobody can, as a reader, and say what that leaves out."""

from contextlib import ExitStack

from mnemic.store.contract import Checked, Store, StoreError
from mnemic.store.ingest.forget import finish

CLEARING = "clearing the files of what was forgotten"


def check(store: Store) -> Checked:
    """What is wrong with a memory; a forgetting that a kill stopped is finished before."""
    with ExitStack() as writer:
        try:
            writer.enter_context(store.writing())
        except StoreError as error:
            why = str(error)
        else:
            finish(store)
            return store.check()
    found = store.check()
    left = (*found.left_out, CLEARING) if store.unscrubbed() else found.left_out
    return Checked(found.faults, left, why if left else "")
