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

give_up() { echo "sdk: $1" >&2; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
. ../../tools/node.sh
find_node || give_up "$node_missing"
find_chromium
[ -x "$BATON_BIN" ] || give_up "there is no $BATON_BIN; build it (cargo build --locked), or name it with BATON_BIN"

install_packages || give_up "npm ci failed"
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
