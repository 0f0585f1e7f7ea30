"""Server-sent events."""

import json
from typing import Any

from pydantic import BaseModel

EVENT_STREAM = "text/event-stream"
STREAM_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events.", "content": {EVENT_STREAM: {}}}
}
KEEP_ALIVE = b": still there\n\n"


def format_event(name: str, value: BaseModel | dict[str, Any], number: int | None = None) -> bytes:
    """Format a server-sent event."""
    text = value.model_dump_json() if isinstance(value, BaseModel) else json.dumps(value, ensure_ascii=False)
    identity = "" if number is None else f"id: {number}\n"
    return f"{identity}event: {name}\ndata: {text}\n\n".encode()
