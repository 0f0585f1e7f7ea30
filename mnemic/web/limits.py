"""The limits of what clients may send, and of the work that they may cause."""

import os
from typing import NamedTuple

MAX_NUMBER = (1 << 53) - 1  # the largest whole number that every JSON reader keeps exactly
MAX_QUESTION_CHARS = 2_000
MAX_TEXT_CHARS = 2_000_000  # of a note, or of a long text
MAX_TITLE_CHARS = 200
MAX_RESULTS = 50  # passages of a search, or to read per hop
MAX_PAGE_ROWS = 200  # documents, passages or events of one page of a list


class WebLimits(NamedTuple):
    """Limits of one server."""

    max_body_bytes: int = 10 << 20  # of a request that is no upload
    max_file_bytes: int = 200 << 20  # of one uploaded file
    max_upload_bytes: int = 1 << 30  # of one upload
    max_files: int = 2_000  # of one upload
    num_readers: int = max(2, min(8, os.cpu_count() or 2))  # questions that are answered at a time
    num_writers: int = 4  # requests that change memories at a time
    max_waiting: int = 256  # requests that wait for one of these
    num_renderers: int = 2  # processes that show pages
    render_timeout_s: float = 20.0  # of a page, with its time of waiting
    max_uploads: int = 8  # at a time
    num_jobs: int = 2  # jobs that run at a time
    max_waiting_jobs: int = 100
    answer_timeout_s: float = 60.0  # of a question, with its time of waiting
    write_timeout_s: float = 60.0  # that a note waits while others write
    silence_timeout_s: float = 30.0  # between two parts of a request's body
    min_bytes_per_s: int = 1_000  # of a request's body, after that time
    max_streams: int = 200  # of events of jobs, at a time
