"""The description of what routes take, exactly as it is checked: every limit, and that nothing else is taken.

What routes answer is described by the framework, which leaves out limits; an answer needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from litestar.openapi.spec import Schema
from litestar.openapi.spec.enums import OpenAPIType
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition
from msgspec import Struct

if TYPE_CHECKING:
    from litestar._openapi.schema_generation import SchemaCreator

#: What msgspec calls it, and what the framework does.
_NAMES = {
    "anyOf": "any_of",
    "const": "const",
    "default": "default",
    "description": "description",
    "enum": "enum",
    "exclusiveMaximum": "exclusive_maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "format": "format",
    "maximum": "maximum",
    "maxItems": "max_items",
    "maxLength": "max_length",
    "maxProperties": "max_properties",
    "minimum": "minimum",
    "minItems": "min_items",
    "minLength": "min_length",
    "minProperties": "min_properties",
    "pattern": "pattern",
    "required": "required",
    "title": "title",
}


class WhatIsTaken(OpenAPISchemaPlugin):
    """Describes the structs that take no field they do not know: those a request is read into."""

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        """Return whether it is such a struct."""
        if field_definition.is_union or not field_definition.is_subclass_of(Struct):
            return False
        kind: type[Struct] = field_definition.type_
        return kind.__struct_config__.forbid_unknown_fields and kind.__module__.startswith("perdure.api.")

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: SchemaCreator) -> Schema:
        """Return its description, with whatever is in it."""
        raw = msgspec.json.schema(field_definition.type_)
        return _schema(raw, raw.get("$defs", {}))


def _schema(raw: dict[str, Any], known: dict[str, Any]) -> Schema:
    if "$ref" in raw:
        return _schema(known[raw["$ref"].rpartition("/")[2]], known)
    said: dict[str, Any] = {name: raw[key] for key, name in _NAMES.items() if key in raw}
    if "anyOf" in raw:
        said["any_of"] = [_schema(each, known) for each in raw["anyOf"]]
    if "type" in raw:
        said["type"] = OpenAPIType(raw["type"])
    if "items" in raw:
        said["items"] = _schema(raw["items"], known) if isinstance(raw["items"], dict) else raw["items"]
    if "properties" in raw:
        said["properties"] = {name: _schema(each, known) for name, each in raw["properties"].items()}
    if "additionalProperties" in raw:
        more = raw["additionalProperties"]
        said["additional_properties"] = _schema(more, known) if isinstance(more, dict) else more
    return Schema(**said)
