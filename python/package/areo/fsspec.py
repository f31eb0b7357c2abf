"""A filesystem for fsspec: `areo://domain/key`. A folder is what keys have in common up to a `/`; it exists while there is a key in it.

```
import fsspec

fs = fsspec.filesystem("areo")
with fs.open("default/table/part-0", "wb") as file:
    file.write(b"...")
```

`fs.open` writes nothing if its `with` block raises. `fsspec.open` closes the file and does not tell it about the exception: the part that was written becomes
the object. A key that ends with `/` has no path: listings leave it out, and `rm(recursive=True)` of the folder removes it.
"""

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from areo import _sync
from areo._connect import TIMEOUT
from areo._model import Entry, Version
from areo.errors import Invalid, NotFound, VersionConflict

__all__ = ["AreoFile", "AreoFileSystem"]


class AreoFileSystem(AbstractFileSystem):
    """The domains of a cluster as folders. Options are those of `areo.connect`; each instance has a client of its own."""

    protocol = "areo"
    root_marker = ""

    def __init__(self, cluster: Any = None, key: str | None = None, timeout: float = TIMEOUT, **options: Any) -> None:
        super().__init__(cluster=cluster, key=key, timeout=timeout, **options)
        self.client = _sync.connect(cluster, key=key, timeout=timeout)
        self._domains: dict[str, _sync.Domain] = {}

    def domain(self, name: str) -> _sync.Domain:
        """The domain of this name, which is looked up once."""
        if name not in self._domains:
            with self._missing_files():
                self._domains[name] = self.client.domain(name)
        return self._domains[name]

    @contextmanager
    def _missing_files(self) -> Iterator[None]:
        """Raises `NotFound` as `FileNotFoundError`, and forgets a domain that is gone."""
        try:
            yield
        except NotFound as error:
            if error.domain is not None and error.key is None:
                self._domains.pop(error.domain, None)
            raise FileNotFoundError(str(error)) from error

    def invalidate_cache(self, path: str | None = None) -> None:
        """Without a path: forgets the domains that were looked up. Nothing else is cached."""
        if path is None:
            self._domains.clear()
        super().invalidate_cache(path)

    def _place(self, path: str) -> tuple[str, str]:
        """The domain's name and the key. Either may be empty."""
        name, _, key = self._strip_protocol(path).lstrip("/").partition("/")
        return name, key

    def _object(self, path: str) -> tuple[_sync.Domain, str]:
        """The domain and the key of an object."""
        name, key = self._place(path)
        if not key:
            raise IsADirectoryError(f"'{path}' is no object: objects are named areo://DOMAIN/KEY")
        return self.domain(name), key

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name, key = self._place(path)
        if not name:
            return _folder("")
        if not key:
            # The domain may be gone: it is looked up anew.
            self._domains.pop(name, None)
            self.domain(name)
            return _folder(name)
        with self._missing_files():
            domain = self.domain(name)
            try:
                found = domain.stat(key)
            except NotFound as error:
                if error.key is None or not _has_any(domain, f"{key}/"):
                    raise
                return _folder(f"{name}/{key}")
        kept = found.metadata
        return _file(name, key, found.version, found.length, kept.written_at_ms) | {"content_type": kept.content_type}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        name, key = self._place(path)
        if not name:
            listed = [_folder(domain) for domain in self.client.domains()]
        else:
            listed = self._ls(self.domain(name), key)
            if key and not listed:
                # A file, a folder without a path in it, or nothing.
                found = self.info(path)
                listed = [found] if found["type"] == "file" else []
        return listed if detail else [each["name"] for each in listed]

    def _ls(self, domain: _sync.Domain, key: str) -> list[dict[str, Any]]:
        prefix = f"{key}/" if key else ""
        listed: list[dict[str, Any]] = []
        after: str | None = ""
        while after is not None:
            with self._missing_files():
                page = domain.list_page(prefix, after=after, delimiter="/")
            folders = [folder.removesuffix("/") for folder in page.prefixes]
            listed += [_folder(f"{domain.name}/{folder}") for folder in folders if _has_path(folder)]
            listed += [_listed(domain.name, entry) for entry in page.entries if _has_path(entry.key)]
            after = page.next
        return sorted(listed, key=lambda each: str(each["name"]))

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **options: Any
    ) -> Any:
        name, key = self._place(path)
        if maxdepth is not None or withdirs or not name:
            return super().find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail, **options)
        found: dict[str, dict[str, Any]] = {}
        # As the base class: a missing path has no files.
        with suppress(FileNotFoundError), self._missing_files():
            entries = self.domain(name).list(f"{key}/" if key else "")
            found = {each["name"]: each for each in (_listed(name, entry) for entry in entries if _has_path(entry.key))}
        if not found and key and (file := self._file_info(path)):
            found = {f"{name}/{key}": file}
        return found if detail else list(found)

    def modified(self, path: str) -> datetime:
        written_at_ms = self.info(path).get("written_at_ms")
        if written_at_ms is None:
            raise FileNotFoundError(f"'{path}' has no time of a write")
        return datetime.fromtimestamp(written_at_ms / 1000, UTC)

    def exists(self, path: str, **options: Any) -> bool:
        # Not as the base class, which takes a cluster without a quorum for a missing object.
        try:
            self.info(path, **options)
        except FileNotFoundError:
            return False
        return True

    def isfile(self, path: str) -> bool:
        return self._file_info(path) is not None

    def _file_info(self, path: str) -> dict[str, Any] | None:
        """The info of an object; `None`: there is a folder, or nothing."""
        with suppress(FileNotFoundError):
            found = self.info(path)
            return found if found["type"] == "file" else None
        return None

    def rm_file(self, path: str) -> None:
        domain, key = self._object(path)
        with self._missing_files():
            try:
                domain.delete(key)
            except NotFound as error:
                if self.isdir(path):
                    raise IsADirectoryError(f"'{path}' is a folder: recursive=True removes all objects in it") from error
                raise

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        paths = self.expand_path(path)
        for each in paths:
            if not self._place(each)[1]:
                raise IsADirectoryError(f"'{each}' is a domain: `areo domain rm` removes one")
        for each in paths:
            if not recursive or not self._rm_below(each, maxdepth) or self.isfile(each):
                self.rm_file(each)

    def _rm_below(self, path: str, maxdepth: int | None) -> bool:
        """Removes the objects below a path, by their keys: some have no path. Returns whether there were any."""
        domain, key = self._object(path)
        has_any = False
        with self._missing_files():
            if maxdepth is None:
                keys: Iterator[str] = (entry.key for entry in domain.list(f"{key}/"))
            else:
                keys = (self._place(found)[1] for found in self.find(path, maxdepth=maxdepth))
            for below in keys:
                has_any = True
                try:
                    domain.delete(below)
                except NotFound as error:
                    # Another client removed the object meanwhile.
                    if error.key is None:
                        raise
        return has_any

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        if start is not None or end is not None:
            content: bytes = super().cat_file(path, start=start, end=end, **options)
            return content
        domain, key = self._object(path)
        with self._missing_files():
            return domain.get(key).value

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **_: Any) -> None:
        """Writes an object. `mode="create"` is as strong as `if_absent` of `areo.Domain.put`: outside of conditional domains two concurrent writers may
        both succeed."""
        domain, key = self._object(path)
        with self._missing_files():
            try:
                domain.put(key, value, if_absent=mode == "create")
            except VersionConflict as error:
                raise FileExistsError(path) from error

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        if self.isdir(path1):
            return
        with self.open(path1, "rb") as source, self.open(path2, "wb") as target:
            shutil.copyfileobj(source, target, self.blocksize)

    def open(
        self, path: str, mode: str = "rb", block_size: Any = None, cache_options: Any = None, compression: Any = None, **options: Any
    ) -> Any:
        """Opens an object. What is written takes effect when the file is closed; if the `with` block of it raises, nothing is written."""
        if compression is not None and "r" not in mode:
            # A file of a compression does not close the file that it writes to.
            raise NotImplementedError("write with a compression by fsspec.open(url, mode, compression=...)")
        text = {}
        if "b" not in mode:
            mode = mode.replace("t", "") + "b"
            text = {name: options.pop(name, None) for name in ("encoding", "errors", "newline")}
        file = super().open(path, mode, block_size, cache_options, compression, **options)
        return _Text(file, **text) if text else file

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **options: Any) -> "AreoFile":
        if mode not in ("rb", "wb"):
            raise NotImplementedError(f"an object is opened as 'rb' or 'wb', not as '{mode}': it is written anew as a whole")
        self._object(path)
        return AreoFile(self, path, mode, block_size=block_size or "default", **options)


class AreoFile(AbstractBufferedFile):
    """An object as a file. What is written takes effect when the file is closed; if the `with` block of it raises, nothing is written."""

    closed: bool
    _writer: _sync.ObjectWriter | None = None

    def __init__(self, fs: AreoFileSystem, path: str, mode: str = "rb", **options: Any) -> None:
        super().__init__(fs, path, mode, **options)
        if mode == "rb" and self.details["type"] == "directory":
            raise IsADirectoryError(f"'{path}' is a folder")

    def _fetch_range(self, start: int, end: int) -> bytes:
        domain, key = self.fs._object(self.path)
        with self.fs._missing_files():
            try:
                stream = domain.stream(key, start, end)
            except Invalid as error:
                if error.kind != "invalid":
                    raise
                # The present object is shorter.
                raise self._written_over() from error
            if stream.version != self.details["version"]:
                stream.close()
                raise self._written_over()
            return b"".join(stream)

    def _written_over(self) -> VersionConflict:
        version = self.details["version"]
        conflict = VersionConflict(f"'{self.path}' was written over while it was read, and version {version} is gone: open it again")
        conflict.domain, conflict.key = self.fs._place(self.path)
        conflict.expected = version
        return conflict

    def _initiate_upload(self) -> None:
        domain, key = self.fs._object(self.path)
        self._writer = domain.open(key, "wb")

    def _upload_chunk(self, final: bool = False) -> bool:
        assert self._writer is not None, "an upload was begun"
        with self.fs._missing_files():
            self._writer.write(self.buffer.getvalue())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        if self._writer is not None:
            with self.fs._missing_files():
                self._writer.close()

    def discard(self) -> None:
        if self._writer is not None:
            self._writer.abort()

    def __exit__(self, raised: Any, *_: Any) -> None:
        if raised is not None and self.mode == "wb" and not self.closed:
            self.discard()
            self.closed = True
        self.close()

    def __del__(self) -> None:
        # Not `close`, as other files do: what was left is not whole.
        pass


class _Text(io.TextIOWrapper):
    """A file as text. The file is given the exception of the `with` block: one that was closed without it would write half an object."""

    def __exit__(self, raised: Any, *rest: Any) -> None:
        if raised is not None:
            buffer: Any = self.buffer
            buffer.__exit__(raised, *rest)
        super().__exit__(raised, *rest)

    def __del__(self) -> None:
        # As `AreoFile.__del__`.
        pass


def _has_path(key: str) -> bool:
    """A path does not end with a `/`, so a key that does has none."""
    return key != "" and not key.endswith("/")


def _has_any(domain: _sync.Domain, prefix: str) -> bool:
    after: str | None = ""
    while after is not None:
        page = domain.list_page(prefix, after=after, limit=1)
        if page.entries:
            return True
        after = page.next
    return False


def _folder(name: str) -> dict[str, Any]:
    return {"name": name, "size": 0, "type": "directory"}


def _file(domain: str, key: str, version: Version, length: int, written_at_ms: int | None) -> dict[str, Any]:
    return {
        "name": f"{domain}/{key}",
        "size": length,
        "type": "file",
        "version": version,
        "written_at_ms": written_at_ms,
    }


def _listed(domain: str, entry: Entry) -> dict[str, Any]:
    return _file(domain, entry.key, entry.version, entry.length, entry.written_at_ms)
