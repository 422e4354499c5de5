//! The tables on stdout: results of a run, findings of a check.
//!
//! All results are written in one format, six significant digits with an exponent, their names before them and in
//! columns; what is rounding beside the largest value of its row is written as 0.
//!
//! Invariant: formatting only.

use fem_io::case::Field;
use fem_io::summary::{Check, NodePlace, Probe, ProbePlace, ProbeValue, ResultSummary, Summary};
use fem_solve::run::Inspection;

/// Share of the largest value of a row below which another one is rounding; the residual of the solution, if larger.
const ROUNDOFF: f64 = 1e-10;
const FORCES: [&str; 3] = ["fx", "fy", "fz"];
/// Components in a line.
const PER_LINE: usize = 3;

/// Rows of name and text, aligned.
struct Table(Vec<(String, String)>);

impl Table {
    fn row(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.0.push((name.into(), text.into()));
    }

    /// A row of components, in several lines if there are many; `note` follows the first.
    fn components(&mut self, name: impl Into<String>, lines: Vec<String>, note: &str) {
        let mut name = name.into();
        for (k, line) in lines.into_iter().enumerate() {
            let note = if k == 0 { note } else { "" };
            let full = PER_LINE * (CELL + GAP) - GAP;
            self.row(std::mem::take(&mut name), format!("{line:full$}   {note}"));
        }
    }

    fn blank(&mut self) {
        self.row("", "");
    }

    fn render(&self) -> String {
        let width = self
            .0
            .iter()
            .map(|(name, _)| name.chars().count())
            .max()
            .unwrap_or(0);
        let line = |(name, text): &(String, String)| {
            let padding = " ".repeat(width - name.chars().count());
            format!("{name}{padding}  {text}").trim_end().to_owned()
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// `-1.23456e-07`, 12 characters at most for two digits of exponent; `0`.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    scientific(&format!("{value:.5e}"))
}

/// Two significant digits: errors, residuals.
fn short(value: f64) -> String {
    scientific(&format!("{value:.1e}"))
}

/// The exponent with its sign and at least two digits; text without exponent (not a number, infinite) as it is.
fn scientific(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            format!("{digits}e{exponent:+03}")
        }
        None => text.to_owned(),
    }
}

/// Characters of a component, and between two.
const CELL: usize = 16;
const GAP: usize = 3;

/// A value with its name, in a column.
fn cell(name: &str, value: f64) -> String {
    format!("{name:<3} {:>12}", number(value))
}

/// Lines of components. Those below `noise` times the larger of `scale` and the largest of them are written as 0.
fn lines(names: &[&str], values: &[f64], scale: f64, noise: f64) -> Vec<String> {
    let largest = values.iter().fold(scale, |m, v| m.max(v.abs()));
    let cells: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(i, &value)| {
            let is_noise = value.abs() < noise * largest;
            cell(
                names.get(i).unwrap_or(&""),
                if is_noise { 0.0 } else { value },
            )
        })
        .collect();
    cells
        .chunks(PER_LINE)
        .map(|line| line.join(&" ".repeat(GAP)))
        .collect()
}

/// `(110, 0, 2.5)`, to six significant digits.
fn point(x: &[f64; 3]) -> String {
    let largest = x.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let coordinate = |&value: &f64| {
        let size = value.abs();
        if size <= ROUNDOFF * largest {
            return "0".to_owned();
        }
        // Rounded by way of its text; the shortest form of the result has no more digits.
        match format!("{value:.5e}").parse::<f64>() {
            Ok(rounded) if (1e-3..1e7).contains(&size) => format!("{rounded}"),
            _ => number(value),
        }
    };
    format!("({})", x.each_ref().map(coordinate).join(", "))
}

/// The result table of a run.
pub(crate) fn of_summary(s: &Summary) -> String {
    let mut t = Table(Vec::new());
    about_solution(&mut t, s);
    t.blank();
    totals(&mut t, s);
    if !s.probes.is_empty() {
        t.blank();
    }
    for probe in &s.probes {
        probe_rows(&mut t, probe, s);
    }
    if !s.checks.is_empty() {
        t.blank();
    }
    for check in &s.checks {
        let (name, text) = check_row(s, check);
        t.row(name, text);
    }
    t.blank();
    costs(&mut t, s);
    let n_warnings = s.warnings.len();
    if n_warnings > 0 {
        let plural = if n_warnings == 1 { "" } else { "s" };
        t.blank();
        t.row(
            format!("{n_warnings} warning{plural}"),
            "printed above the table, kept in summary.json",
        );
    }
    t.render()
}

fn about_solution(t: &mut Table, s: &Summary) {
    labels(t, &s.title, &s.units);
    t.row(
        "model",
        format!(
            "{} nodes, {} elements, {} dof",
            s.mesh.nodes, s.mesh.elements, s.dofs
        ),
    );
    let solver = &s.solver;
    let method = match solver.preconditioner.as_str() {
        "" | "none" => solver.method.clone(),
        p => format!(
            "{} with {p}, {} iterations",
            solver.method, solver.iterations
        ),
    };
    t.row("solver", method);
    t.row(
        "relative residual",
        format!(
            "{} (target {}, backward error {})",
            short(solver.true_residual),
            short(solver.tolerance),
            short(solver.backward_error)
        ),
    );
}

fn labels(t: &mut Table, title: &str, units: &str) {
    for (name, text) in [("title", title), ("units", units)] {
        if !text.is_empty() {
            t.row(name, text);
        }
    }
}

fn totals(t: &mut Table, s: &Summary) {
    let r = &s.results;
    let place = |place: &Option<NodePlace>| match place {
        Some(p) => format!("at node {}, {}", p.node, point(&p.at)),
        None => String::new(),
    };
    for (name, value, at) in [
        (
            "max displacement",
            r.max_displacement,
            &r.max_displacement_at,
        ),
        ("max von Mises stress", r.max_von_mises, &r.max_von_mises_at),
    ] {
        t.row(name, format!("{}   {}", cell("", value), place(at)));
    }
    t.row("strain energy", cell("", r.strain_energy));
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let scale = largest(&r.load_sum).max(largest(&r.reaction_sum));
    let of_constraints = r.constraint_sum.as_ref();
    let is_shown = |sum: &&[f64; 3]| largest(&sum[..]) > noise(s) * scale;
    let of_constraints = of_constraints.filter(is_shown);
    let of_constraints = of_constraints.map(|sum| ("sum of constraint forces", sum));
    for (name, sum) in [
        ("sum of loads", &r.load_sum),
        ("sum of reactions", &r.reaction_sum),
    ]
    .into_iter()
    .chain(of_constraints)
    {
        t.components(name, lines(&FORCES, sum, scale, noise(s)), "");
    }
    t.row("balance error", short(r.balance_error));
}

/// Share of a row's scale below which a value tells nothing.
fn noise(s: &Summary) -> f64 {
    ROUNDOFF.max(s.solver.true_residual)
}

fn field_of(name: &str) -> Option<Field> {
    let known = Field::NAMES.iter().find(|(known, _)| *known == name);
    known.map(|(_, field)| *field)
}

/// The largest value that a field has anywhere, as far as the totals tell.
fn scale_of(field: Option<Field>, r: &ResultSummary) -> f64 {
    match field {
        Some(Field::Displacement) => r.max_displacement,
        Some(Field::Stress | Field::PrincipalStress | Field::VonMises) => r.max_von_mises,
        _ => 0.0,
    }
}

fn probe_rows(t: &mut Table, probe: &Probe, s: &Summary) {
    let field = field_of(&probe.field);
    let place = match &probe.place {
        ProbePlace::At(x) => format!("at {}", point(x)),
        ProbePlace::Set(set) if field == Some(Field::Reaction) => format!("sum over {set}"),
        ProbePlace::Set(set) => format!("mean over {set}"),
    };
    let values = match &probe.value {
        ProbeValue::Scalar(value) => std::slice::from_ref(value),
        ProbeValue::Components(values) => values,
    };
    let names = field.map_or(&[][..], Field::component_names);
    let lines = lines(names, values, scale_of(field, &s.results), noise(s));
    t.components(format!("probe {}", probe.name), lines, &place);
}

/// Name and text of a check.
pub(super) fn check_row(s: &Summary, check: &Check) -> (String, String) {
    let probe = s.probes.iter().find(|p| p.name == check.probe);
    let names = probe
        .and_then(|p| field_of(&p.field))
        .map_or(&[][..], Field::component_names);
    let component = names.get(check.component.unwrap_or(0)).unwrap_or(&"");
    let text = format!(
        "{}  {:>12}   expected {:>12}   error {} of {}   {}",
        if check.pass { "pass" } else { "FAIL" },
        number(check.value),
        number(check.expected),
        short(check.error),
        short(check.tolerance),
        check.source
    );
    (
        format!("check {} {component}", check.probe),
        text.trim_end().to_owned(),
    )
}

fn costs(t: &mut Table, s: &Summary) {
    let time = &s.time_s;
    t.row(
        "time",
        format!(
            "{:.2} s: read {:.2}, partition {:.2}, assemble {:.2}, setup {:.2}, solve {:.2}, recover {:.2}, write {:.2}",
            time.total, time.read, time.partition, time.assemble, time.setup, time.solve, time.recover, time.write
        ),
    );
    t.row(
        "peak memory",
        format!(
            "{:.0} MiB over {} rank(s)",
            s.memory_mib.peak_total, s.parallel.ranks
        ),
    );
}

/// The findings of `check`.
pub(crate) fn of_inspection(i: &Inspection) -> String {
    let mut t = Table(Vec::new());
    labels(&mut t, &i.title, &i.units);
    t.row("analysis", i.analysis);
    let types: Vec<String> = i
        .mesh
        .by_type
        .iter()
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    t.row(
        "mesh",
        format!(
            "{} nodes, {} elements ({})",
            i.mesh.nodes,
            i.mesh.elements,
            types.join(", ")
        ),
    );
    t.row(
        "degrees of freedom",
        format!("{} ({} prescribed)", i.n_dofs, i.n_prescribed),
    );
    for (name, corner) in [("bounding box, low", 0), ("bounding box, high", 1)] {
        let corner = &i.bounds[corner];
        t.components(name, lines(&["x", "y", "z"], corner, 0.0, 0.0), "");
    }
    physics(&mut t, i);
    for set in &i.sets {
        t.row(
            format!("{} set", set.kind),
            format!("{} ({})", set.name, set.size),
        );
    }
    t.row("method", &i.method);
    t.row("parallel", &i.decision);
    t.row(
        "memory",
        format!(
            "about {:.0} MiB in all, {:.0} MiB on the largest rank",
            i.memory_mib.0, i.memory_mib.1
        ),
    );
    t.row(
        "result",
        "the case is complete and consistent; nothing was solved",
    );
    t.render()
}

/// Volume, mass, loads, materials.
fn physics(t: &mut Table, i: &Inspection) {
    let volume = i.materials.iter().map(|m| m.volume).sum();
    t.row("volume", cell("", volume));
    let used = i.materials.iter().filter(|m| m.n_elements > 0);
    let masses: Option<Vec<f64>> = used.map(|m| m.mass).collect();
    t.row(
        "mass",
        masses.map_or_else(
            || "unknown: a material has no density".to_owned(),
            |masses| cell("", masses.iter().sum()),
        ),
    );
    for m in &i.materials {
        t.row(
            "material",
            format!(
                "{}: {} elements, volume {}",
                m.name,
                m.n_elements,
                number(m.volume)
            ),
        );
    }
    t.row(
        "constraints, loads",
        format!("{}, {}", i.n_constraints, i.n_loads),
    );
    if i.n_loads > 0 {
        let sum = lines(&FORCES, &i.load_sum, 0.0, ROUNDOFF);
        t.components("sum of loads", sum, "");
    }
}

#[cfg(test)]
mod tests {
    use super::{lines, number, point, short};

    #[test]
    fn numbers_have_six_digits_and_one_form() {
        assert_eq!(number(-0.000_123_456_789), "-1.23457e-04");
        assert_eq!(number(210e9), "2.10000e+11");
        assert_eq!(number(1e-300), "1.00000e-300");
        assert_eq!(number(-0.0), "0");
        assert_eq!(number(f64::NAN), "NaN");
        assert_eq!(short(1e-8), "1.0e-08");
    }

    #[test]
    fn points_are_short() {
        assert_eq!(
            point(&[110.0, 7.1e-15, -25.776_134_863]),
            "(110, 0, -25.7761)"
        );
        assert_eq!(point(&[0.0; 3]), "(0, 0, 0)");
        assert_eq!(point(&[1e-5, 0.0, 0.25]), "(1.00000e-05, 0, 0.25)");
    }

    #[test]
    fn rounding_beside_large_values_is_zero_and_columns_line_up() {
        let shown = lines(
            &["sxx", "syy", "szz", "sxy"],
            &[1.0, -1e-14, 2.0, 3.0],
            0.0,
            1e-10,
        );
        assert_eq!(
            shown,
            [
                "sxx  1.00000e+00   syy            0   szz  2.00000e+00",
                "sxy  3.00000e+00"
            ]
        );
        assert_eq!(lines(&["ux"], &[1e-14], 1.0, 1e-10), ["ux             0"]);
        assert_eq!(lines(&["ux"], &[1e-14], 0.0, 1e-10), ["ux   1.00000e-14"]);
    }
}
