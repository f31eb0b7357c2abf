#!/usr/bin/env bash
# run.sh [ENDPOINT]: real clients of S3 against a server of S3.
#
# The variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY have a key that may do everything. Without an
# endpoint the clients are installed, and none is run. CLIENTS_ONLY="boto3 rclone" runs these alone.
#
# Prints a line per step: `ok CLIENT STEP`, `FAILED CLIENT STEP: REASON`, or `skipped CLIENT REASON`.
# Ends with 1 if a step failed, or if one of `expected.txt` is missing whose client was run.
set -uo pipefail
CLIENTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export CLIENTS
ALL="boto3 awscli awsgo awsjs rclone obstore deltalake duckdb s3fs pyiceberg s5cmd restic slatedb litestream"
# Longest time of one client, in seconds.
LIMIT=300

# The environment in which a client is: A has all, but two that need another botocore.
environment_of() {
  case $1 in
    s3fs | pyiceberg) echo b ;;
    awscli) echo c ;;
    *) echo a ;;
  esac
}

# install LETTER: makes a virtual environment, unless it has what its file demands. Packages that pip refuses are
# in its file `missing.txt`.
install() {
  local place=$CLIENTS/.venv-$1 wanted=$CLIENTS/requirements-$1.txt package
  cmp -s "$wanted" "$place/installed.txt" && return
  python3 -m venv "$place" || return
  # `cargo xtask tidy` and backups pass over directories with this file.
  echo "Signature: 8a477f597d28d172789f06886806bc55" >"$place/CACHEDIR.TAG"
  rm -f "$place/missing.txt"
  if "$place/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2; then
    cp "$wanted" "$place/installed.txt"
    return
  fi
  while read -r package; do
    "$place/bin/pip" install --quiet --disable-pip-version-check "$package" >&2 || echo "$package" >>"$place/missing.txt"
  done <"$wanted"
  ! [ -e "$place/missing.txt" ]
}

# Builds the client in Go. Without a compiler there is nothing to do.
install_go() {
  command -v go >/dev/null || return 0
  rm -f "$CLIENTS/go/awsgo"
  (cd "$CLIENTS/go" && go build -mod=readonly -o awsgo .) >&2
}

# Installs the packages of the client in JavaScript, unless they are those of its file.
install_js() {
  local place=$CLIENTS/js
  command -v npm >/dev/null || return 0
  cmp -s "$place/package-lock.json" "$place/node_modules/installed.json" && return
  (cd "$place" && npm ci --ignore-scripts --no-audit --no-fund) >&2 || return
  echo "Signature: 8a477f597d28d172789f06886806bc55" >"$place/node_modules/CACHEDIR.TAG"
  cp "$place/package-lock.json" "$place/node_modules/installed.json"
}

# Why a client cannot be run; nothing if it can.
obstacle() {
  local place
  place=$CLIENTS/.venv-$(environment_of "$1")
  if [ "$1" = restic ]; then
    command -v restic >/dev/null || echo "there is no restic on the PATH: apt-get install restic"
  elif [ "$1" = awsgo ]; then
    if ! command -v go >/dev/null; then
      echo "there is no go on the PATH: apt-get install golang, or https://go.dev/dl"
    elif [ ! -x "$CLIENTS/go/awsgo" ]; then
      echo "go did not build it"
    fi
  elif [ "$1" = awsjs ]; then
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
      echo "there are no node and npm on the PATH: apt-get install nodejs npm"
    elif [ ! -e "$CLIENTS/js/node_modules/installed.json" ]; then
      echo "npm did not install its packages"
    fi
  elif [ ! -x "$place/bin/python" ]; then
    echo "there is no environment $place"
  else
    # The package of a client begins with its name.
    grep -s "^$1" "$place/missing.txt" | sed 's/^/pip did not install /' | tr '\n' ' '
  fi
}

run_client() {
  local program
  if [ -f "$CLIENTS/try_$1.py" ]; then
    program=("$CLIENTS/.venv-$(environment_of "$1")/bin/python" "$CLIENTS/try_$1.py")
  else
    program=(bash "$CLIENTS/try_$1.sh")
  fi
  local lines=$CLIENTS_SCRATCH/$1.lines
  timeout --kill-after 10 "$LIMIT" "${program[@]}" 2>"$CLIENTS_SCRATCH/$1.log" | tee "$lines"
  local code=${PIPESTATUS[0]}
  if [ "$code" = 124 ] || [ "$code" = 137 ]; then
    echo "FAILED $1 end: no end after $LIMIT s"
  elif [ "$code" != 0 ] && ! grep -q '^FAILED ' "$lines"; then
    echo "FAILED $1 end: exit code $code"
  fi
  [ "$code" = 0 ] || sed "s/^/  $1: /" "$CLIENTS_SCRATCH/$1.log" | tail -n 60 >&2
}

installed=0
for letter in a b c; do install $letter || installed=1; done
install_go || installed=1
install_js || installed=1
[ $# = 0 ] && exit $installed
export AWS_ENDPOINT_URL=$1 AWS_REGION=${AWS_REGION:-us-east-1}
export AWS_DEFAULT_REGION=$AWS_REGION AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null
CLIENTS_RUN=$(date +%s)
CLIENTS_SCRATCH=$(mktemp -d)
export CLIENTS_RUN CLIENTS_SCRATCH PYTHONDONTWRITEBYTECODE=1
trap 'rm -rf "$CLIENTS_SCRATCH"' EXIT

results=$CLIENTS_SCRATCH/results.txt
for name in ${CLIENTS_ONLY:-$ALL}; do
  reason=$(obstacle "$name")
  if [ -n "$reason" ]; then
    echo "skipped $name $reason"
  else
    run_client "$name"
  fi
done | tee "$results"

code=0
grep -q '^FAILED ' "$results" && code=1
while read -r line; do
  name=$(echo "$line" | cut -d ' ' -f 2)
  [[ " ${CLIENTS_ONLY:-$ALL} " == *" $name "* ]] || continue
  grep -q "^skipped $name " "$results" && continue
  grep -qxF -- "$line" "$results" && continue
  echo "missing: $line"
  code=1
done <"$CLIENTS/expected.txt"
grep '^ok ' "$results" | grep -vxF -f "$CLIENTS/expected.txt" | sed 's/^/not in expected.txt: /'
echo "$(grep -c '^ok ' "$results") ok, $(grep -c '^FAILED ' "$results") failed, $(grep -c '^skipped ' "$results") clients skipped"
exit $code
