#!/usr/bin/env bash
# Everything about the SDK, from nothing: installs what is missing, checks what is generated, compiles, and runs the tests against a real server.
# BATON_BIN names the program (target/debug/baton of the repository, if nothing is said). The last line is `N passed, N failed, N skipped`.
# BATON_REGENERATE=1 makes src/generated/ anew first.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")
BATON_BIN=$(realpath -m "${BATON_BIN:-$target/debug/baton}")
export BATON_BIN
cd "$here" || exit 1
node_version=22.23.3

give_up() { echo "sdk: $1" >&2; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
can_install() { command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; }
has_node() { command -v node >/dev/null && command -v npm >/dev/null && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ]; }

# Debian 12 has Node 18: its npm fetches a newer one, once, beside the other results.
PATH="$target/node/node_modules/node/bin:$PATH"
if ! has_node; then
  if ! command -v npm >/dev/null; then
    can_install || give_up "install Node 20 or later, with npm (on Debian: apt-get install nodejs npm)"
    { apt-get update -qq && apt-get install -y -qq nodejs npm; } >/dev/null || give_up "apt-get cannot install nodejs and npm"
  fi
  if ! has_node; then
    mkdir -p "$target/node"
    (cd "$target/node" && npm install --no-audit --no-fund --no-save --loglevel error "node@$node_version" >/dev/null) || give_up "npm cannot fetch node@$node_version"
  fi
  has_node || give_up "Node 20 or later is needed; this is $(node --version 2>&1)"
fi
if ! command -v chromium >/dev/null && can_install; then
  # Where it cannot be had, the test in a browser says so and is skipped.
  { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1
fi
[ -x "$BATON_BIN" ] || give_up "there is no $BATON_BIN; build it (cargo build --locked), or name it with BATON_BIN"

if ! cmp -s package-lock.json node_modules/.installed; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel error || give_up "npm ci failed"
  cp package-lock.json node_modules/.installed
fi
[ -z "${BATON_REGENERATE:-}" ] || node scripts/generate.mjs || give_up "the types cannot be generated"

passed=0 failed=0 skipped=0
check() { # NAME COMMAND…: one check, told and counted
  local name=$1
  shift
  if "$@"; then echo "ok: $name"; passed=$((passed + 1)); else echo "FAILED: $name"; failed=$((failed + 1)); fi
}
tsc=node_modules/.bin/tsc
check "what is generated is current" node scripts/generate.mjs --check
check "the types fit, those of the tests too" "$tsc" --noEmit
rm -rf dist
check "it builds" "$tsc" -p tsconfig.build.json
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Each test has a deadline of its own; this one is that of a file, with all its tests.
node --test --test-timeout=300000 --test-reporter=spec --test-reporter-destination=stdout --test-reporter=tap --test-reporter-destination="$log" test/*.test.mjs
count() { awk -v name="$1" '$1 == "#" && $2 == name { n = $3 } END { print n + 0 }' "$log"; }
passed=$((passed + $(count pass)))
failed=$((failed + $(count fail) + $(count cancelled)))
skipped=$((skipped + $(count skipped) + $(count todo)))
[ "$(count tests)" -gt 0 ] || failed=$((failed + 1))
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
