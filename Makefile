# make demo and make test need nothing but Debian or Ubuntu and Rust; setup installs the rest.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

# The OpenMPI build of HDF5; the serial build has its own folder, so the choice is made here and not by pkg-config.
# gcc may not be there yet when make starts; the name of the machine then gives the same on common ones.
MULTIARCH := $(shell gcc -print-multiarch 2>/dev/null || echo "$$(uname -m)-linux-gnu")
export HDF5_DIR ?= /usr/lib/$(MULTIARCH)/hdf5/openmpi
# OpenMPI refuses to run as root, as containers do, unless told twice; it refuses more ranks than cores unless told once.
ifeq ($(shell id -u),0)
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
endif

MPIRUN := mpirun --oversubscribe
RANKS ?= 2
RESULTS ?= results
BIN := target/release/fem-solve

.DEFAULT_GOAL := help
.PHONY: help setup setup-test setup-bench build demo test bench lint fmt meshes

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "make %-12s %s\n", $$1, $$2 }'

setup: ## installs what is missing to build and run (OpenMPI, HDF5, libclang)
	@scripts/setup.sh

setup-test: ## the same, and ParaView and the vtk wheel for the tests
	@scripts/setup.sh --test

setup-bench: ## the same, and PETSc, dolfinx, CalculiX and Gmsh for the benchmarks
	@scripts/setup.sh --bench

build: setup ## builds the release binary
	cargo build --release --locked

demo: build ## solves the bracket on two ranks and says what to open
	$(MPIRUN) -n $(RANKS) $(BIN) run cases/bracket/case.toml -o $(RESULTS)
	@echo
	@echo "Results are in $(RESULTS)/. Open with ParaView:"
	@echo "  paraview $(RESULTS)/results.vtkhdf       (5.12 and newer)"
	@echo "  paraview $(RESULTS)/results.hdf.series   (5.10 and 5.11)"
	@echo "then Apply, color by von_mises, and add the filter Warp By Vector. Numbers of the run: $(RESULTS)/summary.json"

test: setup-test lint ## format, lints and every test
	cargo test --workspace --locked

bench: setup-bench build ## times the phases, compares with other programs, writes docs/performance.md
	cargo bench --locked
	.venv/bin/python benches/peers/run.py --write docs/performance.md

lint: setup ## format and lints
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

fmt: ## formats the code
	cargo fmt --all

meshes: setup-test ## makes the mesh files of cases/ again
	.venv/bin/pip install --quiet -r scripts/requirements-meshes.txt
	.venv/bin/python scripts/make_meshes.py
