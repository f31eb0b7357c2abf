#!/usr/bin/env bash
# The AWS SDK for JavaScript: the program in `js`.
exec node "$CLIENTS/js/main.js"
