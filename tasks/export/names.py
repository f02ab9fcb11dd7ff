"""What a package and its parts are called."""

import keyword
import re
import sys
from pathlib import Path

from data.errors import MisuseError


def identifier(name: str) -> str:
    """The name as a Python one.

    >>> identifier("level1_23 Softmax"), identifier("7zip"), identifier("xeon-sycl")
    ('level1_23_Softmax', 'op_7zip', 'xeon_sycl')
    """
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "op"
    return f"op_{plain}" if plain[0].isdigit() or keyword.iskeyword(plain) else plain


def title(name: str) -> str:
    """The name of a class.

    >>> title("fused_add_rms_norm"), title("conv2d")
    ('FusedAddRmsNorm', 'Conv2d')
    """
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def package_name(folder: Path) -> str:
    """The package that a folder is for; MisuseError where its name cannot be imported.

    >>> package_name(Path("out/kernels-cpu"))
    'kernels_cpu'
    """
    name = folder.absolute().name.lower().replace("-", "_")
    taken = name in sys.stdlib_module_names or name in {"torch", "tests"} or keyword.iskeyword(name)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or taken:
        raise MisuseError(
            f"the package cannot be called {folder.name!r}, as the folder; name a folder that "
            "Python can import, such as kforge_cpu"
        )
    return name
