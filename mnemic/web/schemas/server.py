"""The server itself: health, sessions, folders."""

from typing import Literal

from pydantic import BaseModel, Field

from mnemic.web.schemas.documents import Body


class Health(BaseModel):
    """Whether the server answers."""

    status: Literal["ok"] = "ok"


class SessionInfo(BaseModel):
    """Whether this client may use the server."""

    authenticated: bool
    version: str


class Login(Body):
    """The token of the server, or the code of a one-time link."""

    token: str | None = Field(default=None, max_length=1000)
    code: str | None = Field(default=None, max_length=1000)


class FolderInfo(BaseModel):
    """A folder that the server was started with."""

    id: str
    name: str


class WatchedFolder(FolderInfo):
    """A folder, and whether its changes are remembered."""

    watching: bool = Field(description="By the memory of the request.")


class FolderList(BaseModel):
    """The folders that may be remembered."""

    folders: list[FolderInfo]


class Watch(Body):
    """Whether to watch a folder."""

    on: bool
