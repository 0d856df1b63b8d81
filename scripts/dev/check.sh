# shellcheck shell=bash
# Formatting, lints, types, documentation. Sourced by ./dev.

cmd_check() {
  [ $# -eq 0 ] || die "check takes no arguments"
  need_to_build
  need_rust_tools
  need_packages "check the scripts" "${CHECK_PACKAGES[@]}"
  ui_build

  step "rustfmt" cargo fmt --all --check
  step "shellcheck" check_scripts
  step "house rules" node scripts/tidy.mjs
  step "prettier" ui_script format:check
  step "eslint" ui_script lint
  step "svelte-check" ui_script check
  step "clippy" cargo clippy --workspace --all-targets -- -D warnings
  step "rustdoc" check_docs
  step "generated types" check_types
  print_steps
  [ "$STEPS_FAILED" -eq 0 ] || die "$STEPS_FAILED of the checks failed"
}

check_scripts() {
  shellcheck --external-sources --check-sourced dev .ci/run scripts/icons tests/clients/install.sh
}

check_docs() { RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --quiet; }

check_types() {
  rust_bins --bin export-types --quiet &&
    "$TARGET/debug/export-types" --check
}
