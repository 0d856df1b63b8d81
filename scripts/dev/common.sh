# shellcheck shell=bash
# Saying things, and steps with their times. Sourced by ./dev.

say() { printf 'dev: %s\n' "$*"; }

warn() { printf 'dev: %s\n' "$*" >&2; }

die() {
  warn "$*"
  exit 1
}

STEP_LINES=()
STEPS_FAILED=0

# step NAME CMD…: runs CMD with no input, notes its time and whether it failed,
# and goes on either way. `set -e` is off inside CMD: functions join lines with &&.
step() {
  local name=$1 began=$SECONDS status=0
  shift
  say "$name …"
  "$@" </dev/null || status=$?
  note_step "$name" $((SECONDS - began)) "$status"
}

note_step() { # NAME SECONDS STATUS
  local word=ok
  if [ "$3" -ne 0 ]; then
    word="FAILED ($3)"
    STEPS_FAILED=$((STEPS_FAILED + 1))
  fi
  STEP_LINES+=("$(printf '%5d s  %-34s %s' "$2" "$1" "$word")")
  say "$1: $word, $2 s"
}

print_steps() {
  local line
  say "steps:"
  for line in "${STEP_LINES[@]}"; do printf '  %s\n' "$line"; done
}

# The hash of some files' names and contents, for “has this changed?”.
hash_files() { sha256sum -- "$@" | sha256sum | cut -c1-64; }

# What to end and to remove when this script ends, however it ends.
ENDING_PIDS=()
ENDING_FOLDERS=()

end_well() {
  local pid folder
  for pid in "${ENDING_PIDS[@]}"; do kill "$pid" 2>/dev/null || true; done
  for folder in "${ENDING_FOLDERS[@]}"; do rm -rf "$folder"; done
}
trap end_well EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
