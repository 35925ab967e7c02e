"""Write requirements/dev.txt: one tested version of everything pyproject.toml asks for, and of what that needs.

Takes the newest versions the configured package index has. Names and versions only, so that the file says
nothing about where packages come from.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.join(ROOT, "requirements", "dev.txt")
HEADER = "# Written by `make pins`: what the tests were run with. Not edited by hand.\n"

#: Pins that must not be asked for everywhere, by the condition under which their dependant wants them.
MARKERS = {
    "inotify-simple": "sys_platform == 'linux'",
    "librt": "platform_python_implementation != 'PyPy'",
    "psycopg-binary": "implementation_name != 'pypy'",
}


def wanted() -> list[str]:
    """Return everything pyproject.toml asks for: to build, to run, to test."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)
    return [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(name for extra in project["project"]["optional-dependencies"].values() for name in extra),
        *project["dependency-groups"]["dev"],
    ]


def resolve(requirements: list[str]) -> list[str]:
    """Return `name==version` of these and all they need, as an empty environment gets them now."""
    with tempfile.TemporaryDirectory() as scratch:
        python = os.path.join(scratch, "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", scratch], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        frozen = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True)
    return [line for line in frozen.stdout.splitlines() if "==" in line]


def with_marker(pin: str) -> str:
    """Return the pin with the condition it is needed under, when it has one."""
    marker = MARKERS.get(pin.split("==")[0])
    return f"{pin}; {marker}" if marker else pin


def main() -> None:
    pins = sorted(resolve(wanted()), key=str.lower)
    with open(TARGET, "w", encoding="utf-8") as file:
        file.write(HEADER + "".join(f"{with_marker(pin)}\n" for pin in pins))
    print(f"{len(pins)} versions pinned in {os.path.relpath(TARGET)}")


if __name__ == "__main__":
    main()
