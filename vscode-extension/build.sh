#!/usr/bin/env bash
# Builds astroresearch-VERSION.vsix: the bundles, the licence, and the server's wheel, which must be in ../dist
# (`python -m build --wheel` in the checkout makes it).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

version=$(node -p 'require("./package.json").version')
wheel=$(ls -t ../dist/astroresearch-"$version"-*.whl 2>/dev/null | head -n 1) || true
[ -n "$wheel" ] || {
  echo "The server's wheel ../dist/astroresearch-$version-*.whl is missing: run \`python -m build --wheel\` in the checkout first." >&2
  exit 1
}
rm -rf wheel && mkdir wheel && cp "$wheel" wheel/
cp ../LICENSE LICENSE
npm run --silent compile
npx --no-install vsce package --no-dependencies --allow-missing-repository --out "astroresearch-$version.vsix"
