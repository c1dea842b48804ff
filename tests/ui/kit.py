"""The HTTP interface of the page, asked as programs ask it; every answer is as it is described."""

import asyncio
import json
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]

from holdfast import SyncClient
from holdfast.ui import app

BASE = "/api/v1/"


class Http:
    """Asks an ASGI application without a server in between; cookies are kept."""

    def __init__(self, application: Any, base: str = "http://testserver", **options: Any) -> None:
        self.application = application
        self._base = base
        self._options = options
        self.cookies = httpx.Cookies()

    def request(self, method: str, address: str, **given: Any) -> httpx.Response:
        """What it answers, without following where it leads."""
        return asyncio.run(self._asked(method, address, given))

    def get(self, address: str, **given: Any) -> httpx.Response:
        """What it answers to a GET."""
        return self.request("GET", address, **given)

    def post(self, address: str, **given: Any) -> httpx.Response:
        """What it answers to a POST."""
        return self.request("POST", address, **given)

    async def _asked(self, method: str, address: str, given: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self.application, **self._options)
        async with httpx.AsyncClient(
            transport=transport, base_url=self._base, cookies=self.cookies
        ) as http:
            answer = await http.request(method, address, **given)
            self.cookies = http.cookies
            return answer


class Api:
    """Asks the interface over a client, and checks each answer against its description."""

    def __init__(self, client: SyncClient, read_only: bool = False, **options: Any) -> None:
        self.http = Http(app(client, read_only=read_only, **options))
        self.description = self.http.get(BASE + "openapi.json").json()

    def get(self, path: str, /, **params: Any) -> dict[str, Any]:
        """What it answers when it is asked; a list is given several times, and None not at all."""
        return self._checked(path, "get", self.raw(path, **params))

    def post(self, path: str, /, **body: Any) -> dict[str, Any]:
        """What it answers when it is told to do something."""
        return self._checked(path, "post", self.http.post(BASE + path, json=body))

    def refused(
        self, path: str, status: int, /, method: str = "GET", **given: Any
    ) -> dict[str, Any]:
        """The error that it answers."""
        where = {"json": given} if method == "POST" else {"params": _asked(given)}
        answer = self.http.request(method, BASE + path, **where)
        assert answer.status_code == status, f"{answer.status_code}: {answer.text}"
        check(answer.json(), self.description["components"]["schemas"]["error"])
        return dict(answer.json()["error"])

    def raw(self, path: str, /, **params: Any) -> httpx.Response:
        """The whole answer, whatever it is."""
        return self.http.get(BASE + path, params=_asked(params))

    def _checked(self, path: str, method: str, answer: httpx.Response) -> dict[str, Any]:
        assert answer.status_code == 200, f"{answer.status_code}: {answer.text}"
        assert answer.headers["content-type"] == "application/json"
        described = self.description["paths"][f"/{path}"][method]["responses"]["200"]
        found = _loaded(answer.content)
        parts = {"components": self.description["components"]}
        check(found, {**parts, **described["content"]["application/json"]["schema"]})
        return found


def check(found: Any, schema: Any) -> None:
    """Assert that something is as a schema says, with no field that it does not name."""
    jsonschema.validate(found, strict(schema), cls=jsonschema.Draft202012Validator)


def strict(schema: Any) -> Any:
    """A schema that allows no field it does not name, so that none is added unnoticed."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        inner["additionalProperties"] = False
    return inner


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    words = {True: "true", False: "false"}
    return {
        name: words[value] if isinstance(value, bool) else value
        for name, value in given.items()
        if value is not None
    }


def _loaded(body: bytes) -> dict[str, Any]:
    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is no JSON")

    found = json.loads(body, parse_constant=refuse)
    assert isinstance(found, dict)
    return found
