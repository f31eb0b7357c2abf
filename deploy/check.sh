#!/usr/bin/env bash
# Reads compose/ and kubernetes/ by the tools that they are for: the loader of Docker Compose, kustomize, the schemas of Kubernetes, and promtool. What is
# missing is installed into target/deploy-tools by the modules of Go and by pip. A line `ok NAME` for each; the first that fails ends it.
set -euo pipefail
cd "$(dirname "$0")"
tools=$PWD/../target/deploy-tools
mkdir -p "$tools"
export GOBIN=$tools

[ -x "$tools/cmd" ] || go install github.com/compose-spec/compose-go/v2/cmd@v2.16.2
"$tools/cmd" compose/compose.yaml > "$tools/compose.yaml"
echo "ok compose/compose.yaml"

if ! command -v kubectl > /dev/null && [ ! -x "$tools/kustomize" ]; then
    go install sigs.k8s.io/kustomize/kustomize/v5@v5.5.0
fi
render() { if command -v kubectl > /dev/null; then kubectl kustomize "$1"; else "$tools/kustomize" build "$1"; fi; }
[ -d "$tools/venv" ] || python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install --quiet kubernetes-validate==1.37.0
for folder in first cluster monitored; do
    render "kubernetes/$folder" > "$tools/$folder.yaml"
    # The oldest version whose schema has all fields, and the newest one.
    for version in 1.30 1.37; do
        "$tools/venv/bin/kubernetes-validate" --strict -k "$version" --quiet "$tools/$folder.yaml"
    done
    echo "ok kubernetes/$folder"
done

if command -v promtool > /dev/null; then
    promtool check config --syntax-only compose/prometheus.yml
    promtool check config --syntax-only --agent kubernetes/monitored/prometheus.yml
    echo "ok prometheus.yml"
else
    echo "skipped prometheus.yml: there is no promtool on the PATH"
fi
