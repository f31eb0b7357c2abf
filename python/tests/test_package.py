"""The package: its types, and the programs of its README."""

import re
import subprocess
import sys
from pathlib import Path

import areo

README = Path(__file__).parent.parent / "README.md"


def test_the_package_exports_its_names() -> None:
    public = {name for name in dir(areo) if not name.startswith("_")}
    assert set(areo.__all__) == public - {"errors", "aio", "fsspec"}


def programs() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_programs_of_the_readme_run(cluster, tmp_path) -> None:
    assert len(programs()) >= 4
    (tmp_path / "film.mp4").write_bytes(b"frame" * 1_000_000)
    environment = {"AREO_CLUSTER": cluster.file, "PYTHONWARNINGS": "error"}
    for program in programs():
        ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (0, ""), program


def test_the_programs_of_the_readme_are_typed(tmp_path) -> None:
    files = [tmp_path / f"program{number}.py" for number in range(len(programs()))]
    for file, program in zip(files, programs(), strict=True):
        file.write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", README.with_name("pyproject.toml"), "--cache-dir", tmp_path]
    ended = subprocess.run([*command, *files], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout


def test_the_docstrings_show_the_readmes_interface() -> None:
    assert "areo.connect()" in (areo.__doc__ or "") and "areo.connect()" in programs()[0]
