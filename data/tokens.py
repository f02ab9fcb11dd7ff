"""The code in a source: what a compiler reads, without comments and quoted text.

C, C++ and their kernel dialects have one lexer, Python has the library's. Inline assembly is code
although it is quoted.
"""

import ast
import io
import re
import tokenize
from functools import lru_cache

_LEXER = re.compile(
    r"""
    (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\s\\"]{0,16})\(.*?\)(?P=mark)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?)
  | (?P<letter>'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<other>\s+|.)
    """,
    re.DOTALL | re.VERBOSE,
)
_ASSEMBLY = {"asm", "__asm__", "__asm"}


def c_code(source: str) -> str:
    r"""The source with comments as a space and strings as `""`; lines stay where they are.

    >>> c_code('f("a // b", 1\'000); // float4\nasm volatile("cp.async.ca" :: "r"(x));')
    'f("", 1\'000);  \nasm volatile("cp.async.ca" :: "r"(x));'
    """
    parts: list[str] = []
    depth = assembly = 0
    waiting = False
    for found in _LEXER.finditer(source):
        kind, text = found.lastgroup, found[0]
        kind = "raw" if kind == "mark" else kind
        if kind == "comment":
            parts.append(" " + "\n" * text.count("\n"))
        elif kind in {"string", "raw"}:
            parts.append(text if assembly else '""')
        else:
            parts.append(text)
            waiting = (waiting or text in _ASSEMBLY) and text not in ";{}"
            depth += (text == "(") - (text == ")")
            if waiting and text == "(":
                waiting, assembly = False, depth
            if assembly and depth < assembly:
                assembly = 0
    return "".join(parts)


def bare(source: str) -> str:
    r"""C without comments and layout: strings stay, and so do the ends of lines, for directives.

    >>> bare('f( x );  // why\n\n  g("a  b");')
    'f( x );\ng("a  b");'
    """
    parts = (" " if f.lastgroup == "comment" else f[0] for f in _LEXER.finditer(source))
    lines = "".join(parts).split("\n")
    plain = (line.strip() if '"' in line else " ".join(line.split()) for line in lines)
    return "\n".join(line for line in plain if line)


@lru_cache(maxsize=512)
def essence(module: str) -> str:
    """The module without what changes nothing: comments, layout, docstrings, also in kernels.

    Two candidates with equal essence are one kernel; a text that is no Python is its own.
    """
    try:
        tree = ast.parse(module)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return module
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            node.body = [s for s in node.body if not _is_prose(s)]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ";" in node.value:
            node.value = bare(node.value)
    return ast.dump(tree)


def _is_prose(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def python_code(source: str) -> str:
    """The module without comments and strings; a text that is no Python stays as it is.

    >>> python_code('x = tl.dot(a, b)  # tl.atomic_add' + chr(10)).strip()
    'x = tl.dot ( a , b )'
    """
    words: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in {tokenize.NEWLINE, tokenize.NL}:
                words.append("\n")
            elif token.type == tokenize.STRING:
                words.append('""')
            elif token.type != tokenize.COMMENT and token.string.strip():
                words.append(token.string)
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return source
    return re.sub(r" ?\n ?", "\n", " ".join(words)).replace(" . ", ".")


def kernel_texts(module: str) -> list[str]:
    """The strings of a Python module that are kernels; a text that is no module is one itself.

    A docstring is prose, and so is a string without a statement.
    """
    try:
        tree = ast.parse(module)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [module]
    prose = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in prose
        and "(" in node.value
        and (";" in node.value or "{" in node.value)
    ]
    return texts or [module]  # a bare kernel may by chance be Python, too
