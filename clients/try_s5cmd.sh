#!/usr/bin/env bash
# s5cmd: many objects at a time.
NAME=s5cmd
source "${BASH_SOURCE%/*}/report.sh"
export S3_ENDPOINT_URL=$AWS_ENDPOINT_URL
s5cmd() { "$CLIENTS/.venv-a/bin/s5cmd" "$@"; }

cp_many() {
  mkdir -p "$scratch/tree/a b"
  for i in $(seq 200); do echo "$i" >"$scratch/tree/a b/$i"; done
  s5cmd mb "s3://$bucket"
  s5cmd cp "$scratch/tree/" "s3://$bucket/tree/"
  test "$(s5cmd ls "s3://$bucket/tree/*" | wc -l)" = 200
  s5cmd cp "s3://$bucket/tree/*" "$scratch/down/"
  diff -r "$scratch/tree" "$scratch/down"
}
cp_large() {
  head -c 20000000 /dev/urandom >"$scratch/large"
  s5cmd cp --part-size 5 --concurrency 4 "$scratch/large" "s3://$bucket/large"
  s5cmd cp --part-size 5 --concurrency 4 "s3://$bucket/large" "$scratch/back"
  cmp "$scratch/large" "$scratch/back"
}
sync() {
  s5cmd sync "$scratch/tree/" "s3://$bucket/tree/" >"$scratch/again"
  cat "$scratch/again"
  test ! -s "$scratch/again"
}
rm_all() {
  s5cmd rm "s3://$bucket/*"
  s5cmd rb "s3://$bucket"
}
step "cp of 200 objects, ls, and back" cp_many
step "cp of 20 MB by parts, and back by ranges" cp_large
step "sync finds nothing to do" sync
step "rm of all, and rb" rm_all
exit $failed
