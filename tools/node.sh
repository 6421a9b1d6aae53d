# To be sourced, with `target` set to cargo's directory for results: puts Node 20 or later on the PATH, and installs what is missing where that is possible.
# `find_node` fails, with what is to be done in `node_missing`; `install_packages` brings the packages of the lock file in this folder, once.
node_version=22.23.3
PATH="$target/node/node_modules/node/bin:$PATH"

can_install() { command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; }
has_node() { command -v node >/dev/null && command -v npm >/dev/null && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ]; }

find_node() {
  has_node && return
  if ! command -v npm >/dev/null; then
    node_missing="install Node 20 or later, with npm (on Debian: apt-get install nodejs npm)"
    can_install || return
    node_missing="apt-get cannot install nodejs and npm"
    { apt-get update -qq && apt-get install -y -qq nodejs npm; } >/dev/null || return
  fi
  has_node && return
  # Debian 12 has Node 18: its npm fetches a newer one, once, beside the other results.
  node_missing="npm cannot fetch node@$node_version"
  mkdir -p "$target/node"
  (cd "$target/node" && npm install --no-audit --no-fund --no-save --loglevel error "node@$node_version" >/dev/null) || return
  node_missing="Node 20 or later is needed; this is $(node --version 2>&1)"
  has_node
}

# Where it cannot be had, the tests in a browser say so and are skipped.
find_chromium() {
  if ! command -v chromium >/dev/null && can_install; then
    { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1
  fi
}

install_packages() {
  cmp -s package-lock.json node_modules/.installed && return
  npm ci --ignore-scripts --no-audit --no-fund --loglevel error && cp package-lock.json node_modules/.installed
}
