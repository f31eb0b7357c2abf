#!/usr/bin/env bash
# rclone: directories that are kept equal.
NAME=rclone
source "${BASH_SOURCE%/*}/report.sh"
export RCLONE_CONFIG=$scratch/rclone.conf RCLONE_CONFIG_AREO_TYPE=s3 RCLONE_CONFIG_AREO_PROVIDER=Other
export RCLONE_CONFIG_AREO_ENV_AUTH=true RCLONE_CONFIG_AREO_ENDPOINT=$AWS_ENDPOINT_URL RCLONE_CONFIG_AREO_REGION=$AWS_REGION
touch "$RCLONE_CONFIG"
rclone() { "$CLIENTS/.venv-a/bin/rclone" --s3-chunk-size 5M --s3-upload-cutoff 8M "$@"; }

sync_and_check() {
  mkdir -p "$scratch/tree/a b/ä"
  for i in $(seq 40); do echo "$i" >"$scratch/tree/a b/ä/$i"; done
  head -c 12000000 /dev/urandom >"$scratch/tree/large"
  rclone mkdir "areo:$bucket"
  rclone sync "$scratch/tree" "areo:$bucket/tree"
  rclone check --download "$scratch/tree" "areo:$bucket/tree"
  rclone check "$scratch/tree" "areo:$bucket/tree" 2>&1 | tee "$scratch/check"
  grep ' 0 differences found' "$scratch/check"
}
sync_again() {
  echo changed >"$scratch/tree/a b/ä/1"
  rm "$scratch/tree/a b/ä/2"
  rclone sync "$scratch/tree" "areo:$bucket/tree"
  rclone check "$scratch/tree" "areo:$bucket/tree"
  test "$(rclone lsf -R --files-only "areo:$bucket/tree" | wc -l)" = 40
}
copy() {
  rclone copy "areo:$bucket/tree" "areo:$bucket/copy"
  rclone copy "areo:$bucket/copy" "$scratch/down"
  diff -r "$scratch/tree" "$scratch/down"
}
bisync() {
  mkdir -p "$scratch/two"
  echo here >"$scratch/two/here"
  echo there | rclone rcat "areo:$bucket/two/there"
  local options=(--workdir "$scratch/bisync")
  rclone bisync --resync "$scratch/two" "areo:$bucket/two" "${options[@]}"
  echo more >"$scratch/two/more"
  rclone deletefile "areo:$bucket/two/there"
  rclone bisync "$scratch/two" "areo:$bucket/two" "${options[@]}"
  rclone check "$scratch/two" "areo:$bucket/two"
  test -f "$scratch/two/more" -a ! -f "$scratch/two/there"
}
purge() {
  rclone purge "areo:$bucket"
  ! rclone lsf areo: | grep "^$bucket/"
}
step "sync and check: 0 differences" sync_and_check
step "sync of a change and a deletion" sync_again
step "copy from prefix to prefix, and down" copy
step "bisync in both directions" bisync
step "purge" purge
exit $failed
