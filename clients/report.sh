# Steps of a client that is a program, and the line that each of them prints. `source` this file after NAME is set.
bucket=$NAME-$CLIENTS_RUN
scratch=$CLIENTS_SCRATCH/$NAME
mkdir -p "$scratch"
export bucket scratch
failed=0

# step WHAT FUNCTION: runs a function in a shell of its own that ends at its first error.
step() {
  local log=$scratch/step.log
  bash -euo pipefail -c "$(declare -f); $2" >"$log" 2>&1 && { echo "ok $NAME $1"; return; }
  failed=1
  cat "$log" >&2
  echo "FAILED $NAME $1: $(grep -v '^ *$' "$log" | tail -n 2 | tr '\n' ' ' | cut -c1-400)"
}
