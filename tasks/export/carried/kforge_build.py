"""Builds this package's wheel with the standard library alone, as pip asks (PEP 517)."""

import base64
import hashlib
import tomllib
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,  # noqa: ARG001  (the protocol's names)
    metadata_directory: str | None = None,  # noqa: ARG001
) -> str:
    """The name of the wheel in that folder."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = project["name"].replace("-", "_")
    info = f"{package}-{project['version']}.dist-info"
    files = {
        str(path.relative_to(HERE).as_posix()): path.read_bytes()
        for path in sorted((HERE / package).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    files[f"{info}/METADATA"] = _metadata(project).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/licenses/LICENSE"] = (HERE / "LICENSE").read_bytes()
    name = f"{package}-{project['version']}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
        wheel.writestr(f"{info}/RECORD", _record(files, info))
    return name


def _metadata(project: dict[str, Any]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {needed}" for needed in project["dependencies"]),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (HERE / "README.md").read_text(encoding="utf-8")


def _record(files: dict[str, bytes], info: str) -> str:
    """Each file with its hash and size; the record itself has neither."""
    lines = []
    for path, content in files.items():
        hashed = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={hashed},{len(content)}")
    return "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
