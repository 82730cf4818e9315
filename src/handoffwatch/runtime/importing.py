"""Finding the object of a user's program that a command line names: `module:attribute`, or `file.py:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from handoffwatch.errors import ConfigError, HandoffwatchError

_FILE: Final = ".py"


def import_object(spec: str, *, where: str, hint: str, files: bool = False) -> object:
    """Return the object that `module:attribute` names; the working folder is importable.

    Args:
        spec: The module's dotted name, a colon, and a dotted attribute.
        where: The option or argument that holds the spec, for messages.
        hint: What to type instead.
        files: Whether a path that ends in `.py` may stand for the module. A file is imported afresh, with the modules
            beside it, so that two versions of one module can be held side by side.

    Raises:
        ConfigError: The text is no such name, or the module is missing, broken, or without that attribute.
    """
    named = _Named(where, hint)
    module_name, colon, attribute = spec.rpartition(":")
    is_file = files and module_name.endswith(_FILE)
    parts = [*([] if is_file else module_name.split(".")), *attribute.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise ConfigError(f"{where}: value: must be module:attribute{' or file.py:attribute' * files}", hint=hint)
    found: object = named.file(Path(module_name)) if is_file else named.module(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"{where}: {spec}: the module has no attribute {attribute}", hint=hint)
        found = getattr(found, part)
    return found


@dataclass(frozen=True, slots=True)
class _Named:
    """Imports what `where` names, and says what is wrong with it."""

    where: str
    hint: str

    def module(self, name: str) -> ModuleType:
        """Return a module; the working folder is importable from now on."""
        folder = str(Path.cwd())
        if folder not in sys.path:
            sys.path.insert(0, folder)
        return self._imported(name, name)

    def file(self, path: Path) -> ModuleType:
        """Return the module of a file, by its name in the package that it lies in."""
        file = path.resolve()
        if not file.is_file():
            raise ConfigError(f"{self.where}: {path}: no such file", hint=self.hint)
        root, parts = file.parent, [file.stem]
        while (root / "__init__.py").exists():
            root, parts = root.parent, [root.name, *parts]
        name = ".".join(parts).removesuffix(".__init__")
        if not all(part.isidentifier() for part in name.split(".")):
            raise ConfigError(f"{self.where}: {path}: must be named as a Python module", hint="rename the file")
        with _modules_of(root):
            module = self._imported(name, str(path))
        if module.__file__ is None or not os.path.samefile(module.__file__, file):
            raise ConfigError(f"{self.where}: {path}: another module is named {name}", hint="rename the file")
        return module

    def _imported(self, name: str, shown: str) -> ModuleType:
        try:
            return importlib.import_module(name)
        except HandoffwatchError:
            raise
        except ModuleNotFoundError as error:
            if error.name and (name == error.name or name.startswith(f"{error.name}.")):
                raise ConfigError(f"{self.where}: {shown}: no such module", hint=self.hint) from None
            raise self._broken(name, shown, error) from error
        except (Exception, SystemExit) as error:
            raise self._broken(name, shown, error) from error

    def _broken(self, name: str, shown: str, error: BaseException) -> ConfigError:
        """Return an error that says where the user's module broke, without the text of its exception."""
        place = ""
        trace = error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if not file.startswith("<frozen"):
                place = f" at {os.path.relpath(file)}:{trace.tb_lineno}"
            trace = trace.tb_next
        if isinstance(error, SyntaxError) and error.filename:
            place = f" at {os.path.relpath(error.filename)}:{error.lineno}"
        kind = type(error).__name__
        command = f'python -c "import {name}"' if name == shown else f"python {shown}"
        return ConfigError(
            f"{self.where}: {shown}: importing it raised {kind}{place}", hint=f"{command} shows the whole error"
        )


@contextmanager
def _modules_of(root: Path) -> Iterator[None]:
    """Inside, the modules of a folder come before others of their names; afterwards they are forgotten again."""
    own = {path.stem for path in root.glob("*.py")} | {path.parent.name for path in root.glob("*/__init__.py")}
    own -= set(sys.stdlib_module_names)
    others = {
        name: module
        for name, module in sys.modules.items()
        if _top(name) in own and not _lies_in(sys.modules.get(_top(name)), root)
    }
    for name in others:
        del sys.modules[name]
    known = set(sys.modules)
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        if str(root) in sys.path:
            sys.path.remove(str(root))
        for name in set(sys.modules) - known:
            if _top(name) in own:
                del sys.modules[name]
        sys.modules.update(others)


def _top(name: str) -> str:
    return name.partition(".")[0]


def _lies_in(module: ModuleType | None, root: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and root in Path(file).resolve().parents
