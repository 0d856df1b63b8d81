# shellcheck shell=bash
# What a machine needs: Debian packages, Rust, Node. Sourced by ./dev.

BUILD_PACKAGES=(
  build-essential pkg-config libwebkit2gtk-4.1-dev
  # screen capture (xcap) and notifications
  libpipewire-0.3-dev libclang-dev libgbm-dev libxcb1-dev libegl-dev
  libwayland-dev libxrandr-dev libdbus-1-dev
)
RUN_PACKAGES=(bubblewrap libayatana-appindicator3-1 xvfb openbox) # the last two: private desktops
CHECK_PACKAGES=(shellcheck)
TEST_PACKAGES=(chromium git) # page tests; repositories to look at

# The virtual desktop and what the tests use on it, one package per line.
desktop_packages() { sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' tests/harness/packages.txt; }

# need_packages REASON PACKAGE…: installs those that are missing.
need_packages() {
  local reason=$1 missing
  shift
  if ! command -v dpkg-query >/dev/null; then
    warn "this is not a Debian system: make sure that you have what these packages hold, to $reason:"
    warn "  $*"
    return 0
  fi
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  say "to $reason, these Debian packages are missing: ${missing[*]}"
  install_packages "${missing[@]}"
}

missing_packages() {
  comm -23 \
    <(printf '%s\n' "$@" | sort -u) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' | sort -u)
}

install_packages() {
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      warn "I can't install them: this is neither root nor a user whose sudo needs no password. Run this, then try again:"
      warn "  sudo apt-get update && sudo apt-get install --no-install-recommends $*"
      exit 1
    fi
    as_root=(sudo -n)
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  say "installing them with apt-get"
  "${as_root[@]}" apt-get -qq -o DPkg::Lock::Timeout=300 update </dev/null ||
    warn "apt-get update failed; trying with the lists that are here"
  "${as_root[@]}" apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 install "$@" </dev/null >/dev/null ||
    die "apt-get could not install: $*"
}

# version_at_least HAVE WANT
version_at_least() { [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

need_rust() {
  local want have
  want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  [ -x "$HOME/.cargo/bin/cargo" ] && PATH=$PATH:$HOME/.cargo/bin
  if ! command -v cargo >/dev/null; then
    warn "Rust is missing (cargo, $want or newer; Debian 12's own is too old). Install it with rustup, see https://rustup.rs:"
    die "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y"
  fi
  have=$(rustc --version | cut -d' ' -f2)
  version_at_least "$have" "$want" || die "Rust $want or newer is needed, here is $have: rustup update stable"
}

need_rust_tools() {
  if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
    die "rustfmt and clippy are needed: rustup component add rustfmt clippy"
  fi
}

need_node() {
  local want=20.19.0 have=none
  command -v node >/dev/null && have=$(node --version) && have=${have#v}
  if [ "$have" = none ] || ! version_at_least "$have" "$want" || ! command -v npm >/dev/null; then
    warn "Node $want or newer with npm is needed to build the interface; here is: $have. Debian 12's own nodejs is 18. Ways to a newer one:"
    warn "  – the archive from https://nodejs.org/en/download, unpacked, its bin folder in PATH"
    warn "  – nvm (https://github.com/nvm-sh/nvm): nvm install 22"
    warn "  – NodeSource's packages for Debian: https://github.com/nodesource/distributions"
    die "then try again"
  fi
}

need_to_build() {
  need_packages "build the app" "${BUILD_PACKAGES[@]}"
  need_rust
  need_node
}

need_desktop() {
  local packages
  mapfile -t packages < <(desktop_packages)
  need_packages "run a virtual desktop" "${packages[@]}"
}
