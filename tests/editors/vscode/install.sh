#!/usr/bin/env bash
# Sets up a real VS Code workbench for the browser tests: Chromium and ripgrep from Debian (as root), code-server from npm.
#
#   install.sh            into .cache/code-server of the checkout
#   install.sh --check    only says whether everything is there
#
# Does nothing where everything is there. Prints one line to say why where it can't go on, and exits with 3; then the tests
# are skipped with that reason. Only one native module is built (argon2, which code-server loads at its start): the workbench,
# extension hosts and webviews need no other. Without spdlog there are no log files, without node-pty no terminal.
set -euo pipefail

VERSION=4.100.3 # VS Code 1.100.3, the newest that runs on Node 20
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../../.." && pwd)
DIR=$ROOT/.cache/code-server
STAMP=$DIR/.installed-$VERSION

cannot() { echo "$1" >&2; exit 3; }

system_packages() {
  local missing=()
  command -v chromium >/dev/null || missing+=(chromium)
  command -v rg >/dev/null || missing+=(ripgrep)
  [ ${#missing[@]} -eq 0 ] && return
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || cannot "${missing[*]} missing; install it with your package manager"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null || cannot "apt-get update failed; ${missing[*]} is missing"
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null || cannot "apt-get could not install ${missing[*]}"
}

build_tools() {
  command -v node >/dev/null && command -v npm >/dev/null || cannot "Node.js 20 and npm are missing"
  [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || cannot "Node.js 20 or newer is needed"
  command -v g++ >/dev/null && command -v make >/dev/null && command -v python3 >/dev/null || cannot "g++, make and python3 are needed to build argon2"
}

code_server() {
  [ -f "$STAMP" ] && return
  build_tools
  rm -rf "$DIR" && mkdir -p "$DIR" && cd "$DIR"
  export npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false
  [ -d /usr/include/node ] && export npm_config_nodedir=${npm_config_nodedir:-/usr}
  echo '{"name":"workbench","private":true}' >package.json
  # Its own install scripts want a Kerberos library and download ripgrep: leave them out, do by hand what is needed.
  npm install --silent --ignore-scripts --no-save "code-server@$VERSION" || cannot "npm could not install code-server@$VERSION"
  npm rebuild --silent argon2 --build-from-source || cannot "argon2 could not be built"
  cd node_modules/code-server/lib/vscode
  npm install --silent --ignore-scripts --omit=dev || cannot "npm could not install the workbench's packages"
  mkdir -p node_modules/@vscode/ripgrep/bin
  ln -sf "$(command -v rg)" node_modules/@vscode/ripgrep/bin/rg
  ln -sfn node_modules node_modules.asar
  (cd bin/remote-cli && ln -sf code-linux.sh code-server)
  (cd bin/helpers && ln -sf browser-linux.sh browser.sh)
  (cd extensions && npm install --silent --ignore-scripts --omit=dev && node postinstall.mjs >/dev/null) ||
    cannot "npm could not install the packages of the built-in extensions"
  touch "$STAMP"
}

if [ "${1:-}" = --check ]; then
  for program in chromium rg node; do command -v $program >/dev/null || cannot "$program is missing; tests/editors/vscode/install.sh sets it up"; done
  [ -f "$STAMP" ] || cannot "code-server is missing; tests/editors/vscode/install.sh sets it up"
  exit 0
fi
mkdir -p "$(dirname "$DIR")"
exec 9>"$DIR.lock"
flock 9
system_packages
code_server
