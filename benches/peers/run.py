#!/usr/bin/env python3
"""Runs fem-solve, its prototype and its rivals on the same problems, in turn, and prints tables of times and ratios.

    .venv/bin/python benches/peers/run.py [--quick] [--only Y1,Y2] [--rounds N] [--write docs/performance.md]

`make bench` installs what is needed (scripts/setup.sh --bench), builds and runs this with --write. Problems and answers are
in problems.py, the programs in programs.py. Each round runs every program once, so that what disturbs the machine disturbs
all of them; programs that take minutes run in the first round only. A run counts if it meets the criterion of its problem
and has the right answer; another one is shown with the reason and is not timed. Everything that was measured is kept in
target/peers/samples.json, from which --report makes the tables again.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

import cantilever
import problems
import programs
import report

PARTS = ["Y1", "Y2", "Y3", "iterations", "cantilever"]
MARKS = ("<!-- peers: written by benches/peers/run.py -->\n", "<!-- end of peers -->\n")
SAMPLES = programs.BUILD / "samples.json"
SIZES, N_RANKS = [16, 32, 48, 64, 80, 96], [1, 2, 4, 8, 16]


def tell(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def measure_triad(program):
    """GB/s by number of threads."""
    found = {}
    for n_threads in (1, 2)[: len(programs.CORES)]:
        env = {**programs.environment(programs.THREADS), "OMP_NUM_THREADS": str(n_threads)}
        output = subprocess.run([program], env=env, capture_output=True, text=True, check=True).stdout
        found[n_threads] = float(re.search(r"RESULT triad=(\S+)", output).group(1))
    return found


def compare(chosen, rounds):
    """Samples by problem and program, and the best triad seen."""
    candidates = programs.all_programs()
    triad_program = programs.compiled("triad", ["gcc", "-fopenmp"], ["triad.c"])
    samples, triad = {}, {}
    for problem in chosen:
        shared = programs.shared_files(problem)
        entered = [p for p in candidates if p.solves(problem)]
        samples[problem.name] = {p.label: [] for p in entered}
        for k in range(rounds):
            for n_threads, speed in (measure_triad(triad_program) if triad_program else {}).items():
                triad[n_threads] = max(speed, triad.get(n_threads, 0.0))
            for program in entered:
                if k > 0 and program.once(problem):
                    continue
                run = programs.execute(program, problem, shared)
                why = programs.verdict(problem, run)
                outcome = f"failed: {why}" if why else f"{run.get('total', run['wall']):.3f} s"
                tell(f"{problem.name}, round {k + 1} of {rounds}: {program.label}: {outcome}")
                samples[problem.name][program.label].append({**run, "error": why} if why else run)
    return samples, triad


def count_iterations(sizes, n_ranks):
    """Iterations of fem-solve over the size of Y1, and over the ranks at n = 32."""
    expected = {p.size: p.expected for p in problems.FULL if p.kind == "Y1"}

    def run(n, where, ranks=1):
        shared = programs.shared_files(problems.Problem("Y1", n, 3 * (n + 1) ** 3, expected.get(n, 2.94)))
        program = next(p for p in programs.fem_solve() if p.where == programs.THREADS)
        command = [str(c) for c in program.command(None, shared)]
        if where == programs.RANKS:
            command[command.index("--threads") + 1] = "1"
            command = ["mpirun", "--oversubscribe", "-n", str(ranks), *command]
        with programs.scratch() as folder:
            _, _, code, output = programs.start(command, folder, programs.environment(where))
            outcome = program.figures(output, folder) if code == 0 else {"error": programs.complaint(output, code)}
        tell(f"iterations, n = {n}, {ranks} rank(s): {outcome.get('iterations', outcome.get('error'))}")
        return outcome

    by_size = {n: run(n, programs.THREADS) for n in sizes}
    by_ranks = {ranks: run(min(32, max(sizes)), programs.RANKS, ranks) for ranks in n_ranks}
    return by_size, by_ranks


def machine(samples):
    """Processor, system, versions of all programs."""
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*:\s*(.*)", cpuinfo)
    memory = re.search(r"MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text(encoding="utf-8"))
    system = re.search(r'PRETTY_NAME="(.*)"', pathlib.Path("/etc/os-release").read_text(encoding="utf-8"))
    versions = {}
    for by_label in samples.values():
        for label, runs in by_label.items():
            told = [run["version"] for run in runs if "version" in run]
            if told:
                versions[label.split(",")[0].split()[0]] = told[0]
    gcc = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=False).stdout.strip()
    told = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return (
        f"{model.group(1) if model else platform.processor()}, {len(programs.CORES)} cores, "
        f"{int(memory.group(1)) / 2**20:.0f} GiB, {system.group(1) if system else platform.system()}, "
        f"Linux {platform.release()}; {told}; peers compiled by gcc {gcc} -O3 -march=native"
    )


def text_of(kept, picture):
    """The part of docs/performance.md between the marks."""
    chosen = [problems.Problem(**p) for p in kept["problems"]]
    samples = kept["samples"]
    start, end = kept["load"]
    parts = [
        f"Measured on {kept['date']}: {kept['machine']}. Load of the machine {start:.1f} at the start, {end:.1f} at the end "
        f"(two ranks or threads make 2). Rounds: {kept['rounds']}; command:\n\n    {kept['command']}\n"
    ]
    if samples:
        parts.append("### Ratios\n\n" + report.ratio_table(chosen, samples))
        if picture:
            parts.append(f"![Time of the others over that of fem-solve]({picture})\n")
        parts += [report.problem_table(p, samples[p.name]) for p in chosen]
        parts.append("### Peak memory, MiB\n\n" + report.memory_table(chosen, samples))
    triad = {int(n): speed for n, speed in kept["triad"].items()}
    largest = max((p for p in chosen if p.kind == "Y1"), key=lambda p: p.size, default=None)
    if largest and triad:
        units = report.work_unit_table(int(largest.size), samples[largest.name], triad)
        parts.append(f"### Work units of {largest.name}\n\n{units}")
    if kept["iterations"]:
        parts.append("### Iterations\n\n" + report.iteration_tables(*kept["iterations"]))
    if kept["cantilever"]:
        parts.append("### A small cantilever, whole processes\n\n" + report.cantilever_table(kept["cantilever"]))
    return "\n".join(parts)


def write(path, text):
    """Replaces what stands between the marks."""
    start, end = MARKS
    old = path.read_text(encoding="utf-8")
    path.write_text(old[: old.index(start) + len(start)] + text + old[old.index(end) :], encoding="utf-8")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small problems, one round: whether everything works")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}, or problems as Y1(32)")
    parser.add_argument("--rounds", type=int, help="5 by default")
    parser.add_argument("--write", type=pathlib.Path, help="Markdown file whose part between the marks is replaced")
    parser.add_argument("--report", action="store_true", help="measures nothing, shows what was measured last")
    given = parser.parse_args()
    given.only = given.only.split(",")
    given.rounds = given.rounds or (1 if given.quick else 5)
    known = PARTS + [p.name for p in problems.FULL + problems.QUICK]
    unknown = [part for part in given.only if part not in known]
    if unknown:
        parser.error(f"--only {','.join(unknown)}: give some of {', '.join(known)}")
    return given


def measure(given):
    """Everything that was asked for, as it is kept in samples.json."""
    load = os.getloadavg()[0]
    if load > 0.5:
        tell(f"the machine is busy (load {load:.1f}): times will be too long, ratios uncertain")
    offered = problems.QUICK if given.quick else problems.FULL
    chosen = [p for p in offered if p.kind in given.only or p.name in given.only]
    samples, triad = compare(chosen, given.rounds) if chosen else ({}, {})
    kept = {
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join([".venv/bin/python", "benches/peers/run.py", *sys.argv[1:]]),
        "rounds": given.rounds,
        "machine": machine(samples),
        "problems": [vars(p) for p in chosen],
        "samples": samples,
        "triad": triad,
        "iterations": [],
        "cantilever": {},
    }
    if "iterations" in given.only:
        kept["iterations"] = count_iterations(*((SIZES[:1], N_RANKS[:3]) if given.quick else (SIZES, N_RANKS)))
    if "cantilever" in given.only:
        kept["cantilever"] = cantilever.compare(given.rounds)
    kept["load"] = [load, os.getloadavg()[0]]
    # As json gives it back: keys are text.
    text = json.dumps(kept, indent=1)
    SAMPLES.write_text(text, encoding="utf-8")
    return json.loads(text)


def main():
    given = arguments()
    kept = json.loads(SAMPLES.read_text(encoding="utf-8")) if given.report else measure(given)
    picture = (given.write or SAMPLES).with_suffix(".svg")
    if kept["samples"]:
        report.draw([problems.Problem(**p) for p in kept["problems"]], kept["samples"], picture)
    text = text_of(kept, picture.name if kept["samples"] else None)
    print(text)
    if given.write:
        write(given.write, text)


if __name__ == "__main__":
    main()
