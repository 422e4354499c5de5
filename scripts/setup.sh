#!/usr/bin/env bash
# Installs what fem-solve needs on Debian or Ubuntu; does nothing where it is there already.
#
#   scripts/setup.sh          to build and run: OpenMPI, parallel HDF5, libclang
#   scripts/setup.sh --test   for the tests too: ParaView without a display, a Python environment with the vtk wheel
#   scripts/setup.sh --bench  for the benchmarks: PETSc, dolfinx and CalculiX, a Python environment with Gmsh
#
# Rust is not installed here: see https://rustup.rs; rust-toolchain.toml names the version.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(openmpi-bin libopenmpi-dev libhdf5-openmpi-dev libclang-dev pkg-config gcc libc6-dev)
venv=.venv
requirements=
case "${1-}" in
  "") ;;
  --test)
    requirements=scripts/requirements.txt
    packages+=(paraview python3-paraview xvfb xauth python3-venv)
    ;;
  --bench)
    requirements=benches/peers/requirements.txt
    # The libraries at the end are what Gmsh's wheel expects of a desktop.
    packages+=(g++ calculix-ccx libpetsc-real-dev python3-dolfinx python3-venv)
    packages+=(libglu1-mesa libxcursor1 libxft2 libxinerama1 libxrender1)
    ;;
  *)
    echo "usage: scripts/setup.sh [--test | --bench]" >&2
    exit 2
    ;;
esac

# FEM_SETUP_SKIP=1: the machine is looked after by somebody else (an image, modules, no root).
if [[ "${FEM_SETUP_SKIP-}" == 1 ]]; then
  echo "setup: skipped, FEM_SETUP_SKIP=1"
  exit 0
fi

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

install_packages() {
  local missing=()
  mapfile -t missing < <(missing_packages "${packages[@]}")
  [[ ${#missing[@]} -eq 0 ]] && return
  if ! command -v apt-get >/dev/null; then
    echo "setup: this is not Debian or Ubuntu; please install what these packages contain, then set FEM_SETUP_SKIP=1:" >&2
    printf '  %s\n' "${missing[@]}" >&2
    exit 1
  fi
  local root=()
  if [[ $EUID -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: neither root nor sudo; please install: ${missing[*]}" >&2
      exit 1
    fi
    root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

install_python() {
  # The stamp is a copy of the list that was installed, so that a changed list installs again.
  local stamp
  stamp="$venv/$(basename "$(dirname "$requirements")").installed"
  cmp -s "$requirements" "$stamp" && return
  echo "setup: Python packages into $venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$stamp"
}

if ! command -v cargo >/dev/null; then
  echo "setup: cargo is missing; install Rust from https://rustup.rs and try again" >&2
  exit 1
fi
install_packages
if [[ -n $requirements ]]; then
  install_python
fi
