#!/usr/bin/env python3
"""Looks for the largest box that fem-solve solves within a limit of memory.

    .venv/bin/python benches/peers/largest.py [--gib 20] [--ranks 1] [--element hex8] [--step 4]

The problem is Y1(n) of problems.py with elements of any type, solved with all cores to a true residual of 1e-8. A first run
says how much memory a degree of freedom takes; from the size that this promises, n goes up by the step until a run fails,
or down until one succeeds. Each process may map no more than its share of the limit (RLIMIT_AS, which counts what is
mapped and not only what is used, so that the answer is on the safe side). Needs that much free memory and an otherwise
quiet machine: a run of ten million degrees of freedom takes one to two minutes on two cores.
"""

import argparse
import json
import resource

import problems
import programs
import report


def solve(given, n):
    """One run on n^3 cells; a dictionary with `error` if it failed."""
    shared = programs.shared_files(problems.Problem("Y1", 16, 14_739, 2.9))
    threads = str(max(1, len(programs.CORES) // given.ranks))
    settings = [f"mesh.box.cells=[{n},{n},{n}]", f'mesh.box.element="{given.element}"']
    command = [programs.FEM_SOLVE, shared / "case.toml", "-q", "-o", "results", "--threads", threads]
    for setting in settings:
        command += ["--set", setting]
    if given.ranks > 1:
        command = ["mpirun", "--oversubscribe", "-n", given.ranks, *command]
    share = int(given.gib * 2**30 / given.ranks)
    limited = ["prlimit", f"--as={share}"]
    # mpirun itself needs no limit; its ranks inherit that of the program before them.
    command = [*command[:4], *limited, *command[4:]] if given.ranks > 1 else [*limited, *command]
    with programs.scratch() as folder:
        command, env = [str(part) for part in command], programs.environment(programs.RANKS)
        wall, _, code, output = programs.start(command, folder, env)
        if code != 0:
            return {"error": programs.complaint(output, code)}
        summary = json.loads((folder / "results/summary.json").read_text(encoding="utf-8"))
    run = {
        "dofs": summary["dofs"],
        "mib": summary["memory_mib"]["peak_total"],
        "iterations": summary["solver"]["iterations"],
        "residual": summary["solver"]["true_residual"],
        "wall": wall,
    }
    if run["residual"] > problems.RESIDUAL:
        run["error"] = f"true residual {run['residual']:.1e}"
    return run


def search(given):
    """Runs by n, up to the largest that succeeds and the next one, that does not."""
    runs = {}

    def good(n):
        runs[n] = solve(given, n)
        print(f"n = {n}: {runs[n]}", flush=True)
        return "error" not in runs[n]

    first = given.first
    if not good(first):
        return runs
    promised = first * (given.gib * 1024 / runs[first]["mib"]) ** (1 / 3)
    n = max(first + given.step, int(promised) // given.step * given.step)
    up = good(n)
    while True:
        n += given.step if up else -given.step
        if n <= first or good(n) != up:
            return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=20.0, help="limit of memory over all ranks, GiB")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--element", default="hex8", help="as in [mesh] box of the case file")
    parser.add_argument("--first", type=int, default=48, help="n of the first run")
    parser.add_argument("--step", type=int, default=4, help="how finely n is looked for")
    given = parser.parse_args()
    available = resource.getrlimit(resource.RLIMIT_AS)[1]
    if 0 < available < given.gib * 2**30 / given.ranks:
        parser.error(f"this shell may map {available / 2**30:.1f} GiB only")
    programs.BUILD.mkdir(parents=True, exist_ok=True)
    runs = search(given)
    header = ["n", "degrees of freedom", "peak MiB", "bytes a degree of freedom", "iterations", "process s"]
    rows = []
    for n, run in sorted(runs.items()):
        if "error" in run:
            rows.append([str(n), "-", "-", "-", "-", f"failed: {run['error']}"])
        else:
            each = run["mib"] * 2**20 / run["dofs"]
            figures = [f"{run['dofs']:,}", f"{run['mib']:.0f}", f"{each:.0f}", str(run["iterations"]), f"{run['wall']:.0f}"]
            rows.append([str(n), *figures])
    solved = [run["dofs"] for run in runs.values() if "error" not in run]
    print(f"\n{given.element}, {given.ranks} rank(s), {given.gib:g} GiB: ", end="")
    print(f"{max(solved):,} degrees of freedom\n" if solved else "nothing was solved\n")
    print(report.table(header, rows))


if __name__ == "__main__":
    main()
