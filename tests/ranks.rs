//! The same answer whatever the ranks, the same bits whatever the threads.

use crate::common::{box_case, on_ranks, rank_counts, summary, write_case};
use serde_json::Value;

const PROBES: &str = "[solver]\ntolerance = 1e-12\n\
    [[probe]]\nname = \"middle\"\nat = [1.1, 0.4, 0.3]\nfield = \"displacement\"\n\
    [[probe]]\nname = \"stress\"\nat = [0.6, 0.5, 0.5]\nfield = \"stress\"\n\
    [[probe]]\nname = \"support\"\nset = \"xmin\"\nfield = \"reaction\"\n";

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(list) => list.iter().flat_map(numbers).collect(),
        other => other.as_f64().into_iter().collect(),
    }
}

/// All probe values of a run, and its strain energy.
fn answers(summary: &Value) -> Vec<f64> {
    let mut all: Vec<f64> = summary["probes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|p| numbers(&p["value"]))
        .collect();
    all.push(summary["results"]["strain_energy"].as_f64().unwrap());
    all
}

#[test]
fn one_to_four_ranks_agree() {
    for element in ["hex8", "hex20", "tet4", "tet10", "wedge6"] {
        let folder = tempfile::tempdir().unwrap();
        let case = write_case(folder.path(), &box_case([5, 3, 3], element, PROBES));
        let mut reference: Option<Vec<f64>> = None;
        for n in rank_counts() {
            let method = if n == 0 { "direct" } else { "cg" };
            let set = format!("solver.method=\"{method}\"");
            on_ranks(n, folder.path(), &[&case, "--set", &set]).expect_code(0);
            let summary = summary(&folder.path().join("results"));
            assert_eq!(summary["status"], "converged");
            let found = answers(&summary);
            let reference = reference.get_or_insert_with(|| found.clone());
            let scale = reference.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            for (a, b) in found.iter().zip(reference.iter()) {
                assert!(
                    (a - b).abs() <= 1e-10 * scale,
                    "{element} on {n} ranks: {a} and {b}"
                );
            }
        }
    }
}

#[test]
fn one_reduction_an_iteration_gives_the_same_answer() {
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([12, 6, 6], "hex8", PROBES));
    for n in rank_counts() {
        let found = ["two", "one"].map(|reductions| {
            let set = format!("solver.reductions=\"{reductions}\"");
            let args = [&case, "--set", "solver.method=\"cg\"", "--set", &set];
            on_ranks(n, folder.path(), &args).expect_code(0);
            summary(&folder.path().join("results"))
        });
        let iterations = found
            .each_ref()
            .map(|s| s["solver"]["iterations"].as_u64().unwrap());
        assert!(iterations[0].abs_diff(iterations[1]) <= 1, "{iterations:?}");
        let [two, one] = found.each_ref().map(answers);
        let scale = two.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let are_equal = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-10 * scale;
        assert!(
            two.iter().zip(&one).all(are_equal),
            "on {n} ranks: {two:?} and {one:?}"
        );
        // What the levels of multigrid take is told as well.
        let solver = &found[0]["solver"];
        let levels = solver["levels"].as_array().unwrap();
        let each: f64 = levels
            .iter()
            .map(|l| l["memory_mib"].as_f64().unwrap())
            .sum();
        assert!(levels.len() >= 2 && each > 0.1);
        assert!((each - solver["levels_mib"].as_f64().unwrap()).abs() < 1e-9);
        assert!(solver["operator_complexity"].as_f64().unwrap() > 1.0);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    // Large enough that more threads pay, so that `--threads` is what decides.
    let case = write_case(folder.path(), &box_case([40, 16, 16], "hex8", PROBES));
    let mut files = Vec::new();
    for threads in ["1", "2"] {
        let results = folder.path().join(threads);
        let args = [
            &case,
            "--threads",
            threads,
            "-o",
            &results.display().to_string(),
            "--set",
            "solver.method=\"cg\"",
        ];
        on_ranks(0, folder.path(), &args).expect_code(0);
        let summary = summary(&results);
        let cores = std::thread::available_parallelism().unwrap().get();
        let expected = threads.parse::<usize>().unwrap().min(cores);
        assert_eq!(summary["parallel"]["threads_per_rank"], expected);
        files.push(std::fs::read(results.join("results.vtkhdf")).unwrap());
    }
    assert!(
        files[0] == files[1],
        "results.vtkhdf differs between one and two threads"
    );
}

#[test]
fn more_ranks_than_elements_are_no_trouble() {
    if !cfg!(feature = "mpi") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([1, 1, 1], "hex8", ""));
    on_ranks(4, folder.path(), &[&case]).expect_code(0);
    let summary = summary(&folder.path().join("results"));
    assert_eq!(
        (&summary["mesh"]["elements"], &summary["parallel"]["ranks"]),
        (&1.into(), &4.into())
    );
}
