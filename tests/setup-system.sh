#!/usr/bin/env bash
# Installs what the browser tests and the network isolation need where that can be done: Debian as root. Elsewhere those
# tests are skipped with a reason.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  echo "Not root on Debian: tests that need Chromium or an isolated network may be skipped."
  exit 0
fi
missing=()
command -v ip > /dev/null || missing+=(iproute2)
command -v unshare > /dev/null || missing+=(util-linux)
if [ ${#missing[@]} -gt 0 ]; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
fi
if [ -x tests/editors/vscode/install.sh ]; then
  tests/editors/vscode/install.sh || echo "The tests in a real VS Code will be skipped."
fi
