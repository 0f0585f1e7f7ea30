"""Find what names the speaker of a passage from above it.

In a mail or a journal a passage says "I", and its sentences have no name: it is in the lines "From"
and "To", or in the first line.
"""

import re
from itertools import islice
from typing import NamedTuple

from mnemic.store.answer.anchor import iterate_slots_above
from mnemic.store.contract import MemorySlot
from mnemic.store.relational import Store
from mnemic.text.dates.stamps import find_stamps

MAIL_KINDS = frozenset(("mail", "mbox"))
MAX_LINE_LENGTH = 200  # characters of a first line that may be a title
MAX_PASSAGES = 32  # of a mail, from its head to the passage
MAX_DATED_PASSAGES = 8  # above a passage, in which the date of a session or of a journal's day is looked for
SPEAKER = re.compile(r"\W{0,3}[A-Z][\w .'’-]{0,30}: ")


class Surroundings(NamedTuple):
    """What is known of a passage from above it."""

    text: str
    is_dated: bool  # whether it belongs to a mail, or a date stands above as one of a message or a day


NO_SURROUNDINGS = Surroundings("", is_dated=False)


def read_surroundings(store: Store, slot: MemorySlot) -> Surroundings:
    """Read the head of a passage's mail, or its document's title and first line."""
    document = store.get_document(slot.document)
    if document is None:
        return NO_SURROUNDINGS
    if document.kind in MAIL_KINDS:
        above = list(islice(iterate_slots_above(store, document, slot), MAX_PASSAGES))
        return Surroundings(above[-1].passage.text if above else "", is_dated=True)
    first = next(store.list_slots(document.id)).passage.text if slot.number else slot.passage.text
    line = first[:MAX_LINE_LENGTH].split("\n")[0]
    if SPEAKER.match(line) or find_stamps(line):
        line = ""  # a message, which says nothing of others
    slots_above = islice(iterate_slots_above(store, document, slot), MAX_DATED_PASSAGES)
    is_dated = any(find_stamps(slot_above.passage.text) for slot_above in slots_above)
    return Surroundings(f"{document.title}\n{line}", is_dated)
