"""Documents as resources: listed in pages, read in parts."""

from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from mcp_service import serve

from mnemic.mcp import resources

pytestmark = pytest.mark.anyio


async def test_documents_are_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "PAGE_SIZE", 2)
    monkeypatch.setattr(resources, "PART_CHARS", 12)
    async with serve(tmp_path) as assistant:
        client = assistant.client
        for text in ("First note.", "Second note.", "The third note is longer."):
            await assistant.use("remember", text=text)
        page = await client.list_resources()
        assert [resource.uri for resource in page.resources] == ["mnemic://document/1", "mnemic://document/2"]
        page = await client.list_resources(cursor=page.next_cursor)
        assert [resource.name for resource in page.resources] == ["The third note is longer."]
        assert page.next_cursor is None
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "mnemic://document/{document}/{part}"
        parts = [(await client.read_resource(f"mnemic://document/3/{part}")).contents[0].text for part in (1, 2, 3)]
        assert "".join(part.splitlines()[2] for part in parts) == "The third note is longer."
        assert parts[0].endswith("Part 1 of 3; the next is mnemic://document/3/2")
        for uri in ("4", "3/4", "3/0", "x", str(2**63), str(2**70), "1/" + "9" * 19, "1?x", "٣"):
            with pytest.raises(MCPError, match="document"):
                await client.read_resource(f"mnemic://document/{uri}")
        with pytest.raises(MCPError, match="no number"):
            await client.list_resources(cursor="x")
