"""Request bodies with items, which may be long: kept in a file, and read outside the event loop, item by item."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, BinaryIO, Self, TypeAlias, cast

import numpy as np
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema
from starlette.datastructures import UploadFile

from pairseek.core.json_pieces import JSONReader
from pairseek.core.media import inline_media
from pairseek.core.messages import words
from pairseek.core.text import plural
from pairseek.core.types import JSON, FloatArray
from pairseek.core.validation import MAX_ID_LENGTH, check_known_fields
from pairseek.errors import InvalidItems
from pairseek.model.items import Items
from pairseek.web.service import service_of
from pairseek.web.studies.configuration import MAX_DIMENSIONS, MAX_ITEMS

# Largest number of characters of all settings in a body; the longest may list the ids of all items.
_MAX_SETTINGS_LENGTH = 4_000_000
# The same for a population, which has the coordinates of all items.
_MAX_POPULATION_LENGTH = 40_000_000
# Largest number of members of an object in the settings, and of the body itself; attributes have one for each item.
_MAX_MEMBERS = 1000
_MAX_BODY_MEMBERS = 10
# Bytes of a body that are kept in memory while it arrives.
_MAX_BYTES_IN_MEMORY = 1_000_000


def _add_media(schema: JSON) -> None:
    """Declare the media among the properties of an item."""
    schema["properties"] |= {
        name: {"type": "string", "description": words().say(f"column.{name}")} for name in inline_media()
    }
    schema["additionalProperties"] = False


class NewItem(BaseModel):
    """Item of a new study, with its media as further fields."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_add_media)
    __pydantic_extra__: dict[str, str]

    id: str = Field(min_length=1, max_length=MAX_ID_LENGTH)
    coordinates: list[float] = Field(
        default=[],
        max_length=MAX_DIMENSIONS,
        description="none in a similarity study, or if they are to be learned",
    )
    label: str | None = None
    appeal: float = 0.0

    @model_validator(mode="after")
    def _has_known_media(self) -> Self:
        check_known_fields(self.__pydantic_extra__, "an item", (*type(self).model_fields, *inline_media()))
        return self

    @property
    def media(self) -> dict[str, str]:
        """Values of the media that the item has."""
        return {name: value for name, value in self.__pydantic_extra__.items() if value}


class NewItems:
    """Items of a request, kept as columns, which take a tenth of the memory of the parsed items."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._labels: list[str] = []
        self._appeal, self._coordinates, self._dimensions = array("d"), array("d"), array("B")
        self._media: dict[str, dict[int, str]] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, record: object) -> None:
        """Add an item after validating it."""
        row = len(self)
        if row == MAX_ITEMS:
            raise InvalidItems(f"there are more than {MAX_ITEMS:,} items, which is the most a study takes: use fewer")
        try:
            item = NewItem.model_validate(record)
        except ValidationError as error:
            details = [
                {**detail, "loc": ("body", "items", row, *detail["loc"])} for detail in error.errors(include_url=False)
            ]
            raise RequestValidationError(details) from None
        self._ids.append(item.id)
        self._labels.append(item.id if item.label is None else item.label)
        self._appeal.append(item.appeal)
        self._coordinates.extend(item.coordinates)
        self._dimensions.append(len(item.coordinates))
        for name, value in item.media.items():
            self._media.setdefault(name, {})[row] = value

    def items(self, *, placed: bool) -> Items:
        """Return the items; in a similarity study they are not ``placed`` and have no coordinates."""
        coordinates = self._rows() if placed and self._coordinates else None
        data = {
            name: [self._media[name].get(row, "") for row in range(len(self))]
            for name in inline_media()
            if name in self._media
        }
        return Items._without_warnings(coordinates, self._ids, self._labels, self._appeal, data)

    def _rows(self) -> FloatArray:
        counts = np.asarray(self._dimensions)
        d = int(counts[0])
        other = int(np.argmax(counts != d))
        if counts[other] != d:
            raise InvalidItems(
                f"the item {self._ids[other]!r} has {plural(int(counts[other]), 'coordinate')} and {self._ids[0]!r} "
                f"has {d}: give all items the same number"
            )
        return np.asarray(self._coordinates).reshape(-1, d)


def _checked(value: object) -> NewItems:
    if not isinstance(value, NewItems):
        raise PydanticCustomError("list_type", "Input should be a valid list")
    if len(value) < 2:
        raise PydanticCustomError("too_short", "List should have at least 2 items, not {count}", {"count": len(value)})
    return value


def _schema(_: object, handler: GetCoreSchemaHandler) -> CoreSchema:
    described = core_schema.list_schema(handler.generate_schema(NewItem), min_length=2, max_length=MAX_ITEMS)
    return core_schema.json_or_python_schema(described, core_schema.no_info_plain_validator_function(_checked))


ItemList: TypeAlias = Annotated[NewItems, GetPydanticSchema(_schema)]
"""Items in a body, described as a list of `NewItem`."""


def read_body(file: BinaryIO) -> Any:
    """Read a body with items; raise an error at the first item that is not valid."""
    reader = JSONReader(file)
    if reader.peek() != "{":
        return reader.value()
    body: JSON = {}
    remaining = _MAX_SETTINGS_LENGTH
    for name in reader.members():
        if name in body or len(body) == _MAX_BODY_MEMBERS:
            raise reader.error("A name occurs twice, or there are too many names")
        if name == "items" and reader.peek() == "[":
            body[name] = NewItems()
            for record in reader.elements():
                body[name].add(record)
        else:
            began = reader.position
            most_members = MAX_ITEMS if name == "attributes" else _MAX_MEMBERS
            most = _MAX_POPULATION_LENGTH if name == "population" else remaining
            body[name] = reader.tree(most, most_members=most_members)
            remaining -= 0 if name == "population" else reader.position - began
    reader.end()
    return body


class _Request(Request):
    """Request whose body is kept in ``file`` and read in the pool for heavy work."""

    file: UploadFile

    async def body(self) -> bytes:
        """Store the body in the file, and return its beginning."""
        beginning = b""
        async for chunk in self.stream():
            beginning = beginning or chunk
            await self.file.write(chunk)
        return beginning

    async def json(self) -> Any:
        """Return the stored body."""
        await self.file.seek(0)
        service = await service_of(self)
        return await service.run_heavy(lambda: read_body(self.file.file))


class ItemsRoute(APIRoute):
    """Route whose body has items."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which gets the body from `read_body`."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            parsed_request = _Request(request.scope, request.receive)
            with tempfile.SpooledTemporaryFile(_MAX_BYTES_IN_MEMORY) as file:
                parsed_request.file = UploadFile(cast(BinaryIO, file))
                return await handler(parsed_request)

        return handle
