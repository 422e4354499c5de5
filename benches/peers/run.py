#!/usr/bin/env python3
"""Runs fem-solve and its peers on the same problem, in turn, and prints a table of medians and ratios.

    python3 benches/peers/run.py [--n 32 64] [--rounds 5] [--write docs/performance.md] [--reference PROGRAM]

The problem is the unit cube of n x n x n hex8 elements, E = 1, nu = 0.3, one face held, body force -1 along z, solved to a
true relative residual of 1e-8. Each round runs every program once, so that what disturbs the machine disturbs all of them;
figures are medians over the rounds. PETSc comes from Debian's libpetsc-real-dev. `--reference` names a program that takes
`y1 N`, honors OMP_NUM_THREADS and prints `RESULT ... assembly= setup= solve= its= uinf= rss_sum=`.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FEM_SOLVE = ROOT / "target/release/fem-solve"
KEYS = ["assembly", "setup", "solve", "total", "iterations", "memory", "u"]


# OpenMPI refuses to run as root, as containers do, unless told twice.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(command, env=None):
    output = subprocess.run(command, env={**os.environ, **AS_ROOT, **(env or {})}, capture_output=True, text=True, check=False)
    if output.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{output.stdout}\n{output.stderr}")
    return output.stdout


def mpirun(ranks):
    return ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks > 1 else []


def fem_solve(n, ranks, threads, settings=()):
    """Assembly, set-up and solution of one run of fem-solve."""
    with tempfile.TemporaryDirectory() as results:
        command = [*mpirun(ranks), FEM_SOLVE, ROOT / "cases/scaling/case.toml", "-q", "-o", results]
        command += ["--threads", threads, "--set", f"mesh.box.cells=[{n},{n},{n}]", "--set", "solver.method=cg"]
        for setting in settings:
            command += ["--set", setting]
        run([str(c) for c in command])
        summary = json.loads((pathlib.Path(results) / "summary.json").read_text())
    t, probes = summary["time_s"], {p["name"]: p["value"] for p in summary["probes"]}
    return {
        "assembly": t["assemble"],
        "setup": t["setup"],
        "solve": t["solve"],
        "total": t["assemble"] + t["setup"] + t["solve"],
        "iterations": summary["solver"]["iterations"],
        "memory": summary["memory_mib"]["peak_total"],
        "u": abs(probes["corner"][2]),
    }


def parsed(text):
    """The figures of a line of `key=value` pairs that starts with RESULT."""
    line = next(line for line in text.splitlines() if line.startswith("RESULT"))
    value = {k: float(v) for k, v in re.findall(r"(\w+)=(-?\d[-+.\deE]*)(?:\s|$)", line)}
    assembly = value["assembly"] + value.get("prealloc", 0.0)
    return {
        "assembly": assembly,
        "setup": value["setup"],
        "solve": value["solve"],
        "total": assembly + value["setup"] + value["solve"],
        "iterations": value["its"],
        "memory": value["rss_sum"],
        "u": value["uinf"],
    }


def build_petsc():
    """The PETSc program, compiled once into target/; None where PETSc or MPI's compiler is missing."""
    program = ROOT / "target/peers/petsc_elasticity"
    source = ROOT / "benches/peers/petsc_elasticity.c"
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "PETSc"], capture_output=True, text=True, check=False)
    if flags.returncode != 0 or not shutil.which("mpicc"):
        print("PETSc is left out: install libpetsc-real-dev", file=sys.stderr)
        return None
    program.parent.mkdir(parents=True, exist_ok=True)
    run(["mpicc", "-O3", "-march=native", str(source), "-o", str(program), *flags.stdout.split(), "-lm"])
    return program


def contestants(arguments):
    """Name and function of n for each program, fem-solve first."""
    found = [
        ("fem-solve, 1 thread", lambda n: fem_solve(n, 1, 1)),
        ("fem-solve, 2 threads", lambda n: fem_solve(n, 1, 2)),
        ("fem-solve, 2 ranks", lambda n: fem_solve(n, 2, 1)),
        ("fem-solve, block Jacobi, 1 thread", lambda n: fem_solve(n, 1, 1, ["solver.preconditioner=block_jacobi"])),
    ]
    petsc = build_petsc()
    if petsc:
        for name, options in [
            ("PETSc BAIJ + ICC", ["-mat_type", "baij", "-pc_type", "icc"]),
            ("PETSc SBAIJ + ICC", ["-mat_type", "sbaij", "-pc_type", "icc"]),
            ("PETSc AIJ + GAMG", ["-mat_type", "aij"]),
        ]:
            command = lambda n, o=options: [str(petsc), "-prob", "y1", "-n", str(n), *o]
            found.append((f"{name}, 1 rank", lambda n, c=command: parsed(run(c(n)))))
            if "ICC" not in name:
                found.append((f"{name}, 2 ranks", lambda n, c=command: parsed(run([*mpirun(2), *c(n)]))))
    if arguments.reference:
        for threads in (1, 2):
            env = {"OMP_NUM_THREADS": str(threads)}
            call = lambda n, e=env: parsed(run([arguments.reference, "y1", str(n)], e))
            found.append((f"reference, {threads} thread{'s' * (threads > 1)}", call))
    return found


def measure(n, programs, rounds):
    """Medians of each program over the rounds."""
    samples = {name: [] for name, _ in programs}
    for k in range(rounds):
        for name, call in programs:
            print(f"n = {n}, round {k + 1} of {rounds}: {name}", file=sys.stderr)
            samples[name].append(call(n))
    return {name: {key: statistics.median(s[key] for s in runs) for key in KEYS} for name, runs in samples.items()}


def table(n, medians):
    first = next(iter(medians.values()))
    lines = [
        f"### n = {n}: {3 * (n + 1) ** 3:,} degrees of freedom",
        "",
        "| program | assembly s | set-up s | solve s | total s | total, ours = 1 | iterations | memory MiB | displacement |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, m in medians.items():
        lines.append(
            f"| {name} | {m['assembly']:.3f} | {m['setup']:.3f} | {m['solve']:.3f} | {m['total']:.3f} | "
            f"{m['total'] / first['total']:.2f} | {m['iterations']:.0f} | {m['memory']:.0f} | {m['u']:.6f} |"
        )
    return "\n".join(lines) + "\n"


def machine():
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    version = run([str(FEM_SOLVE), "--version"]).strip()
    return (
        f"{time.strftime('%Y-%m-%d')}, {version}, {model.group(1) if model else platform.processor()}, "
        f"{os.cpu_count()} cores, load at the end {load}."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--reference", help="a reference program")
    parser.add_argument("--write", help="Markdown file whose part between the marks is replaced")
    arguments = parser.parse_args()
    programs = contestants(arguments)
    parts = [table(n, measure(n, programs, arguments.rounds)) for n in arguments.n]
    text = "\n".join([*parts, machine(), "", f"    python3 benches/peers/run.py {' '.join(sys.argv[1:])}"]) + "\n"
    print(text)
    if arguments.write:
        start, end = "<!-- peers: written by benches/peers/run.py -->\n", "<!-- end of peers -->\n"
        path = pathlib.Path(arguments.write)
        old = path.read_text(encoding="utf-8")
        path.write_text(old[: old.index(start) + len(start)] + text + old[old.index(end) :], encoding="utf-8")


if __name__ == "__main__":
    main()
