"""Packages that import a module only when one of the module's names is first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def names_of(
    package: str, modules: Mapping[str, Sequence[str]], complete: Callable[[Any], None] = lambda found: None
) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are defined in its modules; `modules` lists the names by module.

    `complete` is called with the object of each name when that name is first used.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        found = getattr(import_module(f"{package}.{module_of[name]}"), name)
        complete(found)
        setattr(sys.modules[package], name, found)
        return found

    return get
