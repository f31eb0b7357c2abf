"""The filesystem."""

import pickle

import fsspec
import pytest

import areo

LARGE = bytes(range(256)) * 80_000  # 20 MB: more than three blocks of a file


@pytest.fixture
def fs(cluster):
    return fsspec.filesystem("areo", cluster=cluster.file)


@pytest.fixture
def tree(fs, domain: areo.Domain):
    """Objects below a folder."""
    for key in ("a", "b/c", "b/d/e", "b/d/f"):
        domain.put(f"tree/{key}", key.encode())
    yield "default/tree"
    fs.rm("default/tree", recursive=True)
    assert not fs.exists("default/tree")


def test_the_protocol_is_registered(fs) -> None:
    assert type(fs) is fsspec.get_filesystem_class("areo")
    assert fsspec.core.url_to_fs("areo://default/a/b", **fs.storage_options)[1] == "default/a/b"


def test_folders(fs, tree: str) -> None:
    assert {"default", "counters"} <= set(fs.ls("", detail=False))
    assert fs.ls(tree, detail=False) == [f"{tree}/a", f"{tree}/b"]
    assert fs.ls(f"areo://{tree}/b/", detail=False) == [f"{tree}/b/c", f"{tree}/b/d"]
    assert [each["type"] for each in fs.ls(tree)] == ["file", "directory"]
    assert fs.ls(f"{tree}/a", detail=False) == [f"{tree}/a"]
    with pytest.raises(FileNotFoundError):
        fs.ls(f"{tree}/none")
    with pytest.raises(FileNotFoundError):
        fs.ls("nowhere")
    assert fs.find(tree) == [f"{tree}/a", f"{tree}/b/c", f"{tree}/b/d/e", f"{tree}/b/d/f"]
    assert fs.find(f"{tree}/a") == [f"{tree}/a"]
    assert fs.find(tree, maxdepth=1) == [f"{tree}/a"]
    assert fs.find(tree, detail=True)[f"{tree}/a"]["size"] == 1
    assert fs.glob(f"{tree}/b/*") == [f"{tree}/b/c", f"{tree}/b/d"]
    assert fs.glob(f"{tree}/**/e") == [f"{tree}/b/d/e"]
    assert fs.isdir(f"{tree}/b") and not fs.isfile(f"{tree}/b") and fs.isdir("default") and fs.isdir("")
    assert fs.isfile(f"{tree}/a") and not fs.isdir(f"{tree}/a")
    assert fs.exists(tree) and not fs.exists(f"{tree}/none") and not fs.exists("nowhere/a")
    assert fs.du(tree) == 14


def test_info(fs, domain: areo.Domain) -> None:
    version = domain.put("info/a", b"hello", content_type="text/plain")
    info = fs.info("areo://default/info/a")
    assert (info["name"], info["size"], info["type"]) == ("default/info/a", 5, "file")
    assert (info["version"], info["content_type"]) == (version, "text/plain")
    assert fs.modified("default/info/a") == domain.stat("info/a").metadata.written_at
    with pytest.raises(FileNotFoundError):
        fs.info("default/info/b")


@pytest.mark.parametrize("value", [b"", b"abc", LARGE])
def test_files(fs, value: bytes) -> None:
    path = "areo://default/files/a"
    with fs.open(path, "wb") as file:
        for i in range(0, len(value), 1_000_000):
            file.write(value[i : i + 1_000_000])
    assert fs.cat(path) == value and fs.size(path) == len(value)
    with fs.open(path) as file:
        assert file.read() == value
        file.seek(max(0, len(value) - 3))
        assert file.read() == value[-3:]
    assert fs.cat_file(path, 1, 3) == value[1:3]
    assert fs.tail(path, 2) == value[-2:]


def test_text(fs) -> None:
    with fs.open("default/files/text", "w") as file:
        file.write("eins\nzwei\n")
    with fs.open("default/files/text", "r") as file:
        assert file.read() == "eins\nzwei\n"


def test_local_files_go_there_and_back(fs, tmp_path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "x").write_bytes(LARGE)
    (tmp_path / "from" / "y").write_bytes(b"y")
    fs.put(str(tmp_path / "from"), "default/copied", recursive=True)
    assert fs.find("default/copied") == ["default/copied/x", "default/copied/y"]
    fs.get("default/copied", str(tmp_path / "back"), recursive=True)
    assert (tmp_path / "back" / "x").read_bytes() == LARGE and (tmp_path / "back" / "y").read_bytes() == b"y"
    fs.cp("default/copied/y", "default/copied/z")
    fs.mv("default/copied/z", "default/moved")
    assert fs.cat("default/moved") == b"y" and not fs.exists("default/copied/z")
    fs.rm("default/copied/x")
    assert fs.cat(fs.find("default/copied")) == {"default/copied/y": b"y"}


def test_what_cannot_be_is_refused(fs, tree: str) -> None:
    for mode in ("ab", "xb", "r+b"):
        with pytest.raises(NotImplementedError, match="written anew"):
            fs.open(f"{tree}/a", mode)
    with pytest.raises(FileNotFoundError):
        fs.open(f"{tree}/none")
    with pytest.raises(FileNotFoundError):
        fs.cat(f"{tree}/none")
    with pytest.raises(FileNotFoundError):
        fs.rm(f"{tree}/none")
    with pytest.raises(IsADirectoryError, match="recursive"):
        fs.rm(f"{tree}/b")
    with pytest.raises(IsADirectoryError, match="domain"):
        fs.rm("default", recursive=True)
    with pytest.raises(IsADirectoryError):
        fs.open("default", "wb")
    assert fs.cat(f"{tree}/b/c") == b"b/c"
    fs.pipe_file("default/create/a", b"1", mode="create")
    with pytest.raises(FileExistsError):
        fs.pipe_file("default/create/a", b"2", mode="create")
    fs.pipe_file("default/create/a", b"3")
    fs.rm("default/create/a")


def test_a_file_that_is_left_writes_nothing(fs) -> None:
    with pytest.raises(ZeroDivisionError):
        with fs.open("default/left/a", "wb") as file:
            file.write(LARGE)
            raise ZeroDivisionError
    file = fs.open("default/left/a", "wb")
    file.write(LARGE)
    del file
    assert not fs.exists("default/left/a")
    with fs.transaction:
        with fs.open("default/left/b", "wb") as file:
            file.write(LARGE)
        assert not fs.exists("default/left/b")
    assert fs.cat("default/left/b") == LARGE
    with pytest.raises(ZeroDivisionError), fs.transaction:
        with fs.open("default/left/c", "wb") as file:
            file.write(b"x")
        raise ZeroDivisionError
    assert not fs.exists("default/left/c")


def test_a_file_that_is_written_over_is_no_mix(fs, domain: areo.Domain) -> None:
    for after in (LARGE[::-1], b"short"):
        domain.put("mixed/a", LARGE)
        with fs.open("default/mixed/a", block_size=1000) as file:
            assert file.read(10) == LARGE[:10]
            domain.put("mixed/a", after)
            file.seek(10_000_000)
            with pytest.raises(areo.VersionConflict, match="open it again"):
                file.read(10)


def test_without_a_quorum_nothing_is_taken_for_missing(fs, cluster) -> None:
    other = fsspec.filesystem("areo", cluster=cluster.file, timeout=1)
    other.pipe_file("default/frozen/fs", b"x")
    cluster.freeze(4)
    try:
        for ask in (other.exists, other.isfile, other.isdir, other.ls):
            with pytest.raises(areo.Unavailable):
                ask("default/frozen/fs")
    finally:
        cluster.thaw()


def test_a_filesystem_is_pickled(fs) -> None:
    fs.pipe_file("default/pickled", b"x")
    assert pickle.loads(pickle.dumps(fs)).cat("default/pickled") == b"x"
