"""What a person says of the agents in a file: all of it is meant, or refused in one line."""

from pathlib import Path

import pytest

from agents.price import Price
from data.errors import MisuseError
from tasks.asked import Asked, compose
from tasks.crew import Crew, read_crew

FILE = """
fallbacks = ["anthropic/claude-sonnet-4-5"]
effort = "high"
max_tokens = 4096
price = { input = 1.25, cached = 0.125, output = 10.0 }

[guardrails]
required = ['kernels[(]']
banned = ['cublas']

[guardrails.append]
all = "Small blocks."

[guardrails.replace]
create = "Be short."
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "crew.toml"
    path.write_text(text)
    return path


def test_a_file_completes_the_command_line(tmp_path: Path) -> None:
    """Fall-backs follow the model; prices are by the million there and by the token here."""
    file = read_crew(written(tmp_path, FILE))
    crew = file.complete(Crew(kind="llm", models=("openai/gpt-5",), calls=7))
    assert crew.models == ("openai/gpt-5", "anthropic/claude-sonnet-4-5")
    assert (crew.effort, crew.max_tokens, crew.calls) == ("high", 4096, 7)
    assert crew.price == Price(input=1.25e-6, cached=0.125e-6, output=10e-6)
    rails = file.rails()
    assert (rails.required, rails.banned) == (("kernels[(]",), ("cublas",))
    assert (rails.append, rails.replace) == ({"all": "Small blocks."}, {"create": "Be short."})


def test_the_file_is_part_of_the_identity(tmp_path: Path) -> None:
    """Other guardrails or limits are another run."""
    (tmp_path / "o.py").write_text(
        "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
    )
    plain = Asked(operators=(str(tmp_path / "o.py"),), runs=str(tmp_path / "runs"))
    path = str(written(tmp_path, FILE))
    asks = (
        plain,
        Asked(operators=plain.operators, runs=plain.runs, crew=path),
        Asked(operators=plain.operators, runs=plain.runs, calls=3),
        Asked(operators=plain.operators, runs=plain.runs, compact=True),
    )
    assert len({compose(asked).run_id for asked in asks}) == len(asks)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("efort = 'high'", "efort"),
        ("effort = 'heroic'", "effort"),
        ("price = { input = -1, output = 2 }", "price.input"),
        ("[guardrails]\nbanned = ['(']", "no regular expression"),
        ("[guardrails.append]\nmend = 'x'", "guardrails.append.mend"),
        ("[commands]\njudge = 'x'", "commands.judge"),
        ("fallbacks = [", "not TOML"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """The message names the file and the place."""
    with pytest.raises(MisuseError, match=said) as caught:
        read_crew(written(tmp_path, text))
    assert "crew.toml" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """One line with the reason."""
    with pytest.raises(MisuseError, match="cannot be read: No such file"):
        read_crew(tmp_path / "none.toml")
