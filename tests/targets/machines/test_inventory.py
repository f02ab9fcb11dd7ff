from pathlib import Path

import pytest

from data.errors import MisuseError
from data.records import Device
from targets import TARGETS
from targets.cards import sheets
from targets.machines import inventory

GOOD = """
[[device]]
name = "xeon"
target = "cpu"
arch = "x86_64-avx512f"
index = 1

[[device]]
name = "b2000"
target = "nobody"
arch = "sm_200"
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "devices.toml"
    path.write_text(text)
    return path


def test_cpu_is_always_there(tmp_path: Path) -> None:
    """Without a file, or with an empty one, this machine's CPU is known."""
    assert set(inventory.devices(_file(tmp_path, ""))) == {*inventory.PROCESSOR, *sheets()}
    cpu = inventory.device("cpu")
    assert (cpu.target, cpu.machine, cpu.execution) == ("cpu", "local", "hardware")


def test_devices_of_the_file_are_added(tmp_path: Path) -> None:
    """Entries become devices, the vendor comes from the target."""
    known = inventory.devices(_file(tmp_path, GOOD))
    assert known["xeon"] == Device(
        name="xeon", target="cpu", vendor="cpu", arch="x86_64-avx512f", index=1
    )
    assert known["b2000"].vendor == "nobody"


def test_unknown_device_lists_the_known_ones(tmp_path: Path) -> None:
    """The message says what there is and where it was looked up."""
    with pytest.raises(
        MisuseError,
        match=r"^unknown device 'b3000'; known: .*b2000, .*cpu, .*xeon, xeon-opencl, xeon-sycl \(",
    ):
        inventory.device("b3000", _file(tmp_path, GOOD))
    with pytest.raises(MisuseError, match=r"^unknown device 'b2000'; known: .*\(devices\.toml\)$"):
        inventory.device("b2000")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[device]\n", "is not TOML"),
        ("[[device]]\nname = 'x'\ntarget = 'cpu'\n", r"device\.0\.arch: .*required"),
        ("[[device]]\nname = 'x'\ntarget = 'cpu'\narch = ''\nindex = -1\n", r"index: .*got -1"),
        ("[[device]]\nname = 'x'\ntarget = 'cpu'\narch = ''\nspeed = 9\n", r"speed: .*got 9"),
        ("[[device]]\nname = '../x'\ntarget = 'cpu'\narch = ''\n", r"name: .*got '\.\./x'"),
        ("[[device]]\nname = 'cpu'\ntarget = 'cpu'\narch = ''\n", "'cpu' is there twice"),
        ("[device]\nname = 'x'\n", "device: .*tuple"),
    ],
)
def test_bad_file_says_where_and_what(tmp_path: Path, text: str, words: str) -> None:
    """A file that cannot be meant ends in one line that names the place and the value."""
    with pytest.raises(MisuseError, match=words) as caught:
        inventory.devices(_file(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert "devices.toml" in str(caught.value)


def test_named_file_must_exist(tmp_path: Path) -> None:
    """A file that somebody asked for is not silently left out."""
    with pytest.raises(MisuseError, match="cannot be read"):
        inventory.devices(tmp_path / "missing.toml")


def test_device_without_a_target_or_machine_can_do_nothing(tmp_path: Path) -> None:
    """Unknown targets and machines are listed with the reason, not left out."""
    known = inventory.devices(_file(tmp_path, GOOD + "machine = 'lab'\n"))
    strange = inventory.capabilities(known["b2000"])
    assert (strange.compile, strange.execute, strange.time) == (False, False, False)
    assert strange.why == f"no target 'nobody'; known: {', '.join(TARGETS)}"
    away = Device(name="away", target="cpu", vendor="cpu", arch="any", machine="lab")
    assert inventory.capabilities(away).why == "no machine 'lab'; known: local"


def test_capabilities_of_the_cpu_agree_with_its_reason() -> None:
    """All three are there exactly when nothing is said to be missing."""
    report = inventory.capabilities(inventory.device("cpu"))
    assert (report.compile and report.execute and report.time) == (report.why == "")


POOL = """
[[machine]]
name = "lab1"
kind = "ssh"
host = "me@lab1:2222"

[[machine]]
name = "lab2"
kind = "ssh"
host = "lab2"
python = "/opt/venv/bin/python"

[[device]]
name = "cards"
target = "cpu"
arch = "any"
machines = ["lab1", "lab2"]
indices = [0, 1]
"""


def test_a_device_may_be_in_several_places(tmp_path: Path) -> None:
    """Each machine and index is a place; the first stands for all in the run's identity."""
    file = _file(tmp_path, POOL)
    device = inventory.device("cards", file)
    assert (device.machine, device.index) == ("lab1", 0)
    found = [(d.machine, d.index) for d in inventory.places(device, file)]
    assert found == [("lab1", 0), ("lab1", 1), ("lab2", 0), ("lab2", 1)]
    assert inventory.destinations(file)["lab2"].python == "/opt/venv/bin/python"
    cpu = inventory.device("cpu", file)
    assert inventory.places(cpu, file) == (cpu,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[machine]]\nname = 'a'\nkind = 'ssh'\n", r"machine\.0\.ssh\.host: .*required"),
        ("[[machine]]\nname = 'a'\nkind = 'ssh'\nhost = '-oProxy'\n", r"host: .*got '-oProxy'"),
        ("[[machine]]\nname = 'a'\nkind = 'telnet'\nhost = 'b'\n", r"machine\.0: .*'ssh'"),
        ("[[machine]]\nname = 'a'\nhost = 'b'\n", r"machine\.0: .*kind"),
        (2 * "[[machine]]\nname = 'a'\nkind = 'ssh'\nhost = 'b'\n", "'a' is there twice"),
        ("[[machine]]\nname = 'local'\nkind = 'ssh'\nhost = 'b'\n", "'local' is there twice"),
    ],
)
def test_bad_machine_says_where_and_what(tmp_path: Path, text: str, words: str) -> None:
    """A machine that cannot be meant ends in one line that names the place and the value."""
    with pytest.raises(MisuseError, match=words) as caught:
        inventory.destinations(_file(tmp_path, text))
    assert "\n" not in str(caught.value)


EC2 = """
[[machine]]
name = "cloud"
kind = "ec2"
region = "eu-central-1"
usd_most = 20.0
"""


def test_machines_of_every_kind_are_read(tmp_path: Path) -> None:
    """A spool by its folder, an instance by its template or its tag."""
    file = tmp_path / "devices.toml"
    spool = '[[machine]]\nname = "bench"\nkind = "spool"\nfolder = "there"\n'
    file.write_text(f"{spool}{EC2}tag = 'role=gpu'\nhours = 3.0\n")
    assert list(inventory.spools(file)) == ["bench"]
    cloud = inventory.clouds(file)["cloud"]
    assert (cloud.wanted.after, cloud.wanted.hours) == ("stop", 3.0)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "either template or tag"),
        ("template = 't'\ntag = 'a=b'", "either template or tag"),
        ("tag = 'a=b'\nspot = true", "spot needs a template"),
        ("tag = 'a'", "tag"),
        ("template = 't'\nhours = 99.0", "hours"),
        ("template = 't'\nprice = 1.0", "price"),
    ],
)
def test_an_instance_that_cannot_be_meant_is_one_line(
    tmp_path: Path, lines: str, said: str
) -> None:
    """File, place and reason, before anything is asked of the cloud."""
    file = tmp_path / "devices.toml"
    file.write_text(EC2 + lines)
    with pytest.raises(MisuseError, match=said) as caught:
        inventory.clouds(file)
    assert "\n" not in str(caught.value)


def test_without_a_compiler_the_emulator_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads that a device cannot execute reads what would change that."""
    monkeypatch.setenv("PATH", "/nonexistent")
    report = inventory.capabilities(inventory.device("m4-max"))
    assert not report.execute
    assert report.why.endswith("the emulator needs g++: make toolchains PARTS=cpu")
