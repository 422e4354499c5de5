#!/usr/bin/env python3
"""Fills the table of results in the README of a case from the summary of a run.

Usage: `python3 scripts/case_tables.py cases/bracket results/summary.json`. Checks and probes come from case.toml,
values from summary.json; only the text between the two comments of the README is replaced.
"""

import json
import pathlib
import sys
import tomllib

START = "<!-- results: filled by scripts/case_tables.py -->\n"
END = "<!-- end of results -->\n"
COMPONENTS = {
    "displacement": ["ux", "uy", "uz"],
    "reaction": ["rx", "ry", "rz"],
    "stress": ["sxx", "syy", "szz", "sxy", "syz", "szx"],
    "strain": ["exx", "eyy", "ezz", "gxy", "gyz", "gzx"],
    "principal_stress": ["s1", "s2", "s3"],
}


def quantity(probe, check):
    """`uz at (10, 0.5, 0.5)`, `mean sxx of arm_top`."""
    field = probe["field"]
    name = COMPONENTS[field][check["component"]] if "component" in check else field
    if "at" in probe:
        return f"{name} at ({', '.join(f'{x:g}' for x in probe['at'])})"
    return f"{'sum' if field == 'reaction' else 'mean'} of {name} over `{probe['set']}`"


def table(case, summary):
    probes = {probe["name"]: probe for probe in case["probe"]}
    lines = ["| Quantity | Expected | fem-solve | Error | Tolerance | Source |", "|---|---|---|---|---|---|"]
    for check, result in zip(case["check"], summary["checks"], strict=True):
        if check["probe"] != result["probe"]:
            sys.exit(f"the summary is of another case: check {result['probe']!r} where {check['probe']!r} was expected")
        what = quantity(probes[check["probe"]], check)
        lines.append(
            f"| {what} | {check['expected']:.8g} | {result['value']:.8g} | {result['error']:.1e} "
            f"| {check['tolerance']:g} | {check.get('source', '')} |"
        )
    solver = summary["solver"]
    lines += [
        "",
        f"{summary['program']}, {summary['dofs']:,} dofs, solved by {solver['method']}, status {summary['status']}.",
    ]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    case = tomllib.loads((folder / "case.toml").read_text())
    summary = json.loads(pathlib.Path(sys.argv[2]).read_text())
    readme = folder / "README.md"
    head, rest = readme.read_text().split(START)
    _, tail = rest.split(END)
    readme.write_text(head + START + table(case, summary) + END + tail)


if __name__ == "__main__":
    main()
