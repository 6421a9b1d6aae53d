#!/usr/bin/env bash
# Everything about the page, from nothing: installs what is missing, checks the types, builds, and runs the tests: of the parts, and in a real browser
# against a real server. BATON_BIN names the program (target/debug/baton of the repository, if nothing is said). Arguments name end-to-end tests to run
# instead of all, such as e2e/board.test.mjs. The last line is `N passed, N failed, N skipped`.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$here/../target}")
BATON_BIN=$(realpath -m "${BATON_BIN:-$target/debug/baton}")
export BATON_BIN
cd "$here" || exit 1

give_up() { echo "page: $1" >&2; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
. ../tools/node.sh
find_node || give_up "$node_missing"
find_chromium
[ -x "$BATON_BIN" ] || give_up "there is no $BATON_BIN; build it (cargo build --locked), or name it with BATON_BIN"

install_packages || give_up "npm ci failed"

passed=0 failed=0 skipped=0
check() { # NAME COMMAND…: one check, told and counted
  local name=$1
  shift
  if "$@"; then echo "ok: $name"; passed=$((passed + 1)); else echo "FAILED: $name"; failed=$((failed + 1)); fi
}
check "the types fit" node_modules/.bin/tsc --noEmit
check "it builds, and is not too large" node build.mjs
# The page that was just built, whatever the program has inside.
export BATON_PAGE_DIR="${BATON_PAGE_DIR:-$here/${BATON_PAGE_DIST:-dist}}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { # FILE…: a run of tests, told and counted
  node --test --test-concurrency=4 --test-timeout=600000 --test-reporter=spec --test-reporter-destination=stdout --test-reporter=tap --test-reporter-destination="$log" "$@"
  passed=$((passed + $(count pass)))
  failed=$((failed + $(count fail) + $(count cancelled)))
  skipped=$((skipped + $(count skipped) + $(count todo)))
  [ "$(count tests)" -gt 0 ] || failed=$((failed + 1))
}
count() { awk -v name="$1" '$1 == "#" && $2 == name { n = $3 } END { print n + 0 }' "$log"; }
run test/*.test.mjs
if [ $# -gt 0 ]; then run "$@"; else run e2e/*.test.mjs; fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
