"""The readers of files, one per kind; ``kinds`` maps suffixes to kinds.

Only the sandbox process imports them.
"""

from collections.abc import Mapping

from mnemic.text.documents.code.source import read_code
from mnemic.text.documents.data.archives import read_archive
from mnemic.text.documents.data.content_lines import read_content_lines
from mnemic.text.documents.data.json_file import read_json
from mnemic.text.documents.data.jsonl import read_records
from mnemic.text.documents.data.logs import read_log
from mnemic.text.documents.data.notebook import read_notebook
from mnemic.text.documents.data.settings import read_settings
from mnemic.text.documents.data.tables import read_table
from mnemic.text.documents.data.xml_file import read_xml
from mnemic.text.documents.data.yaml_file import read_yaml
from mnemic.text.documents.mail.eml import read_mail
from mnemic.text.documents.mail.mbox import read_mailbox
from mnemic.text.documents.markup.epub import read_epub
from mnemic.text.documents.markup.html import read_html
from mnemic.text.documents.markup.man import read_man
from mnemic.text.documents.markup.markdown import read_markdown
from mnemic.text.documents.markup.org import read_org
from mnemic.text.documents.markup.plain import read_plain
from mnemic.text.documents.markup.rst import read_rest
from mnemic.text.documents.markup.subtitles import read_subtitles
from mnemic.text.documents.markup.svg import read_svg
from mnemic.text.documents.markup.tex import read_tex
from mnemic.text.documents.office.docx import read_docx
from mnemic.text.documents.office.legacy import read_legacy
from mnemic.text.documents.office.odf import read_odf
from mnemic.text.documents.office.pdf import read_pdf
from mnemic.text.documents.office.pptx import read_pptx
from mnemic.text.documents.office.rtf import read_rtf
from mnemic.text.documents.office.sheets import read_sheets
from mnemic.text.documents.pictures.images import read_picture
from mnemic.text.documents.piece import FileReader

READERS: Mapping[str, FileReader] = {
    "archive": read_archive,
    "calendar": read_content_lines,
    "code": read_code,
    "docx": read_docx,
    "epub": read_epub,
    "html": read_html,
    "json": read_json,
    "legacy": read_legacy,
    "log": read_log,
    "mail": read_mail,
    "man": read_man,
    "markdown": read_markdown,
    "mbox": read_mailbox,
    "notebook": read_notebook,
    "odf": read_odf,
    "org": read_org,
    "pdf": read_pdf,
    "picture": read_picture,
    "pptx": read_pptx,
    "records": read_records,
    "rst": read_rest,
    "rtf": read_rtf,
    "settings": read_settings,
    "sheets": read_sheets,
    "subtitles": read_subtitles,
    "svg": read_svg,
    "table": read_table,
    "tex": read_tex,
    "text": read_plain,
    "xml": read_xml,
    "yaml": read_yaml,
}
