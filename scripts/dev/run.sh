# shellcheck shell=bash
# The app, on the display that is here or on a virtual one. Sourced by ./dev.

has_display() { [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; }

cmd_run() { # [--demo [--auto-person]] [-- APP ARGS…]
  local demo=no person=you
  while [ $# -gt 0 ]; do
    case $1 in
      --demo) demo=yes ;;
      --auto-person) person=scripted ;;
      --)
        shift
        break
        ;;
      *) die "run knows --demo, --auto-person and -- ARGS, not: $1" ;;
    esac
    shift
  done
  if [ "$person" = scripted ] && [ "$demo" = no ]; then die "--auto-person goes with --demo"; fi
  if [ "$demo" = yes ]; then
    [ $# -eq 0 ] || die "the demo takes no arguments for the app"
    run_demo "$person"
  else
    run_app "$@"
  fi
}

need_to_run() {
  need_to_build
  need_packages "run the app" "${RUN_PACKAGES[@]}"
  ui_build
}

run_app() { # APP ARGS…
  local bins=(--bin bodyguard --bin bodyguard-body)
  need_to_run
  if has_display; then
    rust_bins "${bins[@]}"
    say "starting the app; end it with Ctrl+C or from its tray"
    exec "$TARGET/debug/bodyguard" "$@"
  fi
  need_desktop
  rust_bins "${bins[@]}" --bin virtual-desktop
  say "there is no display here: the app gets a virtual one; end it with Ctrl+C"
  say "its data folder, for bodyguard's --data: $(state_home)/data"
  on_virtual_desktop "$(state_home)/desktop-home" -- \
    "$TARGET/debug/bodyguard" --data "$(state_home)/data" "$@"
}

# What the app on a virtual desktop keeps from one start to the next.
state_home() { printf '%s/bodyguard-dev' "${XDG_STATE_HOME:-$HOME/.local/state}"; }

# It prints how to see the desktop, and the password for this run.
on_virtual_desktop() { # HOME [OPTIONS…] -- CMD…
  local home=$1
  shift
  (umask 077 && mkdir -p "$home")
  "$TARGET/debug/virtual-desktop" --home "$home" "$@"
}

run_demo() { # you|scripted
  local person=$1 folder bins=(bodyguard bodyguard-body demo-agent)
  need_to_run
  if [ "$person" = scripted ] || ! has_display; then
    need_desktop
    bins+=(virtual-desktop demo-person)
  fi
  # shellcheck disable=SC2046 # one word each
  rust_bins $(printf -- '--bin %s ' "${bins[@]}")
  folder=$(mktemp -d /tmp/bodyguard-demo.XXXXXX) # short: it holds a socket
  ENDING_FOLDERS+=("$folder")
  demo_workspace "$folder"
  demo_explain "$person" "$folder"
  if [ "$person" = scripted ] || ! has_display; then
    demo_password "$folder/vnc-password"
    on_virtual_desktop "$folder/home" --vnc-socket "$folder/vnc.sock" --vnc-password-file "$folder/vnc-password" -- \
      env CARGO_TARGET_DIR="$TARGET" "$ROOT/dev" demo-steps "$person" "$folder"
  else
    cmd_demo_steps "$person" "$folder"
  fi
}

# Also for the scripted person, who sees the screen in the same way.
demo_password() { # FILE
  (umask 077 && head -c 6 /dev/urandom | base64 | tr '+/' 'xy' >"$1")
  say "password for viewers in this run: $(cat "$1")"
}

demo_workspace() { # FOLDER
  mkdir "$1/workspace"
  # Root has commands step down to another user, who must get as far as the workspace.
  if [ "$(id -u)" -eq 0 ]; then chmod 711 "$1" && chmod 755 "$1/workspace"; fi
  printf 'Shopping\n- bread\n- milk\n' >"$1/workspace/notes.md"
  "$TARGET/debug/bodyguard" init --data "$1/data" --workspace "demo=$1/workspace" --agent demo
}

demo_explain() { # you|scripted FOLDER
  cat <<TEXT

  A scripted agent, speaking MCP like any other, is going to work in
  $2/workspace. It looks around, reads notes.md, asks to edit it, asks to run
  a command, and tries something that is forbidden. Nothing that it asks for
  happens without a decision in Bodyguard's window.
TEXT
  if [ "$1" = you ]; then
    cat <<'TEXT'
  You decide: read each request in the window, then press Approve or Deny in
  the bar at its foot. Take your time; the agent waits.

TEXT
  else
    cat <<'TEXT'
  A scripted person decides, who sees the screen and moves a pointer by VNC.

TEXT
  fi
}

# On the desktop: app, agent, and the person if it is a scripted one.
cmd_demo_steps() { # you|scripted FOLDER
  local person=$1 folder=$2 app status=0 bodyguard=$TARGET/debug/bodyguard
  "$bodyguard" --data "$folder/data" >"$folder/app.log" 2>&1 &
  app=$!
  ENDING_PIDS+=("$app")
  if [ "$person" = scripted ]; then
    "$TARGET/debug/demo-person" --vnc-socket "$folder/vnc.sock" --vnc-password-file "$folder/vnc-password" &
    ENDING_PIDS+=("$!")
  fi
  "$TARGET/debug/demo-agent" --data "$folder/data" || status=$?
  if [ "$status" -ne 0 ]; then
    warn "the agent ended with $status; the app's last words:"
    tail -n 20 "$folder/app.log" >&2 || true
  fi
  say "what the log holds:"
  "$bodyguard" trace list --data "$folder/data" || status=1
  "$bodyguard" verify --data "$folder/data" || status=1
  if [ "$person" = you ]; then
    say "look around in the window (Traces shows what happened); Ctrl+C ends the demo"
    wait "$app" || true
  fi
  return "$status"
}

cmd_desktop() { # -- CMD…
  if [ "${1:-}" = -- ]; then shift; fi
  [ $# -gt 0 ] || die "say what to run: ./dev desktop -- CMD…"
  need_to_build
  need_desktop
  rust_bins --quiet --bin virtual-desktop
  exec "$TARGET/debug/virtual-desktop" -- "$@"
}
