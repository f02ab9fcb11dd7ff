"""Awkward replies and what each is: sources to be taken, classes to be named (LLM.md, 5).

Some were seen, others written after the faults of known extractors.
"""

from agents.reply import ParseStatus

GOOD = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
"""
OLD = GOOD.replace("return x", "return x + 0")
FENCE = "```"


def fenced(code: str, tag: str = "python", fence: str = FENCE) -> str:
    return f"{fence}{tag}\n{code}{fence}\n"


QUOTED = '''import torch
K = r"""
// a `tick`, a {brace}
void f(float* y) { y[0] = 1; }
"""


class ModelNew(torch.nn.Module):
    """Use it so:

    ```
    ModelNew()
    ```
    """
'''
TICKED = GOOD.replace("return x", "return x  # not ``` the end")

MICRO = GOOD + "# \u00b5s\n"

TAKEN = {
    "plain": (fenced(GOOD), GOOD),
    "no tag": (fenced(GOOD, ""), GOOD),
    "tag cuda": (fenced(GOOD, "cuda"), GOOD),
    "tag CPP": (fenced(GOOD, "CPP"), GOOD),
    "tag with attributes": (fenced(GOOD, 'python title="kernel.py" {1,2}'), GOOD),
    "tag triton": (fenced(GOOD, "triton"), GOOD),
    "prose around": (f"Sure!\n\n{fenced(GOOD)}\nDone.", GOOD),
    "two blocks, the later better": (fenced("def old(): return 1\n") + fenced(GOOD), GOOD),
    "two blocks, the earlier better": (fenced(GOOD) + fenced("print(1)\nprint(2)\n"), GOOD),
    "code and a bash block": (fenced(GOOD) + "Run:\n" + fenced("python kernel.py\n", "bash"), GOOD),
    "the same block twice": (fenced(GOOD) + fenced(GOOD), GOOD),
    "draft in think tags": (f"<think>\n{fenced(OLD)}</think>\n{fenced(GOOD)}", GOOD),
    "only the closing think tag": (f"{fenced(OLD)}\n</think>\n{fenced(GOOD)}", GOOD),
    "back-ticks inside a comment": (fenced(TICKED), TICKED),
    "fences inside a docstring": (fenced(QUOTED), QUOTED),
    "tilde fence": (fenced(GOOD, fence="~~~"), GOOD),
    "longer fence": (fenced(GOOD, fence="`````"), GOOD),
    "no fence": (GOOD, GOOD),
    "CRLF": (fenced(GOOD).replace("\n", "\r\n"), GOOD),
    "byte-order mark": ("\ufeff" + GOOD, GOOD),
    "byte-order mark in the block": (fenced("\ufeff" + GOOD), GOOD),
    "inside a Markdown block": (fenced(fenced(GOOD), "markdown", "````"), GOOD),
    "a usage block that was cut": (fenced(GOOD) + f"{FENCE}bash\npython k", GOOD),
    "inside a list": ("1. Kernel:\n\n   " + fenced(GOOD).replace("\n", "\n   "), GOOD),
    "unclosed, but whole": (f"{FENCE}python\n{GOOD}", GOOD),
    "legal ellipsis": (
        fenced(GOOD.replace("return x", "return x[..., 0]")),
        GOOD.replace("return x", "return x[..., 0]"),
    ),
    "diff beside the file": (fenced("-class ModelNew: 1\n", "diff") + fenced(GOOD), GOOD),
    "a syntax error is the compiler's to report": (
        fenced(GOOD + "def f(:\n"),
        GOOD + "def f(:\n",
    ),
    "think tag with attributes of its own": (
        f"<think>\nFirst a draft:\n{fenced(OLD)}\n</think>\n\n{fenced(GOOD)}",
        GOOD,
    ),
    "two thoughts": (
        f"<think>\none\n</think>\nHm.\n<reasoning>\n{fenced(OLD)}</reasoning>\n{fenced(GOOD)}",
        GOOD,
    ),
    "thought in upper prose": (f"<analysis>memory bound</analysis>\n{fenced(GOOD)}", GOOD),
    "info string with a space": (fenced(GOOD, " python"), GOOD),
    "info string with a file name": (fenced(GOOD, "python:kernel.py"), GOOD),
    "tag py": (fenced(GOOD, "py"), GOOD),
    "tag of no language": (fenced(GOOD, "kernel"), GOOD),
    "old Mac newlines": (fenced(GOOD).replace("\n", "\r"), GOOD),
    "blanks after the closing fence": (fenced(GOOD).rstrip() + "   \n", GOOD),
    "closing fence is longer": (f"{FENCE}python\n{GOOD}`````\n", GOOD),
    "indented by two": ("  " + fenced(GOOD).replace("\n", "\n  "), GOOD),
    "in a bullet list": ("- here:\n\n  " + fenced(GOOD).replace("\n", "\n  "), GOOD),
    "inline code around": (f"Use `ModelNew` and ``x``.\n\n{fenced(GOOD)}\n`done`", GOOD),
    "a heading and a table": (f"# Answer\n\n| a | b |\n|---|---|\n\n{fenced(GOOD)}", GOOD),
    "JSON beside the file": (fenced('{"techniques": []}\n', "json") + fenced(GOOD), GOOD),
    "kernel and file apart": (fenced("void f() {}\n", "cpp") + fenced(GOOD), GOOD),
    "the operator quoted first": (fenced("class Model:\n    pass\n") + fenced(GOOD), GOOD),
    "tilde block that holds back-ticks": (
        fenced(f'"""\n{FENCE}\n"""\n{GOOD}', fence="~~~"),
        f'"""\n{FENCE}\n"""\n{GOOD}',
    ),
    "assigned, not a class": (
        fenced("import torch\nModelNew = torch.nn.ReLU\n"),
        "import torch\nModelNew = torch.nn.ReLU\n",
    ),
    "words of other scripts": (
        f"Voil\u00e0 \u2014 \u5185\u6838\uff1a\n{fenced(MICRO)}",
        MICRO,
    ),
    "many blank lines": ("\n" * 200 + fenced(GOOD) + "\n" * 200, GOOD),
    "a template's end token": (fenced(GOOD) + "<|im_end|>", GOOD),
}


HALF = f"{FENCE}python\nclass ModelNew:\n    def forward(self"
REFUSED = {
    "None": (None, "length", ParseStatus.NULL),
    "empty": (" \n", "stop", ParseStatus.EMPTY),
    "filtered": ("Sorry", "content_filter", ParseStatus.REFUSED),
    "refusal": ("I'm sorry, but I can't help with that.", "stop", ParseStatus.REFUSED),
    "truncated": (HALF, "length", ParseStatus.TRUNCATED),
    "truncated, although it says stop": (HALF, "stop", ParseStatus.TRUNCATED),
    "whole by chance, cut by length": (f"{FENCE}python\n{GOOD}", "length", ParseStatus.TRUNCATED),
    "unclosed think": (f"<think>\n{fenced(GOOD)}", "stop", ParseStatus.UNCLOSED_THOUGHT),
    "prose": ("Use a tiled kernel with class ModelNew.", "stop", ParseStatus.NO_CODE),
    "only a kernel": (fenced("void f() {}\n", "cpp"), "stop", ParseStatus.NO_MODEL),
    "only a diff": (fenced(GOOD, "diff"), "stop", ParseStatus.NO_MODEL),
    "the second kernel was cut": (fenced(OLD) + HALF, "length", ParseStatus.TRUNCATED),
    "a book": ("x" * 600_000, "stop", ParseStatus.TOO_LARGE),
    "deep operators": ("-" * 100_000 + "1", "stop", ParseStatus.NO_CODE),
    "two kernels": (fenced(OLD) + fenced(GOOD), "stop", ParseStatus.AMBIGUOUS),
    "rest unchanged": (fenced(GOOD + "# ... rest unchanged ...\n"), "stop", ParseStatus.ELIDED),
    "hollow forward": (fenced(GOOD.replace("return x", "...")), "stop", ParseStatus.ELIDED),
    "TODO body": (fenced(GOOD.replace("return x", "pass  # TODO")), "stop", ParseStatus.ELIDED),
    "same as before in C++": (
        fenced(f'K = r"""\nvoid f() {{\n  // same as before\n}}\n"""\n{GOOD}'),
        "stop",
        ParseStatus.ELIDED,
    ),
    "too large": (fenced(GOOD + "x = 1\n" * 11000), "stop", ParseStatus.TOO_LARGE),
    "NUL": (fenced(GOOD + "\0"), "stop", ParseStatus.INVALID_TEXT),
    "broken UTF-8": (fenced(GOOD + "# \udc80\n"), "stop", ParseStatus.INVALID_TEXT),
    "deep nesting": ("(" * 50_000, "stop", ParseStatus.NO_CODE),
    "a fence in the prose, never code": (
        f"Wrap it in {FENCE}python and {FENCE} please; class ModelNew",
        "stop",
        ParseStatus.NO_CODE,
    ),
    "only the operator": (fenced("class Model:\n    pass\n"), "stop", ParseStatus.NO_MODEL),
    "only usage": (fenced("pip install x\n", "bash"), "stop", ParseStatus.NO_MODEL),
    "an empty block": (fenced(""), "stop", ParseStatus.NO_MODEL),
    "a plan": ("1. Load tiles.\n2. Multiply.\n3. Store.", "stop", ParseStatus.NO_CODE),
    "prose, cut": ("The kernel should first", "length", ParseStatus.TRUNCATED),
    "thought alone": ("<think>tile by 64</think>", "stop", ParseStatus.NO_CODE),
    "code in thought alone": (f"<think>{fenced(GOOD)}</think>", "stop", ParseStatus.NO_CODE),
    "thought that was cut": ("<reasoning>\nwe need", "length", ParseStatus.UNCLOSED_THOUGHT),
    "apology": ("I apologize, but I cannot write this.", "stop", ParseStatus.REFUSED),
    "your code here": (
        fenced(GOOD.replace("return x", "return x  # ...\n        # your code here")),
        "stop",
        ParseStatus.ELIDED,
    ),
    "not implemented": (
        fenced(GOOD.replace("return x", "raise NotImplementedError")),
        "stop",
        ParseStatus.ELIDED,
    ),
    "empty blocks without end": (f"{FENCE}\n{FENCE}\n" * 50, "stop", ParseStatus.NO_MODEL),
    "a block within a block that never ends": (
        f"{FENCE}python\nclass ModelNew:\n - here:\n\n  {fenced(GOOD)}",
        "stop",
        ParseStatus.AMBIGUOUS,
    ),
    "tool call": ('{"name": "write_file", "arguments": {}}', "stop", ParseStatus.NO_CODE),
    "HTML": ("<html><body>502 Bad Gateway</body></html>", "stop", ParseStatus.NO_CODE),
}
