"""Which cluster is meant, and with which key."""

import os

from areo import _areo
from areo.errors import Invalid

DEFAULT_FILE = "areo-data/cluster.toml"
TIMEOUT = 10.0


def connecting(
    cluster: str | os.PathLike[str] | None, key: str | None, timeout: float
) -> "_areo.Operation[_areo.Client]":
    """Connects as the command line does: to the cluster that is named, else that of `AREO_CLUSTER`, else that of the file in this directory. The key is
    the one that is given, else that of `AREO_KEY`, else that in the file."""
    named = os.fspath(cluster) if cluster is not None else os.environ.get("AREO_CLUSTER")
    if not named:
        if not os.path.exists(DEFAULT_FILE):
            raise Invalid(f"there is no cluster here (no {DEFAULT_FILE}): run `areo up`, set AREO_CLUSTER, or pass cluster=")
        named = DEFAULT_FILE
    return _areo.connect(named, key or os.environ.get("AREO_KEY") or None, timeout)
