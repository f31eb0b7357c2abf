#!/usr/bin/env bash
# Litestream: a replica of an SQLite database.
NAME=litestream
source "${BASH_SOURCE%/*}/report.sh"
# It replaces the certificates of the system.
unset AWS_CA_BUNDLE
litestream() { "$CLIENTS/.venv-a/bin/litestream" "$@"; }

cat >"$scratch/litestream.yml" <<CONFIG
dbs:
  - path: $scratch/live.db
    replica:
      type: s3
      bucket: $bucket
      path: live
      endpoint: $AWS_ENDPOINT_URL
      region: $AWS_REGION
      force-path-style: true
      sync-interval: 100ms
CONFIG
cat >"$scratch/write.py" <<'PROGRAM'
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA journal_mode=wal")
db.execute("CREATE TABLE IF NOT EXISTS t (number INTEGER, text TEXT)")
for number in range(500):
    db.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 200))
    db.commit()
    time.sleep(0.002)
PROGRAM

replicate() {
  "$CLIENTS/.venv-c/bin/aws" s3 mb "s3://$bucket"
  litestream replicate -config "$scratch/litestream.yml" -exec "python3 $scratch/write.py $scratch/live.db"
  litestream ltx -config "$scratch/litestream.yml" "$scratch/live.db"
}
restore() {
  litestream restore -config "$scratch/litestream.yml" -o "$scratch/restored.db" "$scratch/live.db"
  local query='SELECT count(*), sum(number) FROM t'
  for db in live restored; do
    python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone())' "$scratch/$db.db" "$query"
  done | tee "$scratch/rows"
  test "$(sort -u "$scratch/rows")" = "(500, 124750)"
}
step "replicate 500 transactions" replicate
step "restore: every row" restore
exit $failed
