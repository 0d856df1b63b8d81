# shellcheck shell=bash
# Checks that take long; their dated results are committed. Sourced by ./dev.
#
# How long, by variables: REPEAT_RUNS (10), SOAK_SECONDS (1800), FUZZ_SECONDS (300, for each target),
# MUTANTS_SHARD (such as 0/8; all without it). The report says what was run.

LONG_PARTS=(deny repeat fuzz mutants soak)
REPORT=
LOGS=

cmd_long() { # [PART…]
  local part
  if [ $# -eq 0 ]; then set -- "${LONG_PARTS[@]}"; fi
  for part in "$@"; do
    case " ${LONG_PARTS[*]} " in
      *" $part "*) ;;
      *) die "no such part: $part; there are: ${LONG_PARTS[*]}" ;;
    esac
  done
  prepare_tests
  rust_everything
  LOGS=$TARGET/long
  mkdir -p docs/long "$LOGS"
  REPORT=docs/long/$(date -u +%F).md
  report_head
  for part in "$@"; do "long_$part"; done
  print_steps
  say "written: $REPORT (logs: $LOGS)"
  [ "$STEPS_FAILED" -eq 0 ] || die "$STEPS_FAILED parts failed"
}

# A second run on one day adds to the page.
report_head() {
  if [ ! -e "$REPORT" ]; then printf '# Long checks of %s\n' "$(date -u +%F)" >"$REPORT"; fi
  {
    printf '\n## %s UTC, commit %s\n\n' "$(date -u +%H:%M)" "$(git describe --always --dirty 2>/dev/null || echo none)"
    printf '%s cores, %s, Linux %s, %s.\n\n' "$(nproc)" \
      "$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)" "$(uname -r | cut -d. -f1-2)" \
      "$(rustc --version | cut -d' ' -f1-2)"
    printf '| check | result | seconds |\n| --- | --- | --- |\n'
  } >>"$REPORT"
}

# long_step NAME DETAIL-CMD CMD…: a step with a log and a row in the report.
# DETAIL-CMD LOG prints a few words for the row.
long_step() {
  local name=$1 detail=$2 log began=$SECONDS failed=$STEPS_FAILED result=ok
  shift 2
  log=$LOGS/${name//[^a-zA-Z0-9]/-}.log
  step "$name" logged "$log" "$@"
  [ "$STEPS_FAILED" -eq "$failed" ] || result=FAILED
  printf '| %s | %s; %s | %d |\n' "$name" "$result" "$("$detail" "$log")" $((SECONDS - began)) >>"$REPORT"
}

last_line() { grep -v '^[[:space:]]*$' "$1" | tail -n 1 | tr '|' '/' | sed 's/\x1b\[[0-9;]*m//g'; }

# need_cargo_tool NAME: from PATH, else installed beside the build.
need_cargo_tool() {
  PATH=$PATH:$TARGET/tools/bin
  if command -v "$1" >/dev/null; then return 0; fi
  say "installing $1 into $TARGET/tools"
  cargo install --quiet --locked --root "$TARGET/tools" "$1"
}

long_deny() {
  need_cargo_tool cargo-deny
  long_step "cargo deny" last_line cargo deny --color never check bans licenses sources
}

# A test that fails once in ten runs is found here, not by its next reader.
long_repeat() {
  local run runs=${REPEAT_RUNS:-10}
  for ((run = 1; run <= runs; run++)); do
    long_step "all Rust tests, run $run of $runs" nextest_words \
      cargo nextest run --workspace --color never
  done
}

nextest_words() { sed -n 's/^ *Summary \[[^]]*\] *//p' "$1" | tail -n 1; }

long_soak() {
  export SOAK_SECONDS=${SOAK_SECONDS:-1800}
  long_step "soak (the ignored tests), $SOAK_SECONDS s" nextest_words \
    cargo nextest run --workspace --color never --profile long --run-ignored only --no-tests pass
}

long_fuzz() {
  local seconds=${FUZZ_SECONDS:-300} target
  if [ ! -d fuzz/fuzz_targets ]; then
    say "there is no fuzz/ folder: nothing to fuzz"
    return 0
  fi
  need_cargo_tool cargo-fuzz
  for target in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$target" .rs)
    # cargo-fuzz wants unstable flags, which the stable compiler has under this name.
    long_step "fuzz $target, $seconds s" fuzz_words \
      env RUSTC_BOOTSTRAP=1 cargo fuzz run "$target" -- "-max_total_time=$seconds"
  done
}

fuzz_words() { grep -o 'Done [0-9]* runs.*' "$1" | tail -n 1; }

# Whether the tests of the two pure crates notice when the code is changed. What writes the generated files
# is left out: `./dev check` compares them.
long_mutants() {
  local package shard=()
  need_cargo_tool cargo-mutants
  if [ -n "${MUTANTS_SHARD:-}" ]; then shard=(--shard "$MUTANTS_SHARD"); fi
  for package in protocol policy; do
    long_step "mutants in $package${MUTANTS_SHARD:+, shard $MUTANTS_SHARD}" last_line \
      cargo mutants --colors never --package "bodyguard-$package" --exclude '**/src/bin/**' "${shard[@]}" --output "$LOGS/mutants-$package"
  done
}
