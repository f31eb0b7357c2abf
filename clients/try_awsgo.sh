#!/usr/bin/env bash
# The AWS SDK for Go: the program in `go`, which `run.sh` has built.
exec "$CLIENTS/go/awsgo"
