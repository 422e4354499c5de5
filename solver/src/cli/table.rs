//! The tables on stdout: results of a run, findings of a check.
//!
//! Invariant: formatting only.

use fem_io::summary::{ProbeValue, Summary};
use fem_solve::run::Inspection;

/// Rows of name and text, aligned.
struct Table(Vec<(String, String)>);

impl Table {
    fn row(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.0.push((name.into(), text.into()));
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

fn number(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) {
        format!("{value:.6}")
    } else {
        format!("{value:.6e}")
    }
}

fn vector(values: &[f64]) -> String {
    values
        .iter()
        .map(|&v| number(v))
        .collect::<Vec<_>>()
        .join("  ")
}

/// The result table of a run.
pub(crate) fn of_summary(s: &Summary) -> String {
    let mut t = Table(Vec::new());
    if !s.title.is_empty() {
        t.row("title", &s.title);
    }
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
        "true residual",
        format!(
            "{:.1e} (backward error {:.1e})",
            solver.true_residual, solver.backward_error
        ),
    );
    let r = &s.results;
    t.row("max displacement", number(r.max_displacement));
    t.row("max von Mises stress", number(r.max_von_mises));
    t.row("strain energy", number(r.strain_energy));
    t.row("sum of loads", vector(&r.load_sum));
    t.row("sum of reactions", vector(&r.reaction_sum));
    t.row("balance error", format!("{:.1e}", r.balance_error));
    for probe in &s.probes {
        let value = match &probe.value {
            ProbeValue::Scalar(v) => number(*v),
            ProbeValue::Components(v) => vector(v),
        };
        t.row(format!("probe {}", probe.name), value);
    }
    for check in &s.checks {
        let component = check
            .component
            .map_or_else(String::new, |c| format!("[{c}]"));
        let verdict = if check.pass { "pass" } else { "FAIL" };
        t.row(
            format!("check {}{component}", check.probe),
            format!(
                "{verdict}: {} for {}, error {:.1e} of {:.1e}",
                number(check.value),
                number(check.expected),
                check.error,
                check.tolerance
            ),
        );
    }
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
    t.render()
}

/// The findings of `check`.
pub(crate) fn of_inspection(i: &Inspection) -> String {
    let mut t = Table(Vec::new());
    t.row("title", &i.title);
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
        "bounding box",
        format!("{}  to  {}", vector(&i.bounds[0]), vector(&i.bounds[1])),
    );
    t.row(
        "degrees of freedom",
        format!("{} ({} prescribed)", i.n_dofs, i.n_prescribed),
    );
    for set in &i.sets {
        t.row(
            format!("{} set", set.kind),
            format!("{} ({})", set.name, set.size),
        );
    }
    for m in &i.materials {
        t.row("material", format!("{}: {} elements", m.0, m.1));
    }
    t.row(
        "constraints, loads",
        format!("{}, {}", i.n_constraints, i.n_loads),
    );
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
