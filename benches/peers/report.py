"""Tables and the picture of what run.py measured.

`samples[problem][label]` is the list of runs of a program, a failed one among them as {"error": why}.
"""

import statistics

from programs import ONE, RANKS, THREADS

OURS, PROTOTYPE = "fem-solve", "prototype"
CORES_OF = {ONE: 1, THREADS: 2, RANKS: 2}
# Told apart by the color-blind (Okabe and Ito, 2008).
COLORS = {
    PROTOTYPE: "#56B4E9",
    "PETSc GAMG": "#009E73",
    "PETSc ICC": "#CC79A7",
    "dolfinx GAMG": "#E69F00",
    "CalculiX CG": "#D55E00",
    "CalculiX SPOOLES": "#0072B2",
}


def split(label):
    name, where = label.rsplit(", ", 1)
    return name, where


def good(runs):
    return [run for run in runs if "error" not in run]


def least(runs, key):
    return min(run[key] for run in runs)


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def has(runs, key):
    return bool(runs) and all(key in run for run in runs)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def seconds(value):
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def problem_table(problem, by_label):
    """All programs on one problem."""
    second = "backward error" if problem.kind == "Y3" else "residual"
    key = "backward" if problem.kind == "Y3" else "residual"
    header = ["program", "on", "assembly", "set-up", "solve", "total", "median", "process", "median"]
    header += ["iterations", second, "MiB", "largest displacement", "runs"]
    rows = []
    for label, runs in by_label.items():
        name, where = split(label)
        fine, failed = good(runs), [run["error"] for run in runs if "error" in run]
        count = f"{len(fine)}" if not failed else f"{len(fine)} of {len(runs)}: {failed[0]}"
        cells = [name, where]
        if not fine:
            rows.append(cells + ["-"] * (len(header) - 3) + [f"failed: {failed[0]}"])
            continue
        best = min(fine, key=lambda run: run.get("total", run["wall"]))
        cells += [seconds(best[k]) if k in best else "-" for k in ("assembly", "setup", "solve")]
        cells += [seconds(f(fine, "total")) if has(fine, "total") else "-" for f in (least, median)]
        cells += [seconds(f(fine, "wall")) for f in (least, median)]
        cells.append(f"{median(fine, 'iterations'):.0f}" if has(fine, "iterations") else "-")
        cells.append(f"{median(fine, key):.1e}" if has(fine, key) else "-")
        cells += [f"{median(fine, 'memory'):.0f}", f"{median(fine, 'u'):.8g}", count]
        rows.append(cells)
    return f"### {problem.name}: {problem.dofs:,} degrees of freedom\n\n" + table(header, rows)


def others_on(by_label, cores, key):
    """Good runs of the rivals on that many cores, that tell `key`."""
    found = {}
    for label, runs in by_label.items():
        name, where = split(label)
        if name not in (OURS, PROTOTYPE) and CORES_OF[where] == cores and has(good(runs), key):
            found[label] = good(runs)
    return found


def ratios(problem, by_label):
    """For each of our configurations: (where, our runs, {other: (its label, its runs, the key compared)})."""
    for where in (ONE, THREADS, RANKS):
        ours = good(by_label.get(f"{OURS}, {where}", []))
        if not ours:
            continue
        found, cores = {}, CORES_OF[where]
        for kind, key in (("fastest", "total"), ("process", "wall")):
            others = others_on(by_label, cores, key)
            if kind == "process":
                others = {label: runs for label, runs in others.items() if label.startswith("CalculiX")}
            if others:
                label = min(others, key=lambda label: least(others[label], key))
                found[kind] = (label, others[label], key)
        label = f"{PROTOTYPE}, {ONE if cores == 1 else THREADS}"
        if good(by_label.get(label, [])):
            found["prototype"] = (label, good(by_label[label]), "total")
        yield where, ours, found


def ratio_table(problems, samples):
    """Ours over theirs."""
    header = ["problem", "on", "ours s", "fastest rival", "s", "ours / rival", "prototype s", "ours / prototype"]
    header += ["ours, process s", "CalculiX, process s", "ours / CalculiX"]
    rows = []
    for problem in problems:
        for where, ours, found in ratios(problem, samples[problem.name]):
            row = [problem.name, where, seconds(least(ours, "total"))]
            if "fastest" in found:
                label, runs, _ = found["fastest"]
                row += [split(label)[0], seconds(least(runs, "total")), quotient(ours, runs, "total")]
            else:
                row += ["-"] * 3
            for kind in ("prototype", "process"):
                if kind == "process":
                    row.append(seconds(least(ours, "wall")))
                if kind not in found:
                    row += ["-"] * 2
                    continue
                label, runs, key = found[kind]
                note = f" ({split(label)[0].split()[1]})" if kind == "process" else ""
                row += [seconds(least(runs, key)) + note, quotient(ours, runs, key)]
            rows.append(row)
    return table(header, rows)


def quotient(ours, theirs, key):
    return f"**{least(ours, key) / least(theirs, key):.2f}** ({median(ours, key) / median(theirs, key):.2f})"


def memory_table(problems, samples):
    header = ["problem", "ours, 1 core", "ours, 2 threads", "ours, 2 ranks", "prototype, 1 core", "least of the rivals"]
    rows = []
    for problem in problems:
        by_label = samples[problem.name]
        row = [problem.name]
        for label in (f"{OURS}, {ONE}", f"{OURS}, {THREADS}", f"{OURS}, {RANKS}", f"{PROTOTYPE}, {ONE}"):
            runs = good(by_label.get(label, []))
            row.append(f"{median(runs, 'memory'):.0f}" if runs else "-")
        others = {**others_on(by_label, 1, "memory"), **others_on(by_label, 2, "memory")}
        best = min(others, key=lambda label: median(others[label], "memory"), default=None)
        row.append(f"{median(others[best], 'memory'):.0f} ({best})" if best else "-")
        rows.append(row)
    return table(header, rows)


def block_product_bytes(n):
    """Bytes of one product with the full f64 matrix of Y1(n): 3 x 3 blocks with a 4-byte column, row starts, x and y."""
    rows, blocks = (n + 1) ** 3, (3 * (n + 1) - 2) ** 3
    return blocks * (72 + 4) + rows * 4 + rows * 48


def work_unit_table(n, by_label, triad):
    """Times in products of the full matrix at the speed of the triad. `triad`: GB/s by number of threads."""
    bytes_moved = block_product_bytes(n)
    header = ["program", "on", "one product, ms", "assembly", "set-up", "solve", "total", "a cycle of the solution"]
    rows = []
    for label, runs in by_label.items():
        name, where = split(label)
        runs = [run for run in good(runs) if "total" in run]
        if not runs or CORES_OF[where] not in triad:
            continue
        unit = bytes_moved / triad[CORES_OF[where]] * 1e-9
        best = min(runs, key=lambda run: run["total"])
        row = [name, where, f"{1e3 * unit:.1f}"]
        row += [f"{best[key] / unit:.0f}" for key in ("assembly", "setup", "solve", "total")]
        rows.append([*row, f"{best['solve'] / unit / max(best['iterations'], 1):.1f}"])
    speeds = ", ".join(f"{speed:.1f} GB/s with {cores} thread(s)" for cores, speed in triad.items())
    text = f"One product with the full f64 matrix of Y1({n}) moves {bytes_moved / 1e6:.0f} MB; triad: {speeds}.\n\n"
    return text + table(header, rows)


def iteration_tables(by_size, by_ranks):
    """`by_size`: n to run; `by_ranks`: number of ranks to run. A failed run shows as such."""
    shown = lambda run: "failed" if "error" in run else f"{run['iterations']:.0f}"
    size = table(["n", *map(str, by_size)], [["iterations", *map(shown, by_size.values())]])
    ranks = table(["ranks", *map(str, by_ranks)], [["iterations", *map(shown, by_ranks.values())]])
    return f"Y1(n), 1 rank:\n\n{size}\nY1(32), more ranks than cores from 4 on:\n\n{ranks}"


def cantilever_table(runs):
    """`runs[label]` as in `samples`: whole processes."""
    rows = []
    for label, of_program in runs.items():
        fine = good(of_program)
        name, where = split(label)
        if fine:
            figures = [seconds(least(fine, "wall")), seconds(median(fine, "wall"))]
            rows.append([name, where, *figures, f"{median(fine, 'memory'):.0f}", f"{median(fine, 'u'):.6g}"])
        else:
            rows.append([name, where, "-", "-", "-", f"failed: {of_program[0]['error']}"])
    return table(["program", "on", "process s", "median", "MiB", "largest displacement"], rows)


def draw(problems, samples, path):
    """Total time of each program over ours, on as many cores; a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "fem-solve"
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(
        1, 2, figsize=(9, 0.5 * len(problems) + 1.8), sharex=True, sharey=True, layout="constrained"
    )
    handles = {}
    for axis, cores in zip(axes, (1, 2)):
        axis.axvline(1.0, color="black", linewidth=1)
        for row, problem in enumerate(problems):
            for name, key, factor in factors(samples[problem.name], cores):
                label = name + " (whole process)" * (key == "wall")
                # Full for the solver alone.
                face = {"markerfacecolor": "none"} if key == "wall" else {}
                style = {"color": COLORS.get(name, "black"), "marker": "o", "linestyle": "none", **face}
                handles[label] = axis.plot(factor, row, markersize=8, **style)[0]
        axis.set_xscale("log")
        axis.set_xlabel("time / time of fem-solve")
        axis.set_title(f"{cores} core{'s' * (cores > 1)}")
        axis.grid(axis="x", linewidth=0.3)
        axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:g}"))
        axis.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes[0].set_yticks(range(len(problems)), [p.name for p in problems])
    axes[0].set_ylim(len(problems) - 0.5, -0.5)
    labels = sorted(handles)
    figure.legend([handles[k] for k in labels], labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def factors(by_label, cores):
    """Name, key and time over that of our fastest configuration on as many cores, for each program."""
    ours = [good(by_label.get(f"{OURS}, {where}", [])) for where, n in CORES_OF.items() if n == cores]
    ours = [runs for runs in ours if runs]
    for label, runs in by_label.items():
        name, where = split(label)
        runs = good(runs)
        if name != OURS and CORES_OF[where] == cores and runs and ours:
            key = "total" if has(runs, "total") else "wall"
            yield name, key, least(runs, key) / min(least(r, key) for r in ours)
