# shellcheck shell=bash
# The interface and the Rust programs. Sourced by ./dev.

export npm_config_fund=false npm_config_audit=false npm_config_update_notifier=false

ui_script() { (cd ui && npm run --silent "$@"); } # NAME [-- ARGS…]

ui_sources() {
  find ui \( -name node_modules -o -name dist -o -name coverage \) -prune -o -type f -print | sort
}

# The interface's dependencies, only when the lock file is another than last time.
ui_install() {
  local stamp=ui/node_modules/.bodyguard-lock wanted
  wanted="$(hash_files ui/package-lock.json) node $(node --version)"
  if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return 0; fi
  say "installing the interface's dependencies (npm ci)"
  (cd ui && npm ci --no-progress </dev/null)
  mkdir -p ui/node_modules
  printf '%s\n' "$wanted" >"$stamp"
}

# ui/dist, only when a source changed. The app embeds it at compile time.
ui_build() {
  local stamp=ui/node_modules/.bodyguard-dist wanted files
  ui_install
  mapfile -t files < <(ui_sources)
  wanted=$(hash_files "${files[@]}")
  if [ -f ui/dist/index.html ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return 0; fi
  say "building the interface"
  ui_script build </dev/null
  mapfile -t files < <(ui_sources) # a build may write generated sources
  hash_files "${files[@]}" >"$stamp"
  touch -c src-tauri/build.rs # cargo does not look into ui/dist by itself
}

# In this form, with --workspace, every command resolves the same features, so
# that nothing is compiled twice.
rust_everything() { cargo build --workspace --all-targets; }

rust_bins() { # [--bin NAME]…
  if [ $# -eq 0 ]; then set -- --bins; fi
  cargo build --workspace "$@"
}

cmd_build() {
  [ $# -eq 0 ] || die "build takes no arguments"
  need_to_build
  ui_build
  say "building the body host (release)"
  cargo build --release -p bodyguard-body
  say "building the app and its Debian package (release)"
  ui/node_modules/.bin/tauri build --bundles deb </dev/null
  say "made:"
  find "$TARGET/release" -maxdepth 1 -type f -name 'bodyguard*' -perm -u+x -print
  find "$TARGET/release/bundle/deb" -maxdepth 1 -name '*.deb' -print
}
