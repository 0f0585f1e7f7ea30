"""Check the arguments of a tool call against the tool's JSON schema."""

import json
from collections.abc import Mapping
from typing import Any

JSON_TYPES: Mapping[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
}


def check_arguments(schema: Mapping[str, Any], arguments: Any) -> None:
    """Raise if the arguments do not match the schema, with what was expected."""
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments are an object with {', '.join(schema['properties'])}")
    for name in schema.get("required", ()):
        if name not in arguments:
            raise ValueError(f"{name!r} is missing: {schema['properties'][name]['description']}")
    for name, value in arguments.items():
        if name not in schema["properties"]:
            expected = ", ".join(schema["properties"]) or "none"
            raise ValueError(f"there is no argument {name!r}; there are: {expected}")
        check_value(name, schema["properties"][name], value)


def check_value(name: str, schema: Mapping[str, Any], value: Any) -> None:
    """Raise if a value has the wrong type or size."""
    expected_type, type_name = JSON_TYPES[schema["type"]]
    if not isinstance(value, expected_type) or (expected_type is int and isinstance(value, bool)):
        raise ValueError(f"{name!r} is {type_name}, not {json.dumps(value)[:80]}")
    if isinstance(value, int) and not isinstance(value, bool):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        if not low <= value <= high:
            raise ValueError(f"{name!r} is between {low} and {high}, not {value}")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            raise ValueError(f"{name!r} is empty")
        for element in value:
            check_value(f"each of {name}", schema["items"], element)
