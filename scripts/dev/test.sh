# shellcheck shell=bash
# The tests and their counts. Sourced by ./dev.

PASSED=0
FAILED=0

cmd_test() {
  if [ "${1:-}" = --long ]; then
    shift
    cmd_long "$@"
    return
  fi
  prepare_tests
  step "build" rust_everything
  local built=$STEPS_FAILED
  test_ui unit test "$@"
  if ui_has_script test:pages; then test_ui pages test:pages "$@"; fi
  if [ "$built" -eq 0 ]; then
    test_rust "$@"
    if [ $# -eq 0 ]; then test_rust_examples; fi
  else
    warn "the build failed, so no Rust test ran"
  fi
  print_steps
  if [ $((PASSED + FAILED)) -eq 0 ]; then warn "no test ran"; fi
  printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
  [ "$STEPS_FAILED" -eq 0 ] && [ "$FAILED" -eq 0 ] && [ "$PASSED" -gt 0 ]
}

prepare_tests() {
  need_to_build
  local desktop
  mapfile -t desktop < <(desktop_packages)
  need_packages "run the app and its tests" "${RUN_PACKAGES[@]}" "${TEST_PACKAGES[@]}" "${desktop[@]}"
  ui_build
  tests/clients/install.sh
  export BODYGUARD_BIN=$TARGET/debug/bodyguard
}

# add_counts REPORT CMD…: CMD prints “passed failed” as it reads REPORT.
add_counts() {
  local report=$1 passed=0 failed=0
  shift
  if [ -s "$report" ]; then read -r passed failed < <("$@" "$report") || true; fi
  PASSED=$((PASSED + ${passed:-0}))
  FAILED=$((FAILED + ${failed:-0}))
}

ui_has_script() { # NAME
  node -e 'process.exit(require("./ui/package.json").scripts?.[process.argv[1]] ? 0 : 1)' "$1"
}

# test_ui LABEL SCRIPT [FILTER…]: vitest by an npm script.
test_ui() {
  local label=$1 script=$2 report args pattern
  shift 2
  report=$TARGET/test-reports/ui-$label.json
  mkdir -p "${report%/*}"
  rm -f "$report"
  args=(--reporter=default --reporter=json "--outputFile.json=$report")
  if [ $# -gt 0 ]; then
    pattern=$(IFS='|' && printf '%s' "$*")
    args+=(--testNamePattern "$pattern" --passWithNoTests)
  fi
  step "interface, $label" ui_script "$script" -- "${args[@]}"
  add_counts "$report" count_vitest
}

count_vitest() { # REPORT
  node -e '
    const report = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
    console.log(report.numPassedTests, report.numFailedTests);' "$1"
}

test_rust() { # [FILTER…]
  if ! cargo nextest --version >/dev/null 2>&1; then
    say "cargo test runs the tests, because cargo-nextest is not installed (cargo install --locked cargo-nextest): slower, the same counts"
    test_with_cargo "Rust" --lib --bins --tests -- "$@"
    return
  fi
  local profile=default report
  if [ -n "${CI:-}" ]; then profile=ci; fi
  report=$TARGET/nextest/$profile/junit.xml
  rm -f "$report"
  step "Rust" cargo nextest run --workspace --profile "$profile" --no-tests pass "$@"
  add_counts "$report" count_junit
}

count_junit() { # REPORT
  # shellcheck disable=SC2016 # JavaScript's own ${}
  node -e '
    const head = /<testsuites [^>]*>/.exec(require("fs").readFileSync(process.argv[1], "utf8"))?.[0] ?? "";
    const number = (name) => Number(new RegExp(` ${name}="([0-9]+)"`).exec(head)?.[1] ?? 0);
    const bad = number("failures") + number("errors");
    console.log(number("tests") - bad, bad);' "$1"
}

# nextest leaves these out.
test_rust_examples() { test_with_cargo "Rust, examples in the docs" --doc; }

test_with_cargo() { # NAME ARGS…
  local name=$1 report
  shift
  report=$TARGET/test-reports/cargo-test.log
  mkdir -p "${report%/*}"
  rm -f "$report"
  step "$name" logged "$report" cargo test --workspace --no-fail-fast "$@"
  add_counts "$report" count_libtest
}

logged() { # FILE CMD…
  local file=$1
  shift
  "$@" 2>&1 | tee "$file"
}

count_libtest() { # LOG
  awk '/^test result: / { passed += $4; failed += $6 } END { print passed + 0, failed + 0 }' "$1"
}
