"""Validates a bill of materials against the schema of CycloneDX, and prints its counts."""

import json
import sys
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = Path(sys.argv[1]).read_text(encoding="utf-8")
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
if error is not None:
    sys.exit(f"invalid: {error}")
bom = Bom.from_json(json.loads(text))
known = {component.bom_ref.value for component in bom.components}
known.add(bom.metadata.component.bom_ref.value)
for dependency in bom.dependencies:
    for used in dependency.dependencies:
        if used.ref.value not in known:
            sys.exit(f"{dependency.ref.value} uses {used.ref.value}, which is not listed")
print(len(bom.components))
