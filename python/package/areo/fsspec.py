"""A filesystem for fsspec: `areo://domain/key`. A folder is what keys have in common up to a `/`; it exists while there is a key in it.

```
import fsspec

with fsspec.open("areo://default/table/part-0", "wb") as file:
    file.write(b"...")
```
"""

import shutil
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
            try:
                self._domains[name] = self.client.domain(name)
            except NotFound as error:
                raise FileNotFoundError(str(error)) from error
        return self._domains[name]

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
        domain = self.domain(name)
        if not key:
            return _folder(name)
        try:
            found = domain.stat(key)
        except NotFound as error:
            if _has_any(domain, f"{key}/"):
                return _folder(f"{name}/{key}")
            raise FileNotFoundError(path) from error
        kept = found.metadata
        return _file(name, key, found.version, found.length, kept.written_at_ms) | {"content_type": kept.content_type}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        name, key = self._place(path)
        if not name:
            listed = [_folder(domain) for domain in self.client.domains()]
        else:
            listed = self._ls(self.domain(name), key)
            if key and not listed:
                # A file, or nothing.
                listed = [self.info(path)]
        return listed if detail else [each["name"] for each in listed]

    def _ls(self, domain: _sync.Domain, key: str) -> list[dict[str, Any]]:
        prefix = f"{key}/" if key else ""
        listed: list[dict[str, Any]] = []
        after: str | None = ""
        while after is not None:
            page = domain.list_page(prefix, after=after, delimiter="/")
            listed += [_folder(f"{domain.name}/{folder.rstrip('/')}") for folder in page.prefixes]
            listed += [_listed(domain.name, entry) for entry in page.entries]
            after = page.next
        return sorted(listed, key=lambda each: str(each["name"]))

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **options: Any
    ) -> Any:
        name, key = self._place(path)
        if maxdepth is not None or withdirs or not name:
            return super().find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail, **options)
        entries = self.domain(name).list(f"{key}/" if key else "")
        found = {each["name"]: each for each in (_listed(name, entry) for entry in entries)}
        if not found and key and self.isfile(path):
            found = {f"{name}/{key}": self.info(path)}
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
        return self.exists(path) and self.info(path)["type"] == "file"

    def rm_file(self, path: str) -> None:
        domain, key = self._object(path)
        try:
            domain.delete(key)
        except NotFound as error:
            if self.isdir(path):
                raise IsADirectoryError(f"'{path}' is a folder: recursive=True removes all objects in it") from error
            raise FileNotFoundError(path) from error

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        paths = self.expand_path(path)
        for each in paths:
            if not self._place(each)[1]:
                raise IsADirectoryError(f"'{each}' is a domain: `areo domain rm` removes one")
        for each in paths:
            objects = {each}
            if recursive:
                objects = set(self.find(each, maxdepth=maxdepth))
                if not objects or self.isfile(each):
                    objects.add(each)
            for found in sorted(objects):
                self.rm_file(found)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        if start is not None or end is not None:
            content: bytes = super().cat_file(path, start=start, end=end, **options)
            return content
        domain, key = self._object(path)
        try:
            return domain.get(key).value
        except NotFound as error:
            raise FileNotFoundError(path) from error

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **_: Any) -> None:
        domain, key = self._object(path)
        try:
            domain.put(key, value, if_absent=mode == "create")
        except VersionConflict as error:
            raise FileExistsError(path) from error

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        if self.isdir(path1):
            return
        with self.open(path1, "rb") as source, self.open(path2, "wb") as target:
            shutil.copyfileobj(source, target, self.blocksize)

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **options: Any) -> "AreoFile":
        if mode not in ("rb", "wb"):
            raise NotImplementedError(f"an object is opened as 'rb' or 'wb', not as '{mode}': it is written anew as a whole")
        self._object(path)
        return AreoFile(self, path, mode, block_size=block_size or "default", **options)


class AreoFile(AbstractBufferedFile):
    """An object as a file. What is written takes effect when the file is closed; if the `with` block of it raises, nothing is written."""

    closed: bool
    _writer: _sync.ObjectWriter | None = None

    def _fetch_range(self, start: int, end: int) -> bytes:
        domain, key = self.fs._object(self.path)
        try:
            stream = domain.stream(key, start, end)
        except NotFound as error:
            raise FileNotFoundError(self.path) from error
        except Invalid as error:
            # What is there now is shorter.
            raise self._written_over() from error
        if stream.version != self.details["version"]:
            raise self._written_over()
        return b"".join(stream)

    def _written_over(self) -> VersionConflict:
        return VersionConflict(
            f"'{self.path}' was written over while it was read, and version {self.details['version']} is gone: open it again"
        )

    def _initiate_upload(self) -> None:
        domain, key = self.fs._object(self.path)
        self._writer = domain.open(key, "wb")

    def _upload_chunk(self, final: bool = False) -> bool:
        assert self._writer is not None, "an upload was begun"
        self._writer.write(self.buffer.getvalue())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        if self._writer is not None:
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
