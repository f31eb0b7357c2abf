#!/usr/bin/env bash
# foreign.sh LAB DIR: `areo-lab probe s3` at stores of others, which Go and pip install into DIR. LAB is the program `areo-lab`.
#
# One line per store: `STORE: VERDICT`. The reports are in DIR. Ends with 1 if a store could not be probed; a store that is convicted is a result.
set -uo pipefail
lab=$(realpath "${1:?usage: foreign.sh LAB DIR}")
mkdir -p "${2:?usage: foreign.sh LAB DIR}"
folder=$(realpath "$2")
export AWS_ACCESS_KEY_ID=probe AWS_SECRET_ACCESS_KEY=probesecret AWS_REGION=us-east-1
export ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY
started=()
failed=0
trap 'kill "${started[@]}" 2>/dev/null; wait' EXIT

# start LOG PORT COMMAND...: returns when something listens at the port.
start() {
    local log=$folder/$1.log port=$2 tries
    shift 2
    "$@" >"$log" 2>&1 </dev/null &
    started+=($!)
    for tries in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
        sleep 0.1
    done
    echo "foreign.sh: nothing listens at port $port after $tries tries: see $log" >&2
    return 1
}

# probe STORE ENDPOINT...
probe() {
    local store=$1 verdict
    shift
    "$lab" probe s3 "$@" --html "$folder/$store.html" >"$folder/$store.txt" 2>&1
    verdict=$(grep '^verdict: ' "$folder/$store.txt") || failed=1
    verdict=${verdict#verdict: }
    echo "$store: ${verdict%%. A run*}"
}

program=$folder/bin/versitygw
[ -x "$program" ] || GOBIN=$folder/bin go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 >&2
rm -rf "$folder/data"
mkdir -p "$folder/data"
if start versitygw-1 18070 "$program" --port 127.0.0.1:18070 posix "$folder/data" &&
    start versitygw-2 18071 "$program" --port 127.0.0.1:18071 posix "$folder/data"; then
    probe versitygw http://127.0.0.1:18070
    probe versitygw-two http://127.0.0.1:18070 http://127.0.0.1:18071
else
    failed=1
fi

server=$folder/moto/bin/moto_server
if [ ! -x "$server" ]; then
    python3 -m venv "$folder/moto" && "$folder/moto/bin/pip" install --quiet 'moto[server]==5.2.5' >&2
fi
if start moto 18080 "$server" -H 127.0.0.1 -p 18080; then
    probe moto http://127.0.0.1:18080
else
    failed=1
fi
exit "$failed"
