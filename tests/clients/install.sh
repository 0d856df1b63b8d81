#!/usr/bin/env bash
# Installs the real clients that the tests here run, in the versions that package-lock.json names.
# Does nothing where they are there already. No script of a package runs (see .npmrc).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

stamp=node_modules/.bodyguard-lock
wanted=$(sha256sum package.json package-lock.json .npmrc)
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

echo "installing the clients for the tests (npm ci, about 400 MB)"
# npm 10 and newer warn that a package wants a newer Node; its program brings its own runtime.
npm ci --no-progress --loglevel=error </dev/null
printf '%s\n' "$wanted" >"$stamp"
