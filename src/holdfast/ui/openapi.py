"""The description of the HTTP interface, in OpenAPI 3.1, made from the routes themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast._version import __version__
from holdfast.cli.output.json_schemas import SHAPES
from holdfast.ui.routes import Route

_STATUSES = {
    "400": "it was not asked as it has to be",
    "401": "the cookie or the key is missing",
    "403": "another host or origin, or a write where only reading is allowed",
    "404": "no such checkpoint, session or question",
    "409": "what was named fits more than one, or it was refused",
    "422": "stored data is damaged",
    "500": "something else went wrong",
    "503": "the store cannot be reached",
}


_OF_WRITES = {
    "413": "the body is too large",
    "415": "the body is no application/json",
}


def description(routes: Iterable[Route], title: str | None = None) -> dict[str, Any]:
    """Return the document about these routes."""
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(f"/{route.path}", {})["post" if route.writes else "get"] = _of(route)
    paths["/events"] = {"get": _EVENTS}
    paths["/openapi.json"] = {"get": _ITSELF}
    return {
        "openapi": "3.1.0",
        "info": {"title": title or "Holdfast", "version": __version__},
        "servers": [{"url": "/api/v1"}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"error": SHAPES["error"]},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }


def _of(route: Route) -> dict[str, Any]:
    answers: dict[str, Any] = {"200": {"description": "it was answered", **_content(route)}}
    problem = {"schema": {"$ref": "#/components/schemas/error"}}
    statuses = _STATUSES | (_OF_WRITES if route.writes else {})
    for status, said in sorted(statuses.items()):
        answers[status] = {"description": said, "content": {"application/json": problem}}
    found: dict[str, Any] = {
        "operationId": route.path.replace("-", "_").replace("/", "_").replace(".", "_"),
        "summary": route.summary,
        "responses": answers,
    }
    if route.writes:
        fields = {name: {"description": said} for name, said in route.parameters.items()}
        schema = {"type": "object", "properties": fields}
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    else:
        found["parameters"] = [
            {"name": name, "in": "query", "description": said, "schema": {"type": "string"}}
            for name, said in route.parameters.items()
        ]
    return found


def _content(route: Route) -> dict[str, Any]:
    if route.schema is None:
        return {"content": {"*/*": {}}}
    return {"content": {"application/json": {"schema": dict(route.schema)}}}


_EVENTS: dict[str, Any] = {
    "operationId": "events",
    "summary": "what changes, as server-sent events: hello, changed, lost and back",
    "responses": {"200": {"description": "a stream", "content": {"text/event-stream": {}}}},
}
_ITSELF: dict[str, Any] = {
    "operationId": "description",
    "summary": "this description",
    "responses": {
        "200": {
            "description": "it",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
}
