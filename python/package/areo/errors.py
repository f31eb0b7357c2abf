"""How an operation ends when it does not succeed. The text of each is one sentence: what was tried, on what, what is missing, what to do."""

from areo._model import Object, Version

__all__ = [
    "Corrupted",
    "Error",
    "Invalid",
    "NotFound",
    "Unauthorised",
    "Unavailable",
    "Unknown",
    "VersionConflict",
]


class Error(Exception):
    """The base of all. `kind` is a word for programs, finer than the class; `domain` and `key` are what it is about, if that is one object."""

    kind: str = "error"
    domain: str | None = None
    key: str | None = None


class NotFound(Error):
    """There is no such domain (`key` is `None`, or the domain was removed: `kind` is `removed`), or no such object in it."""

    kind = "not_found"


class VersionConflict(Error):
    """A conditional write found another version than `expected`, and wrote nothing. Or a value was written over while it was read in pieces.

    `latest_version` is the newest version, `None` if there is no object. `latest` is the object; `None` also if it is too large to come with an error.
    """

    kind = "version_conflict"
    expected: Version | None = None
    latest_version: Version | None = None
    latest: Object | None = None


class Unavailable(Error):
    """No quorum in time, and nothing was written. Trying again is safe."""

    kind = "unavailable"


class Unknown(Error):
    """A write may have been applied, or be applied later: no quorum acknowledged it in time. Reading the object tells."""

    kind = "unknown"


class Corrupted(Error):
    """What is stored is damaged, and cannot be returned. Wrong bytes never are."""

    kind = "corrupted"


class Unauthorised(Error):
    """The access key does not count, or lacks the grant that the sentence names."""

    kind = "unauthorised"


class Invalid(Error):
    """The operation makes no sense as it was asked for, and nothing was written: a wrong key, version, range, metadata or address; a client of before a
    fork (`kind` is `forked`)."""

    kind = "invalid"
