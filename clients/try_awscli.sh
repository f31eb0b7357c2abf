#!/usr/bin/env bash
# AWS CLI: the commands that people type.
NAME=awscli
source "${BASH_SOURCE%/*}/report.sh"
aws() { "$CLIENTS/.venv-c/bin/aws" "$@"; }

mb() {
  aws s3 mb "s3://$bucket"
  aws s3 ls | grep "$bucket"
}
cp_20_mb() {
  head -c 20000000 /dev/urandom >"$scratch/large"
  aws s3 cp "$scratch/large" "s3://$bucket/large"
  aws s3 cp "s3://$bucket/large" "$scratch/back"
  cmp "$scratch/large" "$scratch/back"
  aws s3api head-object --bucket "$bucket" --key large | grep -- '-3\\""'
}
cp_streams() {
  echo hello | aws s3 cp - "s3://$bucket/stream"
  aws s3 cp "s3://$bucket/stream" - | grep '^hello$'
}
sync() {
  mkdir -p "$scratch/tree/a b/ä" "$scratch/tree/c"
  for i in $(seq 30); do echo "$i" >"$scratch/tree/a b/ä/$i"; done
  head -c 100000 /dev/urandom >"$scratch/tree/c/+%25"
  aws s3 sync --quiet "$scratch/tree" "s3://$bucket/tree"
  aws s3 sync "$scratch/tree" "s3://$bucket/tree" >"$scratch/again"
  cat "$scratch/again"
  test ! -s "$scratch/again"
  rm "$scratch/tree/a b/ä/7"
  aws s3 sync --delete "$scratch/tree" "s3://$bucket/tree" | grep 'delete: .*/7$'
  aws s3 sync --quiet "s3://$bucket/tree" "$scratch/down"
  diff -r "$scratch/tree" "$scratch/down"
}
mv_and_cp_between() {
  aws s3 mv "s3://$bucket/stream" "s3://$bucket/moved"
  aws s3 cp "s3://$bucket/large" "s3://$bucket/copy"
  aws s3 cp "s3://$bucket/copy" - | cmp - "$scratch/large"
  ! aws s3 ls "s3://$bucket/stream"
}
rm_recursive() {
  aws s3 rm --recursive --quiet "s3://$bucket"
  test -z "$(aws s3 ls --recursive "s3://$bucket")"
  aws s3 rb "s3://$bucket"
}
step "mb and ls" mb
step "cp of 20 MB by multipart upload, and back" cp_20_mb
step "cp from and to a pipe" cp_streams
step "sync up, again, with --delete, and down" sync
step "mv, and cp of 20 MB from key to key" mv_and_cp_between
step "rm --recursive and rb" rm_recursive
exit $failed
