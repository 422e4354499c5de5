//! The command line: what each command prints and leaves behind.

use crate::common::{alone, box_case, on_ranks, rank_counts, root, summary, write_case};
use serde_json::Value;

#[test]
fn a_run_leaves_results_series_and_summary() {
    for n in rank_counts() {
        let folder = tempfile::tempdir().unwrap();
        let case = write_case(folder.path(), &box_case([4, 2, 2], "hex8", ""));
        let run = on_ranks(n, folder.path(), &["run", &case]).expect_code(0);
        let results = folder.path().join("results");
        let mut left: Vec<String> = std::fs::read_dir(&results)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            ["results.hdf.series", "results.vtkhdf", "summary.json"]
        );
        let summary = summary(&results);
        assert_eq!(summary["mesh"]["nodes"], 45);
        assert_eq!(summary["mesh"]["elements"], 16);
        assert_eq!(summary["mesh"]["by_type"]["hex8"], 16);
        assert_eq!(summary["dofs"], 135);
        assert_eq!(summary["exit_code"], 0);
        assert_eq!(summary["error"], Value::Null);
        assert_eq!(summary["parallel"]["ranks"], n.max(1));
        let load = &summary["results"]["load_sum"];
        let reaction = &summary["results"]["reaction_sum"];
        for (component, expected) in [(0, 0.1), (2, -1.0)] {
            assert!(
                (load[component].as_f64().unwrap() - expected).abs() < 1e-12,
                "{load}"
            );
            assert!(
                (reaction[component].as_f64().unwrap() + expected).abs() < 1e-7,
                "{reaction}"
            );
        }
        assert!(summary["results"]["balance_error"].as_f64().unwrap() < 1e-7);
        assert!(summary["results"]["max_displacement"].as_f64().unwrap() > 0.0);
        assert!(run.stdout.contains("max displacement"), "{}", run.stdout);
        assert!(
            run.stderr.contains("rank(s)"),
            "the decision is printed: {}",
            run.stderr
        );
    }
}

#[test]
fn quiet_is_quiet_and_output_goes_where_it_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([2, 1, 1], "tet10", ""));
    let run = alone(folder.path(), &[&case, "--quiet", "-o", "elsewhere/deep"]).expect_code(0);
    assert_eq!(run.stderr, "");
    assert!(folder.path().join("elsewhere/deep/results.vtkhdf").exists());
    assert!(!folder.path().join("results").exists());
}

#[test]
fn warnings_are_shown_once_though_quiet_and_counted_below_the_table() {
    let set = "[[set]]\nname = \"nobody\"\nnodes_in_box = { min = [9.0, 9.0, 9.0] }\n";
    for n in rank_counts() {
        let folder = tempfile::tempdir().unwrap();
        let case = write_case(folder.path(), &box_case([2, 1, 1], "hex8", set));
        let softer = ["--set", "material.0.young=2.0"];
        let args = [&["run", &case, "--quiet"][..], &softer].concat();
        let run = on_ranks(n, folder.path(), &args).expect_code(0);
        let warnings: Vec<&str> = run
            .stderr
            .lines()
            .filter(|l| l.starts_with("warning: "))
            .collect();
        assert_eq!(warnings.len(), 2, "{}", run.stderr);
        assert!(warnings[0].contains("\"nobody\" has no members"));
        assert!(warnings[1].contains("% of the size of the model"));
        assert!(run.stdout.contains("\n2 warnings"), "{}", run.stdout);
        let summary = summary(&folder.path().join("results"));
        assert_eq!(summary["warnings"].as_array().unwrap().len(), 2);
    }
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([2, 1, 1], "hex8", ""));
    for (change, text) in [
        ("load.0.on=\"xmin\"", "no load acts where"),
        ("load=[]", "the solution is zero"),
    ] {
        let run = alone(folder.path(), &[&case, "-q", "--set", change]).expect_code(0);
        assert!(run.stderr.contains(text), "{}", run.stderr);
    }
}

#[test]
fn the_table_and_the_summary_say_what_and_where() {
    let probes = "[[probe]]\nname = \"end\"\nset = \"xmax\"\nfield = \"displacement\"\n\
                  [[probe]]\nname = \"root\"\nset = \"xmin\"\nfield = \"reaction\"\n\
                  [[probe]]\nname = \"mid\"\nat = [1.0, 0.5, 0.5]\nfield = \"stress\"\n\
                  [[check]]\nprobe = \"root\"\ncomponent = 2\nexpected = 1.0\ntolerance = 1e-6\nsource = \"Newton\"\n";
    for n in rank_counts() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("units = \"SI\"\n{}", box_case([4, 2, 2], "hex8", probes));
        let case = write_case(folder.path(), &text);
        let run = on_ranks(n, folder.path(), &["run", &case, "-q"]).expect_code(0);
        for text in [
            "units ",
            "mean over xmax",
            "sum over xmin",
            "at (1, 0.5, 0.5)",
            "szx ",
            "check root fz",
            "fy             0   fz   1.00000e+00",
            "Newton",
            "(target 1.0e-08",
        ] {
            assert!(run.stdout.contains(text), "{text} in {}", run.stdout);
        }
        let summary = summary(&folder.path().join("results"));
        assert_eq!(summary["units"], "SI");
        assert_eq!(summary["probes"][0]["set"], "xmax");
        assert_eq!(summary["probes"][2]["at"][0], 1.0);
        assert_eq!(summary["probes"][2]["field"], "stress");
        assert_eq!(summary["checks"][0]["source"], "Newton");
        // The free end moves most; the clamped one is stressed most.
        let results = &summary["results"];
        assert_eq!(results["max_displacement_at"]["at"][0], 2.0);
        assert_eq!(results["max_von_mises_at"]["at"][0], 0.0);
        assert!(results["max_von_mises_at"]["node"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_second_run_replaces_the_first_and_a_failed_one_keeps_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([2, 1, 1], "hex8", ""));
    alone(folder.path(), &[&case]).expect_code(0);
    alone(folder.path(), &[&case, "--set", "material.0.young=400.0"]).expect_code(0);
    let file = folder.path().join("results/results.vtkhdf");
    let before = std::fs::read(&file).unwrap();
    alone(
        folder.path(),
        &[&case, "--set", "constraint.0.on=\"nowhere\""],
    )
    .expect_code(2);
    assert!(std::fs::read(&file).unwrap() == before);
    let run = alone(
        folder.path(),
        &[&case, "-q", "--set", "load.0.on=\"nowhere\""],
    )
    .expect_code(2);
    assert!(
        run.stderr.contains(
            "results.vtkhdf is of an earlier run; its summary is kept as summary.previous.json"
        ),
        "{}",
        run.stderr
    );
    let kept = std::fs::read_to_string(folder.path().join("results/summary.previous.json"));
    assert!(kept.unwrap().contains("\"converged\""));
}

#[test]
fn no_convergence_is_an_error_without_results() {
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([8, 2, 2], "hex8", ""));
    let args = [
        &case,
        "--set",
        "solver.method=\"cg\"",
        "--set",
        "solver.max_iterations=3",
    ];
    let run = alone(folder.path(), &args).expect_code(1);
    assert!(run.stderr.contains("not converged"), "{}", run.stderr);
    let results = folder.path().join("results");
    assert!(!results.join("results.vtkhdf").exists());
    assert_eq!(summary(&results)["status"], "not_converged");
    assert_eq!(summary(&results)["exit_code"], 1);
}

#[test]
fn check_solves_nothing_and_tells_the_size() {
    for n in rank_counts() {
        let folder = tempfile::tempdir().unwrap();
        let case = write_case(folder.path(), &box_case([4, 2, 2], "hex20", ""));
        let run = on_ranks(n, folder.path(), &["check", &case]).expect_code(0);
        for text in ["hex20", "memory", "xmin", "mass", "volume", "2.00000e+00"] {
            assert!(run.stdout.contains(text), "{text} in {}", run.stdout);
        }
        assert!(run.stdout.contains("fx   1.00000e-01"), "{}", run.stdout);
        let probe = "[[probe]]\nname = \"far\"\nat = [9.0, 0.5, 0.5]\nfield = \"stress\"\n";
        let case = write_case(folder.path(), &box_case([4, 2, 2], "hex20", probe));
        let run = on_ranks(n, folder.path(), &["check", &case]).expect_code(2);
        assert!(run.stderr.contains("outside the mesh"), "{}", run.stderr);
        assert!(!folder.path().join("results").exists());
    }
}

#[test]
fn cases_are_listed_copied_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let list = alone(folder.path(), &["cases"]).expect_code(0);
    assert!(
        list.stdout.contains("bracket") && list.stdout.contains("scaling"),
        "{}",
        list.stdout
    );
    alone(folder.path(), &["cases", "copy", "scaling", "mine"]).expect_code(0);
    alone(
        folder.path(),
        &[
            "mine/case.toml",
            "--set",
            "mesh.box.cells=[4,4,4]",
            "--set",
            "check=[]",
        ],
    )
    .expect_code(0);
    let again = alone(folder.path(), &["cases", "copy", "scaling", "mine"]).expect_code(2);
    assert!(again.stderr.contains("exists already"));
    let unknown = alone(folder.path(), &["cases", "copy", "nothing", "mine"]).expect_code(2);
    assert!(unknown.stderr.contains("bracket"), "{}", unknown.stderr);
}

#[test]
fn mesh_info_and_schema_print_what_they_name() {
    let bracket = root().join("cases/bracket");
    let mesh = std::fs::read_dir(&bracket)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "msh"));
    let info = alone(
        &root(),
        &["mesh", "info", &mesh.unwrap().display().to_string()],
    )
    .expect_code(0);
    assert!(info.stdout.contains("tet10"), "{}", info.stdout);
    let schema = alone(&root(), &["schema"]).expect_code(0);
    let schema: Value = serde_json::from_str(&schema.stdout).expect("the schema is JSON");
    assert!(schema["properties"]["solver"].is_object());
    let reference = alone(&root(), &["schema", "--markdown"]).expect_code(0);
    let written = std::fs::read_to_string(root().join("docs/case-file.md")).unwrap();
    assert_eq!(reference.stdout, written);
}

#[test]
fn wrong_arguments_are_one_message_and_code_2() {
    for n in rank_counts() {
        let run = on_ranks(n, &root(), &["run", "--no-such-flag", "case.toml"]).expect_code(2);
        assert_eq!(
            run.stderr.matches("unexpected argument").count(),
            1,
            "{}",
            run.stderr
        );
    }
    let run = alone(&root(), &["ru", "case.toml"]).expect_code(2);
    assert!(run.stderr.contains("did you mean `run`?"), "{}", run.stderr);
    alone(&root(), &["--version"]).expect_code(0);
    alone(&root(), &["--help"]).expect_code(0);
}

#[test]
fn check_predicts_the_memory_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    for (element, cells) in [("hex8", [32, 32, 32]), ("hex20", [14, 14, 14])] {
        let case = write_case(folder.path(), &box_case(cells, element, ""));
        for n in [0, 2] {
            let told = on_ranks(n, folder.path(), &["check", &case]).expect_code(0);
            let line = told.stdout.lines().find(|l| l.starts_with("memory"));
            let mut words = line.unwrap().split_whitespace();
            let predicted: f64 = words.nth(2).unwrap().parse().unwrap();
            on_ranks(n, folder.path(), &[&case, "--threads", "1"]).expect_code(0);
            let summary = summary(&folder.path().join("results"));
            let peak = summary["memory_mib"]["peak_total"].as_f64().unwrap();
            assert!(
                (predicted / peak - 1.0).abs() < 0.25,
                "{element} on {n} ranks: {predicted} MiB predicted, {peak} MiB at the peak"
            );
        }
    }
}
