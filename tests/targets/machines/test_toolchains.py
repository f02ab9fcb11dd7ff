"""What is installed, what it costs, and what is skipped with which reason."""

from collections.abc import Sequence

import pytest

from targets.machines import toolchains
from targets.machines.toolchains import PARTS, Host, Part, install

PART = Part(name="some", gives="a chip", pip=("one>=1", "two"), apt=("three",))


def host(
    *, here: Sequence[str] = (), root: bool = True, fails: str = ""
) -> tuple[Host, list[tuple[str, ...]]]:
    """A machine on which nothing is really installed, and the commands that it was given."""
    ran: list[tuple[str, ...]] = []

    def run(command: Sequence[str]) -> tuple[int, str]:
        ran.append(tuple(command))
        return (1, "E: no such package") if fails and fails in command else (0, "")

    made = Host(
        run=run,
        has_pip=here.__contains__,
        has_apt=here.__contains__,
        free_bytes=lambda: 10**9 - 10**7 * len(ran),
        apt_allowed=root,
    )
    return made, ran


def test_only_what_is_missing_is_installed_and_its_cost_told() -> None:
    """What is here costs nothing; the rest says its megabytes."""
    machine, ran = host(here=("one",))
    done = install(PART, machine)
    assert (done.state, round(done.megabytes)) == ("installed", 20)
    assert [(c[-1], "one>=1" in c) for c in ran] == [("three", False), ("two", False)]
    assert str(done).startswith("some     installed 20 MB, 0 s (a chip)")
    machine, ran = host(here=("one", "two", "three"))
    assert install(PART, machine).state == "here"
    assert not ran


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"root": False}, "needs root and apt-get for three"),
        ({"fails": "three"}, "apt-get install: E: no such package"),
    ],
)
def test_what_cannot_be_had_is_skipped_with_the_reason(
    options: dict[str, object], why: str
) -> None:
    """Neither a missing right nor a missing package ends the others."""
    machine, _ = host(**options)  # type: ignore[arg-type]
    done = install(PART, machine)
    assert (done.state, done.why) == ("skipped", why)


def test_every_part_names_packages_or_why_there_are_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A part without either would install nothing and say `here`."""
    assert all(p.gives and (p.pip or p.apt or p.never) for p in PARTS)
    assert toolchains.main(["nonsense"]) == 2
    assert "unknown part 'nonsense'; known: sandbox, cpu" in capsys.readouterr().err
