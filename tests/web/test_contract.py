"""The schema: every route documents its problems, and the documentation needs no other machine."""

import re
from pathlib import Path

from web_service import Api

from mnemic.web.app import list_methods
from mnemic.web.routes.site import API_DOCS

OPEN = {"/v1/health", "/v1/session"}
DOCS = Path(__file__).parents[2] / "docs"


def test_every_operation_documents_its_answers(api: Api) -> None:
    schema = api.call("GET", "/v1/openapi.json")
    count = 0
    for path, operations in schema["paths"].items():
        assert path.startswith("/v1/")
        for method, operation in operations.items():
            count += 1
            assert operation["summary"], (path, method)
            responses = operation["responses"]
            wanted_statuses = {"421"} if path in OPEN else {"401", "403", "421"}
            wanted_statuses |= {"400", "408", "413"} if "requestBody" in operation else set()
            wanted_statuses |= {"404"} if "{" in path else set()
            wanted_statuses |= {"422"} if "requestBody" in operation or operation.get("parameters") else set()
            assert wanted_statuses <= responses.keys(), (path, method, wanted_statuses - responses.keys())
            for status, response in responses.items():
                if int(status) >= 400:
                    problem = response["content"]["application/problem+json"]["schema"]
                    assert problem == {"$ref": "#/components/schemas/ProblemDetails"}, (path, method, status)
                    assert response["content"].keys() == {"application/problem+json"}
    assert count > 40
    assert "HTTPValidationError" not in str(schema["paths"])


def test_the_reference_page_names_every_operation(api: Api) -> None:
    page = (DOCS / "reference" / "http-api.md").read_text(encoding="utf-8")
    schema = api.call("GET", "/v1/openapi.json")
    operations = {f"`{method.upper()} {path}`" for path, methods in schema["paths"].items() for method in methods}
    named = set(re.findall(r"`(?:GET|POST|PUT|DELETE) /v1/[^`]*`", page))
    assert named == operations


def test_a_path_knows_its_methods() -> None:
    assert list_methods("/v1/memories/x/documents") == ["GET", "POST"]
    assert list_methods("/v1/jobs/x") == ["DELETE", "GET"]
    assert list_methods("/v1/nothing") == []


def test_the_documentation_loads_nothing_from_elsewhere(api: Api) -> None:
    for path in API_DOCS.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "http:" not in text
        assert "https:" not in text
        assert " style=" not in text
        assert api.call("GET", f"/docs/{path.name}").text == text
