"""The filesystem."""

import gc
import os
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
    with fs.open("default/files/text", "wt", encoding="utf-16", newline="\r\n") as file:
        file.write("ä\n")
    assert fs.cat("default/files/text").decode("utf-16") == "ä\r\n"


def test_a_text_that_is_left_writes_nothing(fs) -> None:
    for text in ("half", "half" * 5_000_000):
        with pytest.raises(ZeroDivisionError):
            with fs.open("default/left/text", "w") as file:
                file.write(text)
                raise ZeroDivisionError
        assert file.closed
        file = fs.open("default/left/text", "w")
        file.write(text)
        del file
        gc.collect()
        assert not fs.exists("default/left/text")


def test_a_compression(fs, cluster) -> None:
    with pytest.raises(NotImplementedError, match="fsspec.open"):
        fs.open("default/files/packed", "wb", compression="gzip")
    with fsspec.open("areo://default/files/packed", "wt", compression="gzip", cluster=cluster.file) as file:
        file.write("text")
    with fs.open("default/files/packed", "rt", compression="gzip") as file:
        assert file.read() == "text"


def test_keys_without_a_path(fs, domain: areo.Domain) -> None:
    for key in ("marked/", "marked/a", "marked/b/", "marked//c", "marked/d//"):
        domain.put(key, b"x")
    assert fs.ls("default/marked", detail=False) == ["default/marked/a", "default/marked/b", "default/marked/d"]
    assert fs.ls("default/marked/b") == [] and fs.isdir("default/marked/b")
    assert fs.find("default/marked") == ["default/marked//c", "default/marked/a"]
    assert fs.find("default/marked", maxdepth=2) == ["default/marked/a"]
    assert fs.find("default/marked/b") == []
    fs.rm("default/marked", recursive=True)
    assert list(domain.list("marked")) == [] and not fs.exists("default/marked")


def test_a_recursive_removal(fs, domain: areo.Domain) -> None:
    keys = ["removal", "removal/a", "removal/b/c", "removals"]
    for key in keys:
        domain.put(key, b"x")
    fs.rm("default/removal", recursive=True, maxdepth=1)
    assert [entry.key for entry in domain.list("removal")] == ["removal/b/c", "removals"]
    domain.put("removal", b"x")
    fs.rm("default/removal", recursive=True)
    assert [entry.key for entry in domain.list("removal")] == ["removals"]
    with pytest.raises(FileNotFoundError):
        fs.rm("default/removal", recursive=True)
    # A folder that empties while it is removed.
    domain.put("removal/a", b"x")
    fs.find = lambda path, **_: ["default/removal/a", "default/removal/none"]
    try:
        fs.rm("default/removal", recursive=True, maxdepth=1)
    finally:
        del fs.find
    assert not fs.exists("default/removal")


def test_a_folder_that_empties_is_not_in_itself(fs, domain: areo.Domain, monkeypatch) -> None:
    domain.put("emptied/a", b"x")
    monkeypatch.setattr(fs, "_ls", lambda *_: [])
    assert fs.ls("default/emptied") == []
    domain.delete("emptied/a")


def test_a_missing_path_has_no_files(fs) -> None:
    for path in ("default/none", "nowhere", "nowhere/none"):
        for options in ({}, {"maxdepth": 1}, {"withdirs": True}, {"maxdepth": 2, "detail": True}):
            assert not fs.find(path, **options), (path, options)


def test_a_file_asks_once(fs, domain: areo.Domain) -> None:
    domain.put("once/a", b"x")
    handle = fs.domain("default")
    before = handle.stats().rounds
    handle.stat("once/a")
    once = handle.stats().rounds - before
    assert fs.isfile("default/once/a")
    assert handle.stats().rounds - before == 2 * once > 0


def test_a_domain_that_was_removed_is_forgotten(fs, cluster) -> None:
    def remade() -> None:
        cluster.areo("domain", "create", "passing")
        fs.pipe_file("passing/a", b"x")
        cluster.areo("domain", "rm", "passing", "--yes")

    for use in (
        fs.info,
        fs.cat_file,
        fs.ls,
        fs.rm_file,
        fs.open,
        lambda path: fs.pipe_file(path, b"x"),
        lambda path: fs.ls("passing"),
        lambda path: fs.info("passing"),
        lambda path: fs.rm(path, recursive=True),
    ):
        remade()
        with pytest.raises(FileNotFoundError, match="passing"):
            use("passing/a")
        assert "passing" not in fs._domains
    remade()
    with pytest.raises(FileNotFoundError):
        with fs.open("passing/a", "wb") as file:
            file.write(b"x")
    remade()
    assert fs.find("passing") == []
    fs.domain("default")
    fs.invalidate_cache("default/a")
    assert "default" in fs._domains
    fs.invalidate_cache()
    assert not fs._domains


def test_a_fork_is_found_out_by_a_file(fs) -> None:
    fs.pipe_file("default/fork", LARGE)
    with fs.open("default/fork", block_size=1000) as file:
        assert file.read(1) == LARGE[:1]
        child = os.fork()
        if child == 0:
            status = 3
            try:
                file.seek(10_000_000)
                file.read(1)
            except areo.Invalid as error:
                status = 0 if error.kind == "forked" else 4
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0


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
    for mode in ("rb", "r"):
        with pytest.raises(IsADirectoryError, match="folder"):
            fs.open(f"{tree}/b", mode)
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
            with pytest.raises(areo.VersionConflict, match="open it again") as raised:
                file.read(10)
            assert (raised.value.domain, raised.value.key) == ("default", "mixed/a")


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
    pickled = pickle.dumps(fs)
    type(fs).clear_instance_cache()
    read = pickle.loads(pickled)
    assert read is not fs and read.cat("default/pickled") == b"x"
