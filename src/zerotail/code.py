"""The user's own code: handlers and transforms, found beside the configuration file or wherever Python finds them."""

from __future__ import annotations

import ast
import inspect
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from zerotail.errors import Misused

_OURS = Path(__file__).parent
_INSTALLED = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_beside: set[str] = set()
"""The folders of configurations whose code can be imported."""


def find_code_beside(file: str | Path) -> None:
    """Let the code beside a configuration file be imported, here and in Spark's workers."""
    folder = str(Path(file).resolve().parent)
    _forget_what_is_gone()
    _beside.add(folder)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, known)])


def _forget_what_is_gone() -> None:
    """Drop the modules of folders that were taken down: the next drill of a series has code of the same names."""
    for folder in [one for one in _beside if not Path(one).is_dir()]:
        _beside.remove(folder)
        sys.path[:] = [one for one in sys.path if one != folder]
        for name, module in list(sys.modules.items()):
            if Path(getattr(module, "__file__", None) or ".").is_relative_to(folder):
                del sys.modules[name]


def load_object(path: str, whose: str) -> Any:
    """The Python object `module:name`."""
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except Exception as error:
        raise Misused(
            f"{path} of {whose} cannot be loaded: {type(error).__name__}: {error}.",
            code="ZT116",
            tries=[_way_out(error, module)],
        ) from error
    return found


def _way_out(error: Exception, module: str) -> str:
    if isinstance(error, SyntaxError):
        return f"correct {error.filename}, line {error.lineno}"
    if isinstance(error, ModuleNotFoundError) and error.name != module:
        return f"install {error.name}, which {module} imports, or put it beside the configuration file"
    if isinstance(error, ModuleNotFoundError):
        return "put the module beside the configuration file, or on PYTHONPATH"
    return f"python -c 'import {module}'    # in the folder of the configuration file: shows where it fails"


def digest_of_code(objects: Iterable[Any]) -> str:
    """A digest of the user's modules behind these objects: those they stand in, and all that these import (E4).

    What is installed (Python's own modules, packages, zerotail itself) has versions of its own, and is left out.
    """
    found: dict[str, bytes] = {}
    for one in objects:
        _collect(getattr(one, "__module__", None) or type(one).__module__, found)
    digest = sha256()
    for name, source in sorted(found.items()):
        digest.update(f"{name} {len(source)} ".encode() + source)
    return digest.hexdigest()


def _collect(name: str, found: dict[str, bytes]) -> None:
    spec = None if name in found else _find_users(name)
    if spec is None or spec.origin is None:
        return
    source = Path(spec.origin).read_bytes()
    found[name] = source
    for imported in _imported_by(source, spec):
        _collect(imported, found)


def _find_users(name: str) -> ModuleSpec | None:
    """Where a module of the user's is; None for one that is installed, built in, or not there."""
    try:
        spec = sys.modules[name].__spec__ if name in sys.modules else find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None and name in sys.modules and (file := inspect.getsourcefile(sys.modules[name])):
        spec = ModuleSpec(name, None, origin=file)  # a program that was started as one, or is being tried out
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    file = str(Path(spec.origin).resolve())
    return None if any(Path(file).is_relative_to(folder) for folder in (_OURS, *_INSTALLED)) else spec


def _imported_by(source: bytes, spec: ModuleSpec) -> Iterator[str]:
    package = spec.name if spec.submodule_search_locations is not None else spec.name.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
            yield from _with_parents(base)
            for alias in node.names:
                yield f"{base}.{alias.name}"  # a module, or something in one


def _with_parents(name: str) -> Iterator[str]:
    words = name.split(".")
    for count in range(1, len(words) + 1):
        yield ".".join(words[:count])
