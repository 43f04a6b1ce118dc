"""Catalogue files of the package, and of a folder with further languages."""

from __future__ import annotations

import json
import os
import re
import string
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

from pairseek.errors import InvalidFile

FOLDER = Path(__file__).parent
FOLDER_VARIABLE = "PAIRSEEK_MESSAGES"
"""Environment variable with the folder of further catalogues."""
DEFAULT = "en"

Message: TypeAlias = str | Mapping[str, str]

_LANGUAGE = re.compile(r"[a-z]{2,3}")
_FORMS = {"one", "other"}
# Far above the size of the package's own catalogues.
_MAX_BYTES = 2_000_000
# A message has no placeholder with a format or an attribute, which could read or print anything.
_PLACEHOLDER = re.compile(r"\w+")


@cache
def catalogues() -> dict[str, dict[str, Message]]:
    """Read the messages of every language, once; raise `InvalidFile` if a file in the further folder is not valid.

    A file named after a language of the package replaces some of its messages.
    """
    read = {path.stem: _parsed(path) for path in FOLDER.glob("*.json")}
    folder = os.environ.get(FOLDER_VARIABLE)
    for path in sorted(_files(Path(folder))) if folder else ():
        messages = _parsed(path)
        _check(path, messages, read[DEFAULT], is_new=path.stem not in read)
        read[path.stem] = read.get(path.stem, {}) | messages
    return read


def problem_of_message(message: object, english: Message) -> str | None:
    """Return why a message cannot take the place of the English one; None if it can."""
    if isinstance(english, str):
        if not isinstance(message, str):
            return f"it is {type(message).__name__}, not a text: write one text"
        return _problem_of_text(message, _names(english), _names(english))
    if not isinstance(message, Mapping) or set(message) != _FORMS or not all(map(_is_text, message.values())):
        return 'it needs two forms: write {"one": ..., "other": ...}'
    # The form for one thing may say the count in words.
    needed, allowed = _names(english["one"]) - {"count"}, _names(english["one"]) | _names(english["other"])
    return _problem_of_text(message["one"], needed, allowed) or _problem_of_text(
        message["other"], _names(english["other"]), allowed
    )


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InvalidFile(f"{FOLDER_VARIABLE} is {str(folder)!r}, which is not a folder: name a folder of JSON files")
    return list(folder.glob("*.json"))


def _parsed(path: Path) -> dict[str, Message]:
    if not _LANGUAGE.fullmatch(path.stem):
        raise InvalidFile(
            f"{path} is not named after a language: use its code of two or three letters, such as it.json"
        )
    if path.stat().st_size > _MAX_BYTES:
        raise InvalidFile(f"{path} has more than {_MAX_BYTES:,} bytes: it is not a message catalogue")
    try:
        messages = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{path} is not JSON in UTF-8 ({error}): correct it") from None
    if not isinstance(messages, dict):
        raise InvalidFile(f'{path} is not an object of messages: write {{"run.undo": "...", ...}}')
    return messages


def _check(path: Path, messages: Mapping[str, Message], english: Mapping[str, Message], *, is_new: bool) -> None:
    if is_new and "language.name" not in messages:
        raise InvalidFile(f'{path} lacks "language.name": add the name of the language in the language itself')
    for key in messages.keys() & english.keys():
        problem = problem_of_message(messages[key], english[key])
        if problem is not None:
            raise InvalidFile(f"{path}: the message {key!r} cannot be used: {problem}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _names(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def _problem_of_text(text: str, needed: set[str], allowed: set[str]) -> str | None:
    try:
        fields = [field[1:] for field in string.Formatter().parse(text) if field[1] is not None]
    except ValueError:
        return "a brace has no partner: write {{ and }} for braces that are shown"
    for name, form, conversion in fields:
        if form or conversion or not _PLACEHOLDER.fullmatch(name or ""):
            return f"{{{name}}} is not a placeholder: write {_listed(allowed)}"
    names = {str(name) for name, _, _ in fields}
    if names - allowed:
        return f"it has the placeholder {_listed(names - allowed)}, which has no value here: use {_listed(allowed)}"
    if needed - names:
        return f"it lacks the placeholder {_listed(needed - names)}: add it"
    return None


def _listed(names: set[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names)) or "no braces"
