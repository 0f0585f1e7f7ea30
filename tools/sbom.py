"""Write the software bill of materials of the wheel: CycloneDX JSON, the same bytes for one commit.

It lists the packages that mnemic needs, as locked (locks/), with the SHA-256 of their wheels, and
the trained networks in the package with their licenses and sources.

    python tools/sbom.py dist
"""

import json
import os
import re
import sys
import uuid
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT / "mnemic" / "weights"
# A license, then "name==version" and its hashes; of torch, which has none, in a comment.
PIN = re.compile(r"^# license: (.+)\n(?:# )?(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", re.MULTILINE)


def read_locks() -> list[dict[str, Any]]:
    """Describe each package that a user may install; its wheels differ by platform."""
    components = {}
    for group, scope in (("base", "required"), ("all", "optional")):
        text = (ROOT / "locks" / f"{group}.txt").read_text(encoding="utf-8")
        for license_name, name, pinned, hashes in PIN.findall(text):
            address = f"pkg:pypi/{name}@{pinned}"
            digests = re.findall("[0-9a-f]{64}", hashes)
            components[name] = {
                "type": "library",
                "bom-ref": address,
                "name": name,
                "version": pinned,
                "scope": scope,
                "purl": address,
                "licenses": [{"license": {"name": license_name}}],
                "properties": [{"name": "mnemic:wheel:sha256", "value": digest} for digest in digests],
            }
    return [components[name] for name in sorted(components)]


def describe_network(folder: Path) -> dict[str, Any]:
    """Describe a trained network by its card and its manifest."""
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    files = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    sources = [f"{source['role']}: {source['name']} ({source['license']})" for source in card["sources"]]
    return {
        "type": "machine-learning-model",
        "bom-ref": f"mnemic/weights/{folder.name}",
        "name": folder.name,
        "version": card["mnemic"],
        "hashes": [{"alg": "SHA-256", "content": files["weights.safetensors"]}],
        "licenses": [{"license": {"id": card["license"]}}],
        "pedigree": {"notes": "; ".join(sources)},
    }


def build_document() -> dict[str, Any]:
    """Build the whole document."""
    own_version = version("mnemic")
    own = f"pkg:pypi/mnemic@{own_version}"
    packages = read_locks()
    networks = [describe_network(card.parent) for card in sorted(WEIGHTS.glob("*/card.json"))]
    made_at = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), UTC)
    content: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": made_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "mnemic",
                "version": own_version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": own,
            },
        },
        "components": [*packages, *networks],
        "dependencies": [{"ref": own, "dependsOn": [part["bom-ref"] for part in (*packages, *networks)]}],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    return content | {"serialNumber": f"urn:uuid:{serial}"}


def main() -> None:
    """Write ``mnemic-VERSION.cdx.json`` into the folder that is named."""
    document = build_document()
    path = Path(sys.argv[1]) / f"mnemic-{document['metadata']['component']['version']}.cdx.json"
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
