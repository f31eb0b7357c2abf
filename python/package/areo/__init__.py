"""Client of Areo, a distributed object store.

```
import areo

with areo.connect() as client:
    domain = client.domain("default")
    version = domain.put("greeting", b"hello")
    assert domain.get("greeting").version == version
```

`areo.aio` is the same interface for asyncio, `areo.fsspec` a filesystem for programs that use fsspec. Every operation is linearizable; a listing is
regular. An operation ends in time as done, as `Unavailable` (nothing was written) or as `Unknown` (it may have been written).
"""

from areo._model import BytesLike, Entry, Info, Metadata, Object, Page, Source, Stats, Trace, Version
from areo._sync import Client, Domain, ObjectReader, ObjectWriter, Stream, connect, trace
from areo.errors import (
    Corrupted,
    Error,
    Invalid,
    NotFound,
    Unauthorised,
    Unavailable,
    Unknown,
    VersionConflict,
)

__all__ = [
    "BytesLike",
    "Client",
    "Corrupted",
    "Domain",
    "Entry",
    "Error",
    "Info",
    "Invalid",
    "Metadata",
    "NotFound",
    "Object",
    "ObjectReader",
    "ObjectWriter",
    "Page",
    "Source",
    "Stats",
    "Stream",
    "Trace",
    "Unauthorised",
    "Unavailable",
    "Unknown",
    "Version",
    "VersionConflict",
    "connect",
    "trace",
]
