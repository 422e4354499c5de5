//! Several steps, amplitudes, frames and printed tables, with the real binary on 1 to 4 ranks.

use crate::common::{alone, on_ranks, rank_counts, root, summary, write_case};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A bar of 2 x 1 x 1 with E = 200 that can only stretch evenly along x.
const BAR: &str = "[mesh]\nbox = { size = [2.0, 1.0, 1.0], cells = [4, 2, 2], element = \"hex8\" }\n[[material]]\nname = \"m\"\n\
    young = 200.0\npoisson = 0.25\nexpansion = 1e-3\n[[constraint]]\non = \"xmin\"\ndisplacement = [0, \"free\", \"free\"]\n\
    [[constraint]]\non = \"ymin\"\ndisplacement = [\"free\", 0, \"free\"]\n[[constraint]]\non = \"zmin\"\n\
    displacement = [\"free\", \"free\", 0]\n";

fn probe(step: &str) -> String {
    format!(
        "[[probe]]\nname = \"{step}\"\nat = [2.0, 0.5, 0.5]\nfield = \"displacement\"\nstep = \"{step}\"\n"
    )
}

/// Values of the probes, by name.
fn value(summary: &Value, name: &str) -> Vec<f64> {
    let probes = summary["probes"].as_array().expect("probes are a list");
    let probe = probes.iter().find(|p| p["name"] == name);
    let values = &probe.expect("the probe is there")["value"];
    let values = values.as_array().expect("a vector").iter();
    values.map(|v| v.as_f64().expect("a number")).collect()
}

fn set_ups(summary: &Value) -> Vec<u64> {
    let steps = summary["steps"].as_array().expect("steps are a list");
    steps
        .iter()
        .map(|s| s["set_ups"].as_u64().unwrap())
        .collect()
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    let size = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!(
            (a - b).abs() <= tolerance * size,
            "{found:?} instead of {expected:?}"
        );
    }
}

#[test]
fn a_step_with_two_loads_is_the_sum_of_steps_with_one() {
    let load =
        |kind: &str, on: &str, values: &str| format!("[[{kind}.load]]\non = \"{on}\"\n{values}\n");
    let pull = "traction = [1.0, 0.5, 0.0]";
    let press = "pressure = 2.0";
    let clamped = BAR.replace("[0, \"free\", \"free\"]", "[0, 0, 0]");
    let text = [
        clamped.clone(),
        format!("[[step]]\nname = \"pull\"\n{}", load("step", "xmax", pull)),
        format!("[[step]]\nname = \"both\"\n{}", load("step", "zmax", press)),
        format!(
            "[[step]]\nname = \"press\"\nop = \"new\"\n{}",
            load("step", "zmax", press)
        ),
        format!(
            "[[step]]\nname = \"none\"\nop = \"new\"\n{}",
            load("step", "zmax", "pressure = 0.0")
        ),
        ["pull", "both", "press", "none"].map(probe).concat(),
    ];
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &text.concat());
    let alone_text = format!(
        "{clamped}[[load]]\non = \"xmax\"\n{pull}\n{}",
        probe("x").replace("step = \"x\"\n", "")
    );
    let single = tempfile::tempdir().unwrap();
    let single_case = write_case(single.path(), &alone_text);
    alone(single.path(), &[&single_case, "--quiet"]).expect_code(0);
    let single = value(&summary(&single.path().join("results")), "x");
    let mut first: Option<Vec<f64>> = None;
    for n in rank_counts() {
        on_ranks(n, folder.path(), &[&case, "--quiet"]).expect_code(0);
        let summary = summary(&folder.path().join("results"));
        let of = |name: &str| value(&summary, name);
        let sum: Vec<f64> = of("pull")
            .iter()
            .zip(of("press"))
            .map(|(a, b)| a + b)
            .collect();
        assert_close(&of("both"), &sum, 1e-9);
        assert_close(&of("pull"), &single, 1e-9);
        assert_eq!(of("none"), [0.0; 3]);
        assert_eq!(set_ups(&summary), [1, 0, 0, 0], "one matrix for all");
        assert_eq!(
            summary["results"]["max_displacement"], 0.0,
            "that of the last step"
        );
        let both = of("both");
        let first = first.get_or_insert_with(|| both.clone());
        assert_close(&both, first, 1e-10);
    }
}

#[test]
fn prescribed_values_change_with_one_matrix_and_supports_with_another() {
    let text = [
        BAR,
        "[[step]]\nname = \"a\"\n[[step.constraint]]\non = \"xmax\"\ndisplacement = [0.1, \"free\", \"free\"]\n",
        "[[step]]\nname = \"b\"\n[[step.constraint]]\non = \"xmax\"\ndisplacement = [0.3, \"free\", \"free\"]\n",
        "[[step]]\nname = \"c\"\nop = \"new\"\n[[step.load]]\non = \"xmax\"\ntraction = [20.0, 0, 0]\n",
        "[[step]]\nname = \"d\"\nop = \"new\"\n[[step.load]]\non = \"all\"\ntemperature_change = 50.0\n",
        "[[step]]\nname = \"e\"\n[[step.constraint]]\non = \"xmax\"\ndisplacement = [0, \"free\", \"free\"]\n",
    ];
    let folder = tempfile::tempdir().unwrap();
    let probes = ["a", "b", "c", "d", "e"].map(probe).concat();
    let case = write_case(folder.path(), &(text.concat() + &probes));
    for n in rank_counts() {
        on_ranks(n, folder.path(), &[&case, "--quiet"]).expect_code(0);
        let summary = summary(&folder.path().join("results"));
        // Length 2, area 1: stress is E times strain, the bar gets thinner by Poisson's ratio.
        for (name, strain, thermal) in [
            ("a", 0.05, 0.0),
            ("b", 0.15, 0.0),
            ("c", 0.1, 0.0),
            ("d", 0.05, 0.05),
        ] {
            let lateral = 0.5 * (thermal - 0.25 * (strain - thermal));
            assert_close(
                &value(&summary, name),
                &[2.0 * strain, lateral, lateral],
                1e-9,
            );
        }
        // Held at both ends and heated: stress -E times thermal strain, lateral strain 1.25 times the thermal one.
        assert_close(&value(&summary, "e"), &[0.0, 0.03125, 0.03125], 1e-9);
        let force = |step: usize| {
            summary["steps"][step]["results"]["max_von_mises"]
                .as_f64()
                .unwrap()
        };
        assert_close(&[force(1), force(2), force(4)], &[30.0, 20.0, 10.0], 1e-9);
        assert_eq!(set_ups(&summary), [1, 0, 1, 0, 1]);
    }
}

/// A step in four increments under a traction whose factor goes 0, 1, 0.5.
fn with_amplitude() -> String {
    format!(
        "{BAR}[[amplitude]]\nname = \"up and down\"\ntable = [[0, 0], [1.0, 1.0], [2.0, 0.5]]\n[[step]]\ntime_period = 2.0\nincrements = 4\n\
         [[step.load]]\non = \"xmax\"\ntraction = [20.0, 0, 0]\namplitude = \"up and down\"\n[[step]]\nincrements = 2\n[[step.load]]\n\
         on = \"xmax\"\ntraction = [40.0, 0, 0]\n"
    )
}

/// Largest displacements of its frames: the load times 2 / 200, and the corner's way across.
fn expected_frames() -> ([f64; 6], Vec<f64>) {
    let factors = [10.0, 20.0, 15.0, 10.0, 25.0, 40.0];
    let of_corner = |traction: f64| {
        let strain: f64 = traction / 200.0;
        (4.0 * strain * strain + 2.0 * (0.25 * strain).powi(2)).sqrt()
    };
    (
        [0.5, 1.0, 1.5, 2.0, 2.5, 3.0],
        factors.map(of_corner).to_vec(),
    )
}

fn play(interpreter: &Path, file: &Path) -> (Vec<f64>, Vec<f64>) {
    let output = Command::new(interpreter)
        .arg(root().join("scripts/check_frames.py"))
        .arg(file)
        .output()
        .expect("the interpreter starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let start = stdout.find('{').expect("the script prints JSON");
    let found: Value = serde_json::from_str(&stdout[start..]).expect("the script prints JSON");
    let list = |name: &str| -> Vec<f64> {
        let values = found[name].as_array().expect("a list").iter();
        values.map(|v| v.as_f64().expect("a number")).collect()
    };
    (list("times"), list("largest"))
}

#[test]
fn vtk_plays_the_frames_of_any_ranks() {
    let python = root().join(".venv/bin/python");
    if !python.exists() {
        println!(
            "skipped: {} is not there; run scripts/setup.sh --test",
            python.display()
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &with_amplitude());
    let (times, sizes) = expected_frames();
    for n in rank_counts() {
        on_ranks(n, folder.path(), &[&case, "--quiet"]).expect_code(0);
        let (found_times, found) = play(&python, &folder.path().join("results/results.vtkhdf"));
        assert_eq!(found_times, times, "on {n} ranks");
        assert_close(&found, &sizes, 1e-9);
    }
}

#[test]
fn paraview_plays_the_series_of_a_moved_folder() {
    let has = |program: &str| {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {program}")])
            .output();
        found.is_ok_and(|o| o.status.success())
    };
    if !has("pvpython") {
        println!("skipped: pvpython is not installed; run scripts/setup.sh --test");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &with_amplitude());
    let ranks = if cfg!(feature = "mpi") { 2 } else { 0 };
    on_ranks(ranks, folder.path(), &[&case, "--quiet"]).expect_code(0);
    let moved = folder.path().join("moved");
    std::fs::rename(folder.path().join("results"), &moved).unwrap();
    let (times, sizes) = expected_frames();
    let (found_times, found) = play(Path::new("pvpython"), &moved.join("results.hdf.series"));
    assert_eq!(found_times, times);
    assert_close(&found, &sizes, 1e-6);
}

#[test]
fn fewer_frames_leave_no_views_of_an_earlier_run() {
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &with_amplitude());
    let views = || {
        let names = std::fs::read_dir(folder.path().join("results")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("results.0")).count()
    };
    alone(folder.path(), &[&case, "--quiet"]).expect_code(0);
    assert_eq!(views(), 6);
    alone(
        folder.path(),
        &[&case, "--quiet", "--set", "step.0.increments=1"],
    )
    .expect_code(0);
    assert_eq!(views(), 3);
    let single = write_case(
        folder.path(),
        &format!("{BAR}[[load]]\non = \"xmax\"\ntraction = [20, 0, 0]\n"),
    );
    alone(folder.path(), &[&single, "--quiet"]).expect_code(0);
    assert_eq!(views(), 0);
}

/// Numbers of a `.dat` file below a heading.
fn numbers(text: &str, heading: &str) -> Vec<f64> {
    let below = text
        .split_once(heading)
        .unwrap_or_else(|| panic!("no `{heading}` in\n{text}"))
        .1;
    let mut lines = below
        .lines()
        .skip(1)
        .skip_while(|line| line.trim().is_empty());
    let mut numbers = Vec::new();
    for line in lines.by_ref() {
        let of_line: Option<Vec<f64>> = line.split_whitespace().map(|f| f.parse().ok()).collect();
        match of_line {
            Some(of_line) if !of_line.is_empty() => numbers.extend(of_line),
            _ => break,
        }
    }
    numbers
}

#[test]
fn printed_tables_hold_the_closed_form_on_any_ranks() {
    let mut text = format!(
        "{BAR}[[load]]\non = \"xmax\"\nforce = [10.0, 0, 0]\n[[set]]\nname = \"end\"\nnodes_in_box = {{ min = [2, 0, 0], max = [2, 1, 1] }}\n\
        [[set]]\nname = \"held\"\nnodes_in_box = {{ min = [0, 0, 0], max = [0, 1, 1] }}\n"
    );
    for (kind, set, quantities) in [
        ("nodes", "end", "\"U\""),
        ("nodes", "held", "\"RF\""),
        (
            "elements",
            "all",
            "\"S\", \"E\", \"ENER\", \"ELSE\", \"EVOL\", \"COORD\"",
        ),
        ("section", "xmax", "\"SOF\", \"SOM\""),
    ] {
        let _ = write!(
            text,
            "[[print]]\nkind = \"{kind}\"\nset = \"{set}\"\nquantities = [{quantities}]\ntotals = \"yes\"\n"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &text);
    let mut first: Option<Vec<f64>> = None;
    for n in rank_counts() {
        on_ranks(n, folder.path(), &[&case, "--quiet"]).expect_code(0);
        let text = std::fs::read_to_string(folder.path().join("results/case.dat")).unwrap();
        let table = |heading: &str| numbers(&text, heading);
        let u = table("displacements (vx,vy,vz) for set end");
        assert_eq!(u.len(), 9 * 4);
        for node in u.chunks_exact(4) {
            assert_close(&node[1..2], &[0.1], 1e-6);
        }
        let total = table("total force (fx,fy,fz) for set held");
        assert_close(&total[..1], &[-10.0], 1e-6);
        let stresses = table("stresses (elem, integ.pnt.,sxx,syy,szz,sxy,sxz,syz) for set all");
        assert_eq!(stresses.len(), 16 * 8 * 8);
        for (k, row) in stresses.chunks_exact(8).enumerate() {
            assert_eq!(row[..2], [(k / 8 + 1) as f64, (k % 8 + 1) as f64]);
            assert_close(&row[2..], &[10.0, 0.0, 0.0, 0.0, 0.0, 0.0], 1e-6);
        }
        let strains = table("strains (elem, integ.pnt.,exx,eyy,ezz,exy,exz,eyz) for set all");
        assert_close(
            &strains[2..8],
            &[0.05, -0.0125, -0.0125, 0.0, 0.0, 0.0],
            1e-6,
        );
        let density = table("internal energy density (elem, integ.pnt.,eneint) for set all");
        assert_close(&density[2..3], &[0.25], 1e-6);
        assert_close(&table("total internal energy for set all"), &[0.5], 1e-6);
        assert_close(&table("total volume for set all"), &[2.0], 1e-6);
        let force = table("total surface force (fx,fy,fz) and moment about the origin(mx,my,mz)");
        assert_close(&force, &[10.0, 0.0, 0.0, 0.0, 5.0, -5.0], 1e-6);
        let last = table("torque and bending moment (size)");
        assert_close(&last, &[1.0, 10.0, 0.0, 0.0, 0.0], 1e-6);
        let all: Vec<f64> = [u, stresses].concat();
        let first = first.get_or_insert_with(|| all.clone());
        assert_close(&all, first, 1e-9);
    }
}

#[test]
fn fields_of_elements_are_written_and_the_error_is_in_the_summary() {
    let text = format!(
        "{BAR}[[load]]\non = \"xmax\"\ntraction = [20, 0, 0]\n[output]\nfields = [\"displacement\", \"element_stress\", \"error_estimate\"]\n\
         integration_points = true\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &text);
    let bent = text
        .replace("traction = [20, 0, 0]", "traction = [0, 0, 1]")
        .replacen("[0, \"free\", \"free\"]", "[0, 0, 0]", 1);
    let other = tempfile::tempdir().unwrap();
    let bent = write_case(other.path(), &bent);
    for n in rank_counts() {
        on_ranks(n, folder.path(), &[&case, "--quiet"]).expect_code(0);
        let even = summary(&folder.path().join("results"))["results"]["error_estimate"].clone();
        assert!(even.as_f64().unwrap() < 1e-6, "{even}");
        on_ranks(n, other.path(), &[&bent, "--quiet"]).expect_code(0);
        let found = summary(&other.path().join("results"))["results"]["error_estimate"].as_f64();
        assert!(found.unwrap() > 0.1, "{found:?}");
    }
    let python = root().join(".venv/bin/python");
    if !python.exists() {
        println!(
            "skipped: {} is not there; run scripts/setup.sh --test",
            python.display()
        );
        return;
    }
    let script = "import h5py, numpy, sys; d = h5py.File(sys.argv[1])['VTKHDF/CellData']; s = numpy.array([20, 0, 0, 0, 0, 0]); \
        assert numpy.allclose(d['element_stress'], s, atol=1e-6); assert d['integration_stress'].shape == (16, 48); \
        assert numpy.allclose(d['integration_stress'][:].reshape(16, 8, 6), s, atol=1e-6); assert (d['n_integration_points'][:] == 8).all()";
    let run = Command::new(python)
        .args(["-c", script])
        .arg(folder.path().join("results/results.vtkhdf"))
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
}
