"""The readers of files, one a kind. Only the process that reads strangers' files needs them."""

from collections.abc import Mapping

from mnemic.text.documents.docx import read_docx
from mnemic.text.documents.epub import read_epub
from mnemic.text.documents.html import read_html
from mnemic.text.documents.mail import read_mail
from mnemic.text.documents.markdown import read_markdown
from mnemic.text.documents.pdf import read_pdf
from mnemic.text.documents.piece import Reader
from mnemic.text.documents.plain import read_plain
from mnemic.text.documents.records import read_records
from mnemic.text.documents.table import read_table

READERS: Mapping[str, Reader] = {
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
