"""The readers of files, one per kind; ``kinds`` maps suffixes to kinds.

Only the sandbox process imports them.
"""

from collections.abc import Mapping

from mnemic.text.documents.data.jsonl import read_records
from mnemic.text.documents.data.tables import read_table
from mnemic.text.documents.mail.eml import read_mail
from mnemic.text.documents.markup.epub import read_epub
from mnemic.text.documents.markup.html import read_html
from mnemic.text.documents.markup.markdown import read_markdown
from mnemic.text.documents.markup.plain import read_plain
from mnemic.text.documents.office.docx import read_docx
from mnemic.text.documents.office.pdf import read_pdf
from mnemic.text.documents.piece import FileReader

READERS: Mapping[str, FileReader] = {
    "docx": read_docx,
    "epub": read_epub,
    "html": read_html,
    "mail": read_mail,
    "markdown": read_markdown,
    "pdf": read_pdf,
    "records": read_records,
    "table": read_table,
    "text": read_plain,
}
