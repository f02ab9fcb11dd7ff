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
        size_bytes=lambda: 10**9 + 10**7 * len(ran),
        able=lambda: frozenset({"cpu time", *(["chip compile"] if ran else [])}),
        apt_allowed=root,
    )
    return made, ran


def test_only_what_is_missing_is_installed_and_its_cost_told() -> None:
    """What is here costs nothing; the rest says its megabytes."""
    machine, ran = host(here=("one",))
    done = install(PART, machine)
    assert (done.state, round(done.megabytes)) == ("installed", 20)
    assert [(c[-1], "one>=1" in c) for c in ran] == [("three", False), ("two", False)]
    assert str(done) == "some     installed 20 MB, 0 s (a chip)\n         now yes: chip compile"
    machine, ran = host(here=("one", "two", "three"))
    assert install(PART, machine).state == "here"
    assert not ran


@pytest.mark.parametrize(
    ("options", "state", "why"),
    [
        ({"root": False}, "skipped", "needs root: apt-get install three"),
        ({"fails": "three"}, "failed", "apt-get install: E: no such package"),
        ({"fails": "two"}, "failed", "pip install: E: no such package"),
    ],
)
def test_what_cannot_be_had_has_its_reason(
    options: dict[str, object], state: str, why: str
) -> None:
    """Neither a missing right nor a missing package ends the others, or passes for installed."""
    machine, _ = host(**options)  # type: ignore[arg-type]
    done = install(PART, machine)
    assert (done.state, done.why) == (state, why)


def test_failure_ends_with_what_to_say_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A script sees that a part is missing, a person what to type; the others are installed."""
    machine, _ = host(fails="bubblewrap")
    assert toolchains.main(["sandbox", "cpu", "metal"], machine) == 1
    said = capsys.readouterr()
    assert "sandbox  failed: apt-get install: E: no such package (walls" in said.out
    assert "cpu      installed" in said.out
    assert said.err.endswith('not installed; again: make toolchains PARTS="sandbox"\n')


def test_second_time_asks_no_registry() -> None:
    """Where all is there nothing is fetched, not even the list of packages."""
    machine, ran = host(here=("bubblewrap", "g++"))
    assert toolchains.main(["sandbox", "cpu"], machine) == 0
    assert not ran


def test_size_is_that_of_the_packages() -> None:
    """What others write to the disk meanwhile is no cost of a part."""
    assert toolchains.this_host().size_bytes() > 10**8  # torch is there


def test_every_part_names_packages_or_why_there_are_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A part without either would install nothing and say `here`."""
    assert all(p.gives and (p.pip or p.apt or p.never) for p in PARTS)
    assert all(bool(p.about_mb) != bool(p.never) for p in PARTS)
    assert toolchains.main(["nonsense"]) == 2
    assert "unknown part 'nonsense'; known: sandbox, cpu" in capsys.readouterr().err
