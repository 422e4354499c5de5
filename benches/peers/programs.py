"""The programs that are compared: how each is built and started, and where its figures stand.

A run is a dictionary: `wall` (the whole process), `memory` (MiB, sum over the ranks), `u` (largest component of the
displacement) and, where the program tells them, `assembly`, `setup`, `solve`, `total` (their sum), `iterations`,
`residual`, `backward`; `error` says why there are none.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Callable

import h5py
import numpy as np

import problems

HERE = problems.HERE
ROOT = HERE.parents[1]
BUILD = ROOT / "target/peers"
FEM_SOLVE = ROOT / "target/release/fem-solve"
TIMEOUT = 1800
CORES = sorted(os.sched_getaffinity(0))

ONE, THREADS, RANKS = "1 core", "2 threads", "2 ranks"


@dataclasses.dataclass(frozen=True)
class Program:
    """A program in one configuration. `command(problem, folder)` gives arguments and is started in an empty folder,
    where `files(problem, shared, folder)` puts what it reads; `figures(output, folder)` reads the run's figures."""

    name: str
    where: str
    command: Callable
    figures: Callable
    solves: Callable = lambda problem: True
    files: Callable = lambda problem, shared, folder: None
    # Runs longer than the others are worth one round.
    once: Callable = lambda problem: False

    @property
    def label(self):
        return f"{self.name}, {self.where}"


def placed(where, command, n_ranks=2):
    """The command on one core, or on as many ranks."""
    command = [str(part) for part in command]
    if where == ONE:
        return ["taskset", "-c", str(CORES[-1]), *command]
    if where == RANKS:
        return ["mpirun", "--bind-to", "core", "-n", str(n_ranks), *command]
    return command


def environment(where):
    threads = "2" if where == THREADS else "1"
    # OpenMPI refuses to run as root, as containers do, unless told twice.
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**os.environ, **root, "OMP_NUM_THREADS": threads}


def start(command, folder, env, timeout=TIMEOUT):
    """Runs to the end; wall seconds, MiB of the process, exit code and what was printed."""
    log = folder / "output.txt"
    with open(log, "w", encoding="utf-8") as output:
        begin = time.perf_counter()
        job = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        timer = threading.Timer(timeout, os.killpg, (job.pid, signal.SIGKILL))
        timer.start()
        _, status, usage = os.wait4(job.pid, 0)
        wall = time.perf_counter() - begin
        timer.cancel()
        job.returncode = os.waitstatus_to_exitcode(status)
    return wall, usage.ru_maxrss / 1024, job.returncode, log.read_text(encoding="utf-8", errors="replace")


@contextlib.contextmanager
def scratch():
    """A folder that is removed."""
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        yield pathlib.Path(name)


def complaint(output, code):
    """What a program said before it gave up."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    told = [line for line in lines if re.match(r"error|memory allocation|\[\d+\]PETSC ERROR: [A-Z]", line)]
    return f"exit code {code}: {(told or lines[-1:] or ['nothing printed'])[0][:120]}"


def execute(program, problem, shared):
    """One run."""
    with scratch() as folder:
        try:
            program.files(problem, shared, folder)
            command = placed(program.where, program.command(problem, shared))
            wall, memory, code, output = start(command, folder, environment(program.where))
            if code != 0:
                return {"error": complaint(output, code)}
            return {"wall": wall, "memory": memory, **program.figures(output, folder)}
        except (OSError, KeyError, ValueError) as error:
            return {"error": f"{type(error).__name__}: {error}"}


def verdict(problem, run):
    """Why a run does not count; None for a good one."""
    if "error" in run:
        return run["error"]
    if run.get("converged", 1) != 1:
        return "not converged"
    if problem.kind == "Y3":
        if not run.get("backward", 0.0) <= problems.BACKWARD:
            return f"backward error {run['backward']:.1e}, above {problems.BACKWARD:.0e}"
    elif not run.get("residual", 0.0) <= 1.001 * problems.RESIDUAL:
        return f"true residual {run['residual']:.1e}, above {problems.RESIDUAL:.0e}"
    if run.get("dofs", problem.dofs) != problem.dofs and problem.is_box:
        return f"{run['dofs']:.0f} degrees of freedom instead of {problem.dofs}"
    # Another version of Gmsh meshes the plate a little differently.
    tolerance = problems.ANSWER[problem.kind] if run.get("dofs", problem.dofs) == problem.dofs else 1e-3
    deviation = abs(run["u"] / problem.expected - 1.0)
    if not deviation <= tolerance:
        return f"displacement {run['u']:.7g} is {deviation:.1e} off"
    return None


def parsed(output, _folder=None):
    """The figures of a line of `key=value` pairs that starts with RESULT."""
    line = next((line for line in output.splitlines() if line.startswith("RESULT")), None)
    if line is None:
        raise ValueError("no line RESULT was printed")
    run = dict(re.findall(r"(\w+)=(\S+)", line))
    version = run.pop("version", None)
    run = {key: float(value) for key, value in run.items()}
    run["total"] = run["assembly"] + run["setup"] + run["solve"]
    return {**run, "version": version} if version else run


def of_summary(_output, folder):
    """The figures of fem-solve: summary.json, and the displacement in the result file."""
    summary = json.loads((folder / "results/summary.json").read_text(encoding="utf-8"))
    seconds, solver = summary["time_s"], summary["solver"]
    with h5py.File(folder / "results/results.vtkhdf") as file:
        u = float(np.abs(file["VTKHDF/PointData/displacement"][:]).max())
    return {
        "dofs": summary["dofs"],
        "assembly": seconds["assemble"],
        "setup": seconds["setup"],
        "solve": seconds["solve"],
        "total": seconds["assemble"] + seconds["setup"] + seconds["solve"],
        "iterations": solver["iterations"],
        "residual": solver["true_residual"],
        "backward": solver["backward_error"],
        "memory": summary["memory_mib"]["peak_total"],
        "u": u,
        "version": summary["program"].split()[-1],
    }


def of_calculix(output, folder):
    """Largest displacement in the .frd file, which has six digits, and the iterations of its conjugate gradients."""
    largest, inside = 0.0, False
    with open(folder / "deck.frd", encoding="utf-8") as file:
        for line in file:
            if line.startswith(" -4"):
                inside = "DISP" in line
            elif inside and line.startswith(" -1"):
                largest = max(largest, *(abs(float(line[13 + 12 * k : 25 + 12 * k])) for k in range(3)))
            elif line.startswith(" -3"):
                inside = False
    version = re.search(r"CalculiX Version (\S+?),", output)
    run = {"u": largest, "version": version.group(1) if version else "?"}
    iterations = re.findall(r"ITERATION\s*=?\s*(\d+)", output, flags=re.IGNORECASE)
    return {**run, "iterations": float(iterations[-1])} if iterations else run


def fem_solve():
    found = []
    for where in (ONE, THREADS, RANKS):
        threads = "2" if where == THREADS else "1"
        command = lambda problem, shared, n=threads: (
            [FEM_SOLVE, shared / "case.toml", "-q", "-o", "results", "--threads", n]
        )
        found.append(Program("fem-solve", where, command, of_summary))
    return found


def prototype():
    program = compiled("prototype", ["g++", "-std=c++17", "-fopenmp"], ["prototype/main.cpp"])
    if program is None or "avx2" not in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        return []
    command = lambda problem, shared: [program, *arguments(problem, shared)]
    return [Program("prototype", where, command, parsed) for where in (ONE, THREADS)]


def petsc():
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "PETSc"], capture_output=True, text=True, check=False)
    if flags.returncode != 0:
        return missing("PETSc", "libpetsc-real-dev")
    program = compiled("petsc_elasticity", ["mpicc"], ["petsc_elasticity.c"], [*flags.stdout.split(), "-lm"])
    if program is None:
        return []
    found = []
    for where in (ONE, RANKS):
        command = lambda problem, shared, w=where: [program, *petsc_arguments(problem), *gamg(problem, w)]
        found.append(Program("PETSc GAMG", where, command, parsed, solves=lambda problem: problem.is_box))
    half = ["-mat_type", "sbaij", "-pc_type", "icc"]
    command = lambda problem, shared: [program, *petsc_arguments(problem), *half]
    found.append(Program("PETSc ICC", ONE, command, parsed, solves=lambda problem: problem.kind == "Y1"))
    return found


def petsc_arguments(problem):
    return ["-prob", problem.kind.lower(), "-n", f"{problem.size:g}"]


def gamg(problem, where):
    """What made GAMG fastest here: the product by the explicit transpose (one rank only) and, but for the uniform cube,
    a threshold. In Y3 the residual that the method carries along goes on falling long after the true one has stopped."""
    options = ["-matptap_via", "rap"] if where == ONE else []
    if problem.kind != "Y1":
        options += ["-pc_gamg_threshold", "0.05"]
    if problem.kind == "Y3":
        options += ["-ksp_rtol", "1e-5"]
    return options


def dolfinx():
    probe = ["/usr/bin/python3", "-c", "import dolfinx.fem.petsc"]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        return missing("dolfinx", "python3-dolfinx")
    script = ["/usr/bin/python3", HERE / "dolfinx_elasticity.py"]
    # Forms are compiled once and kept in the user's cache; this is not to be timed.
    print("dolfinx: compiling its forms", file=sys.stderr)
    for tiny in (problems.Problem("Y1", 2, 81, 0.0), problems.QUICK[1]):
        shared = shared_files(tiny)
        subprocess.run([*map(str, script), *arguments(tiny, shared)], capture_output=True, check=False)
    found = []
    for where in (ONE, RANKS):
        command = lambda problem, shared, w=where: [*script, *arguments(problem, shared), "--", *gamg(problem, w)]
        found.append(Program("dolfinx GAMG", where, command, parsed, solves=lambda problem: problem.kind != "Y3"))
    return found


def calculix():
    if not shutil.which("ccx"):
        return missing("CalculiX", "calculix-ccx")
    found = []
    for name, solver, solves in (
        ("CalculiX CG", "ITERATIVE SCALING", lambda problem: problem.kind == "Y1"),
        # 400,000 degrees of freedom take its direct solver 3 GiB and three minutes.
        ("CalculiX SPOOLES", "", lambda problem: problem.dofs <= 400_000),
    ):
        files = lambda problem, shared, folder, s=solver: link_deck(problem, shared, folder, s)
        once = lambda problem: problem.dofs > 50_000
        for where in (ONE, THREADS):
            command = lambda problem, shared: ["ccx", "deck"]
            found.append(Program(name, where, command, of_calculix, solves=solves, files=files, once=once))
    return found


def link_deck(problem, shared, folder, solver):
    deck = shared / f"deck-{solver.replace(' ', '-').lower() or 'direct'}.inp"
    if not deck.exists():
        problems.write_deck(problem, shared, deck, solver)
    (folder / "deck.inp").symlink_to(deck)


def shared_files(problem):
    """The folder with the files of a problem, made where it is missing."""
    folder = BUILD / problem.name
    problems.write_files(problem, folder)
    return folder


def arguments(problem, shared):
    return [str(shared / a) if a.endswith(".bin") else a for a in problem.arguments]


def missing(name, package):
    print(f"{name} is left out: install {package}", file=sys.stderr)
    return []


def compiled(name, compiler, sources, libraries=()):
    """A program of this folder, compiled into the build folder; None where it cannot be."""
    if not shutil.which(compiler[0]):
        return missing(name, compiler[0]) or None
    program = BUILD / name
    BUILD.mkdir(parents=True, exist_ok=True)
    paths = [str(HERE / source) for source in sources]
    command = [*compiler, "-O3", "-march=native", *paths, "-o", str(program), *libraries]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        print(f"{name} is left out, it does not compile:\n{built.stderr}", file=sys.stderr)
        return None
    return program


def all_programs():
    """Every program there is, fem-solve first."""
    BUILD.mkdir(parents=True, exist_ok=True)
    found = [*fem_solve(), *prototype(), *petsc(), *dolfinx(), *calculix()]
    return [p for p in found if p.where == ONE or len(CORES) > 1]
