#!/usr/bin/env bash
# test.sh: builds the wheel in a fresh virtual environment, installs it into another one, and tests it there against a cluster of processes.
#
# PYTHON_TEST_PROGRAM is the program `areo`; `cargo xtask python` builds it, and sets the variable. PYTHON_TEST_PROFILE is the profile of the wheel: `verify` by
# default, with every assertion on, or `release`. Arguments are those of pytest. Everything is made in target/python.
set -euo pipefail
: "${PYTHON_TEST_PROGRAM:?is not set: it is the program areo; \`cargo xtask python\` sets it}"
export PYTHON_TEST_PROGRAM PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1 PYTHONDONTWRITEBYTECODE=1
unset AREO_CLUSTER AREO_KEY
cd "$(dirname "$0")"
place=$PWD/../target/python
profile=${PYTHON_TEST_PROFILE:-verify}
python3 -c 'import sys; sys.exit("Python 3.11 or later is needed" if sys.version_info < (3, 11) else 0)'

cargo fmt --check
cargo clippy --profile "$profile" --locked --target-dir "$place" -- -D warnings
rm -rf "$place/build" "$place/wheels" "$place/try"
python3 -m venv "$place/build"
"$place/build/bin/pip" install -r requirements-build.txt
"$place/build/bin/maturin" build --locked --profile "$profile" --target-dir "$place" --out "$place/wheels"
# One wheel for this version of Python and all later ones.
wheel=$(find "$place/wheels" -name 'areo-*-cp311-abi3-*.whl')
[ -f "$wheel" ] || { echo "no abi3 wheel was built: $(ls "$place/wheels")" >&2; exit 1; }
echo "ok wheel $(basename "$wheel")"

python3 -m venv "$place/try"
"$place/try/bin/pip" install "$wheel"
"$place/try/bin/python" -c 'import areo, areo.aio'
echo "ok alone: the package needs no other"
"$place/try/bin/pip" install -r requirements-test.txt
"$place/try/bin/python" -m mypy --strict --config-file pyproject.toml --cache-dir "$place/mypy" -p areo
"$place/try/bin/python" -m mypy.stubtest --mypy-config-file pyproject.toml areo._areo
echo "ok types"
"$place/try/bin/python" -m pytest -p no:cacheprovider "$@"
