"""JSON and YAML files that people write for the test kit, and where in them something is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, Field, ValidationError

from handoffwatch.errors import ConfigError
from handoffwatch.handoffs.context import HandoffContext, TaskFacts
from handoffwatch.values.settings_model import SettingsModel
from handoffwatch.values.settings_problems import Places, joined, problems
from handoffwatch.values.yaml_text import KeyPath, YamlDocument, dotted, read_yaml

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
"""The largest file that is read; a YAML file may be as large as `values.yaml_text` allows."""

Model = TypeVar("Model", bound=BaseModel)


class TaskFields(SettingsModel):
    """The fields of TaskFacts as a file holds them."""

    hops: int = Field(0, ge=0, description="Handoffs of the task that were let through.")
    repeats: int = Field(0, ge=0, description="How often the same content came to this route before.")
    is_open: bool = Field(False, description="Whether a handoff of this id is being processed.")
    is_consumed: bool = Field(False, description="Whether a handoff of this id was accepted before.")
    is_stopped: bool = Field(False, description="Whether a handoff was stopped on this route for good.")
    replaced_version: int | None = Field(None, description="The newest version of the state that was replaced.")


class ContextFields(SettingsModel):
    """The fields of a HandoffContext as a file holds them."""

    run_id: str | None = Field(None, description="The active run.")
    task_id: str | None = Field(None, description="The active task.")
    context_version: int | None = Field(None, description="The version that the next step must rest on.")
    handoff_id: str | None = Field(None, description="The id to use when the envelope has none.")
    attempt: int = Field(1, ge=1, description="1-based number of this try.")
    finished_operations: list[str] | None = Field(None, description="Ids of the operations known to be done.")
    consumed: list[str] | None = Field(None, description="Ids of the handoffs that were accepted before.")
    task: TaskFields | None = Field(None, description="What the task's handoffs before this one come to.")

    def to_context(self) -> HandoffContext:
        """Return the context."""
        return HandoffContext(
            run_id=self.run_id,
            task_id=self.task_id,
            context_version=self.context_version,
            handoff_id=self.handoff_id,
            attempt=self.attempt,
            finished_operations=None if self.finished_operations is None else frozenset(self.finished_operations),
            consumed=None if self.consumed is None else frozenset(self.consumed),
            task=None if self.task is None else TaskFacts(**self.task.model_dump()),
        )


@dataclass(frozen=True, slots=True)
class Document:
    """One file.

    Attributes:
        name: The file as messages show it: printable characters only.
        text: What it holds.
        is_json: Whether it is JSON; else it is YAML.
        data: The same as plain data.
    """

    name: str
    text: bytes
    is_json: bool
    data: object

    def validated(self, model: type[Model], *, hint: str) -> Model:
        """Return the file's data as a model.

        Raises:
            ConfigError: It breaks rules of the model; the message has a line `file:line: key: rule` for each.
        """
        if not isinstance(self.data, dict):
            raise self.refused((), "must be a mapping of keys", hint=hint)
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            places = Places(self._with_lines())
            found = problems(error, model=model, places=places)
        said = [ConfigError(each.message, hint=each.hint if "known keys" in each.hint else hint) for each in found]
        raise joined(said)

    def refused(self, path: KeyPath, rule: str, *, hint: str) -> ConfigError:
        """Return the error that a key breaks a rule."""
        places = Places(self._with_lines())
        return ConfigError(f"{places.where(path)}: {dotted(path)}: {rule}", hint=hint)

    def _with_lines(self) -> YamlDocument:
        """Return the file with the line of every key; JSON is read as YAML for that, where it is YAML too."""
        try:
            return read_yaml(self.text, name=self.name)
        except ConfigError:
            return YamlDocument(self.name, None, {})


def read_document(path: Path) -> Document:
    """Return a file's data: JSON when its name ends in `.json`, else YAML.

    JSON is read as Python's json module reads it, so that NaN and halves of characters can be cases.

    Raises:
        ConfigError: The file cannot be read, is too large, or is neither.
    """
    name = printable(str(path))
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError(f"{name}: file: cannot be read: {reason}", hint="name a file that you may read") from None
    if len(text) > FILE_BYTES_MAX:
        raise ConfigError(f"{name}: file: must be at most {FILE_BYTES_MAX} bytes", hint="make the case smaller")
    return parse_document(text, name=name, is_json=path.suffix == ".json")


def parse_document(text: bytes, *, name: str, is_json: bool) -> Document:
    """Return the data of a file that was read.

    Raises:
        ConfigError: It is no JSON, or no YAML as `values.yaml_text` reads it.
    """
    data = _parsed_json(text, name) if is_json else read_yaml(text, name=name).data
    return Document(name, text, is_json, data)


def read_context(path: Path) -> HandoffContext:
    """Return the context that a JSON or YAML file holds.

    Raises:
        ConfigError: It cannot be read, or a key is unknown or of the wrong kind.
    """
    known = ", ".join(ContextFields.model_fields)
    return read_document(path).validated(ContextFields, hint=f"the fields of a context are: {known}").to_context()


def printable(text: str) -> str:
    """Return a text that cannot steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _parsed_json(text: bytes, name: str) -> object:
    try:
        return json.loads(text.decode("utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        line, problem = text.count(b"\n", 0, error.start) + 1, "must be UTF-8 text"
    except json.JSONDecodeError as error:
        line, problem = error.lineno, f"not valid JSON: {error.msg.lower()}"
    except _Repeated as error:
        quoted = json.dumps(error.key).encode()
        second = text.find(quoted, text.find(quoted) + 1)
        line, problem = text.count(b"\n", 0, max(second, 0)) + 1, f"{printable(error.key)}: must be given once"
    except RecursionError:
        line, problem = 1, "is nested too deeply"
    raise ConfigError(f"{name}:{line}: {problem}", hint="put text that is no JSON object under the key text")


class _Repeated(Exception):
    """An object has a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise _Repeated(key)
        result[key] = value
    return result
