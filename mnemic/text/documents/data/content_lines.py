"""Read calendars (.ics) and contacts (.vcf): one row per event, task or person."""

import re
from collections.abc import Iterator
from datetime import datetime
from quopri import decodestring
from typing import NamedTuple

from mnemic.text.documents.data.rows import RowBuilder, RowField
from mnemic.text.documents.encoding import find_encoding, open_text, read_line
from mnemic.text.documents.piece import DocumentError, DocumentPart, Source

ROWS = frozenset({"VEVENT", "VTODO", "VJOURNAL", "VCARD"})  # components that are rows
NAMES = {
    "ADR": "Address",
    "ATTENDEE": "Attendee",
    "BDAY": "Birthday",
    "CATEGORIES": "Categories",
    "COMMENT": "Comment",
    "COMPLETED": "Completed",
    "CONTACT": "Contact",
    "DESCRIPTION": "Description",
    "DTEND": "End",
    "DTSTART": "Start",
    "DUE": "Due",
    "DURATION": "Duration",
    "EMAIL": "E-mail",
    "FN": "Name",
    "LOCATION": "Location",
    "NICKNAME": "Nickname",
    "NOTE": "Note",
    "ORG": "Organization",
    "ORGANIZER": "Organizer",
    "RELATED": "Related",
    "RESOURCES": "Resources",
    "ROLE": "Role",
    "RRULE": "Repeats",
    "STATUS": "Status",
    "SUMMARY": "Summary",
    "TEL": "Phone",
    "TITLE": "Job",
    "URL": "Website",
}
_LINE = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;[^:;\"]*(?:\"[^\"]*\"[^:;\"]*)*)*):(.*)", re.DOTALL)
_PARAMETER = re.compile(r";([\w-]+)(?:=(\"[^\"]*\"|[^;\"]*))?")
_ESCAPE = re.compile(r"\\([nN,;\\])")
_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d):?(?:\d\d)?(Z?))?")
_FOLD = re.compile(r"\r?\n[ \t]")


class ContentLine(NamedTuple):
    """A line ``NAME;PARAMETER=…:VALUE``, unfolded, with the position of its value."""

    name: str
    parameters: dict[str, str]
    value: str
    origin: int
    line: int
    source_length: int  # of the value as written


def read_content_lines(source: Source) -> Iterator[DocumentPart]:
    """Read a calendar or contacts in pieces of whole rows."""
    builder = RowBuilder()
    open_components: list[str] = []
    fields: list[RowField] = []
    num_components = 0
    for item in scan_lines(source):
        if item.name == "BEGIN":
            num_components += 1
            open_components.append(item.value.strip().upper())
        elif item.name == "END":
            if open_components and open_components.pop() in ROWS and fields:
                builder.add_row(fields, fields[0].origin)
                fields = []
                if builder.is_full:
                    yield from builder.take_piece()
        elif open_components and open_components[-1] in ROWS and item.name in NAMES and item.value.strip():
            fields.append(make_field(item))
    if not num_components:
        raise DocumentError("this is no calendar and no contact: no component begins in it")
    yield from builder.take_piece()


def scan_lines(source: Source) -> Iterator[ContentLine]:
    """Yield the content lines; a line that begins with a blank continues the one before."""
    with open_text(source.path) as file:
        origin, number, lines, start, first = 0, 1, list[str](), 0, 1
        while True:
            line = read_line(file, number)
            is_soft = bool(lines) and lines[-1].rstrip("\r\n").endswith("=") and is_quoted_printable(lines[0])
            if not line or not (line[0] in " \t" or is_soft):
                if match := _LINE.fullmatch("".join(lines).rstrip("\r\n")):
                    parameters = {name.upper(): value.strip('"') for name, value in _PARAMETER.findall(match[2])}
                    value = _FOLD.sub("", match[3])
                    yield ContentLine(match[1].upper(), parameters, value, start + match.start(3), first, len(match[3]))
                lines, start, first = [], origin, number
            if not line:
                return
            lines.append(line)
            origin, number = origin + len(line), number + 1


def is_quoted_printable(line: str) -> bool:
    """Return whether the parameters of a content line say that its value is encoded."""
    return "QUOTED-PRINTABLE" in line.partition(":")[0].upper()


def make_field(item: ContentLine) -> RowField:
    """Make the field of a row from a content line, with its exact end."""
    name, kinds = NAMES[item.name], item.parameters.get("TYPE", "").lower()
    if item.name in ("TEL", "EMAIL", "ADR") and kinds:
        name += f" ({kinds.replace(',', ', ')})"
    value = format_value(item)
    shifts = ((len(value) - 1, item.origin + item.source_length - 1),) if len(value) > 1 else ()
    return RowField(name, value, item.origin, item.line, shifts)


def format_value(item: ContentLine) -> str:
    """Return the value as a person would write it, on one line."""
    value = item.value
    if "QUOTED-PRINTABLE" in (item.parameters.get("ENCODING", "").upper(), *item.parameters):
        charset = find_encoding(item.parameters.get("CHARSET", "utf-8"))
        value = decodestring(value.encode("utf-8", "replace")).decode(charset, "replace")
    if date := _DATE.fullmatch(value.strip()):
        return format_date(date, item.parameters.get("TZID", ""))
    if item.name in ("ADR", "ORG"):
        value = ", ".join(line.strip() for line in re.split(r"(?<!\\);", value) if line.strip())
    elif item.name == "RRULE":
        value = value.lower().removeprefix("freq=").replace(";", ", ").replace("=", " ")
    elif item.name in ("ATTENDEE", "ORGANIZER"):
        address = re.sub(r"^mailto:", "", value, flags=re.IGNORECASE)
        value = f"{item.parameters['CN']} <{address}>" if "CN" in item.parameters else address
    value = _ESCAPE.sub(lambda match: " " if match[1] in "nN" else match[1], value)
    return " ".join(value.removeprefix("tel:").split())


def format_date(date: re.Match[str], zone: str) -> str:
    """Write a date out: "Thursday, 5 March 2026, 14:00 (Europe/Berlin)"."""
    year, month, day, hour, minute, utc = date.groups()
    try:
        moment = datetime(int(year), int(month), int(day))
    except ValueError:
        return date.group()
    text = f"{moment:%A}, {moment.day} {moment:%B} {moment.year}"
    if hour is not None:
        text += f", {hour}:{minute}" + (" UTC" if utc else f" ({zone})" if zone else "")
    return text
