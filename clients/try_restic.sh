#!/usr/bin/env bash
# restic: backups.
NAME=restic
source "${BASH_SOURCE%/*}/report.sh"
export RESTIC_REPOSITORY=s3:$AWS_ENDPOINT_URL/$bucket/repository RESTIC_PASSWORD=for-a-test RESTIC_CACHE_DIR=$scratch/cache

init_and_backup() {
  mkdir -p "$scratch/tree"
  head -c 8000000 /dev/urandom >"$scratch/tree/large"
  for i in $(seq 50); do echo "$i" >"$scratch/tree/$i"; done
  restic init
  restic backup "$scratch/tree"
  rm "$scratch/tree/large"
  restic backup "$scratch/tree"
}
check() { restic check --read-data; }
restore() {
  restic restore latest --target "$scratch/down"
  diff -r "$scratch/tree" "$scratch/down$scratch/tree"
}
prune() {
  restic forget --keep-last 1 --prune
  restic check --read-data
  test "$(restic snapshots --json | grep -o '"short_id"' | wc -l)" = 1
}
step "init, and two backups" init_and_backup
step "check of all data" check
step "restore" restore
step "forget and prune" prune
exit $failed
