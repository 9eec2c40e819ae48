"""The contents of a wheel: the packages and data files of the folders, including C sources, and CMakeLists.txt.

The package `collwise` itself is the public interface, whose source is in studies/api (since the launcher has the name
`collwise`). The top-level folders ("floors") are its subpackages.
"""

import tempfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

FLOORS = ("algorithms", "common", "models", "platforms", "simulator", "studies", "validation")


def packages_of(floor: str) -> list[str]:
    """The packages of a floor, by the names under which they are imported."""
    return [f"collwise.{floor}", *(f"collwise.{floor}.{name}" for name in find_packages(floor, exclude=["api"]))]


def data_of(floor: str) -> list[str]:
    """All files of a floor except Python modules, relative to the floor's folder."""
    files = [path.relative_to(floor) for path in Path(floor).rglob("*") if path.is_file()]
    return [str(path) for path in files if path.suffix not in (".py", ".pyc") and "/." not in f"/{path}"]


class BuildWithMore(build_py):
    """Puts next to the packages, as in a clone: CMakeLists.txt, executed notebooks, and the files that these read."""

    def run(self) -> None:
        """Builds the package."""
        super().run()
        if not self.editable_mode:
            folders = [*Path("docs/notebooks").glob("*.ipynb"), *Path("docs/measured").glob("*")]
            for file in map(str, (Path("CMakeLists.txt"), *sorted(folders))):
                self.mkpath(str(Path(self.build_lib, "collwise", file).parent))
                self.copy_file(file, str(Path(self.build_lib, "collwise", file)))


# In a clone, build/ contains the C programs, and files of an earlier wheel must not get into a later wheel.
with tempfile.TemporaryDirectory() as build_base:
    setup(
        packages=["collwise", *(name for floor in FLOORS for name in packages_of(floor))],
        package_dir={"collwise": "studies/api", **{f"collwise.{floor}": floor for floor in FLOORS}},
        package_data={f"collwise.{floor}": data_of(floor) for floor in FLOORS},
        include_package_data=False,
        cmdclass={"build_py": BuildWithMore},
        options={"build": {"build_base": build_base}},
    )
