//! What a user does wrong: one clear message, the documented exit code, no hang, on one rank and on several.

use crate::common::{box_case, on_ranks, root, summary, write_case};
use std::path::Path;

/// Without a launcher and on four ranks.
fn rank_counts() -> Vec<usize> {
    if cfg!(feature = "mpi") {
        vec![0, 4]
    } else {
        vec![0]
    }
}

/// Runs in `directory` and expects exactly one error message that contains all of `parts`.
#[track_caller]
fn expect_error(directory: &Path, args: &[&str], code: i32, parts: &[&str]) {
    for n in rank_counts() {
        let run = on_ranks(n, directory, args).expect_code(code);
        let errors = run.error_lines();
        assert_eq!(errors.len(), 1, "on {n} ranks:\n{}", run.stderr);
        for part in parts {
            assert!(
                errors[0].contains(part),
                "{part:?} is not in {:?}",
                errors[0]
            );
        }
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    }
}

#[test]
fn every_bad_case_file_gets_its_message() {
    let folder = root().join("tests/bad_cases");
    let mut n_cases = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let case = entry.unwrap().path();
        let read = |name: &str| std::fs::read_to_string(case.join(name)).ok();
        let code = read("code.txt").unwrap().trim().parse().unwrap();
        let message = read("message.txt").unwrap();
        let overrides = read("overrides.txt").unwrap_or_default();
        let mut args = vec!["check", "case.toml"];
        overrides
            .lines()
            .for_each(|text| args.extend(["--set", text]));
        expect_error(
            &case,
            &args,
            code,
            &[&format!("error: {}", message.trim_end())],
        );
        n_cases += 1;
    }
    assert!(n_cases >= 60, "only {n_cases} bad cases found");
}

#[test]
fn files_that_are_missing_or_directories_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    expect_error(at, &["nothing.toml"], 2, &["nothing.toml", "no such file"]);
    expect_error(at, &["."], 2, &["directory"]);
    let with_mesh = |file: &str| {
        let mesh = format!("file = {file:?}");
        box_case([2, 1, 1], "hex8", "").replace(
            "box = { size = [2.0, 1.0, 1.0], cells = [2, 1, 1], element = \"hex8\" }",
            &mesh,
        )
    };
    let case = write_case(at, &with_mesh("missing.msh"));
    expect_error(at, &[&case], 2, &["missing.msh", "not found"]);
    let case = write_case(at, &with_mesh("."));
    expect_error(at, &[&case], 2, &["directory"]);
    std::fs::write(at.join("mesh.stl"), "solid").unwrap();
    let case = write_case(at, &with_mesh("mesh.stl"));
    expect_error(at, &[&case], 2, &["mesh.stl", ".msh", ".inp"]);
}

#[test]
fn sets_that_do_not_exist_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([2, 1, 1], "hex8", ""));
    let set = "constraint.0.on=\"xmn\"";
    expect_error(
        folder.path(),
        &[&case, "--set", set],
        2,
        &["xmn", "xmin", "zmax"],
    );
}

/// Writes a deck of two tetrahedra and a case that uses it; `lines` follow.
fn deck_case(directory: &Path, nodes: &str, elements: &str, lines: &str) -> String {
    let deck = format!(
        "*NODE\n{nodes}*ELEMENT, TYPE=C3D4, ELSET=body\n{elements}*NSET, NSET=base\n1, 2, 3\n{lines}"
    );
    std::fs::write(directory.join("mesh.inp"), deck).unwrap();
    write_case(
        directory,
        "[mesh]\nfile = \"mesh.inp\"\n[[material]]\nname = \"m\"\nyoung = 1.0\npoisson = 0.3\nelements = \"body\"\n\
         [[constraint]]\non = \"base\"\ndisplacement = [0.0, 0.0, 0.0]\n\
         [[load]]\non = \"body\"\nbody_force = [0.0, 0.0, -1.0]\n",
    )
}

const NODES: &str = "1, 0, 0, 0\n2, 1, 0, 0\n3, 0, 1, 0\n4, 0, 0, 1\n5, 1, 1, 1\n";
const ELEMENTS: &str = "10, 1, 2, 3, 4\n20, 2, 3, 4, 5\n";

#[test]
fn a_sound_deck_is_solved() {
    // The other tests of decks spoil this one.
    let folder = tempfile::tempdir().unwrap();
    let case = deck_case(folder.path(), NODES, ELEMENTS, "");
    for n in rank_counts() {
        on_ranks(n, folder.path(), &[&case]).expect_code(0);
    }
}

#[test]
fn damaged_meshes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let case = deck_case(
        at,
        &NODES.replace("4, 0, 0, 1", "4, 0, nan, 1"),
        ELEMENTS,
        "",
    );
    expect_error(at, &[&case], 2, &["mesh.inp:5", "nan"]);
    let case = deck_case(
        at,
        NODES,
        &ELEMENTS.replace("20, 2, 3, 4, 5", "20, 2, 3, 4"),
        "",
    );
    expect_error(at, &[&case], 2, &["mesh.inp:", "20"]);
    let case = deck_case(
        at,
        NODES,
        &ELEMENTS.replace("20, 2, 3, 4, 5", "20, 2, 3, 4, 77"),
        "",
    );
    expect_error(at, &[&case], 2, &["mesh.inp", "77"]);
    let case = deck_case(at, NODES, &format!("{ELEMENTS}30, 1, 2, 3, 4\n"), "");
    expect_error(at, &[&case], 2, &["10", "30"]);
    let case = deck_case(at, NODES, &format!("{ELEMENTS}20, 1, 2, 3, 5\n"), "");
    expect_error(at, &[&case], 2, &["20"]);
    let truncated = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n3\n1 0 0 0\n2 1 0 0\n";
    std::fs::write(at.join("cut.msh"), truncated).unwrap();
    let text = std::fs::read_to_string(at.join("case.toml"))
        .unwrap()
        .replace("mesh.inp", "cut.msh");
    let case = write_case(at, &text);
    expect_error(at, &[&case], 2, &["cut.msh"]);
}

#[test]
fn mirrored_elements_are_turned_and_folded_ones_named() {
    let folder = tempfile::tempdir().unwrap();
    let mirrored = ELEMENTS.replace("20, 2, 3, 4, 5", "20, 3, 2, 4, 5");
    let case = deck_case(folder.path(), NODES, &mirrored, "");
    for n in rank_counts() {
        let run = on_ranks(n, folder.path(), &[&case]).expect_code(0);
        let warning = "1 of 2 elements is given inside out (mirrored) and turned: 20";
        assert!(run.stderr.contains(warning), "{}", run.stderr);
    }
    // A hexahedron whose top is crossed over: no order of the same nodes makes it sound.
    let cube = "11, 5, 0, 0\n12, 6, 0, 0\n13, 6, 1, 0\n14, 5, 1, 0\n15, 5, 0, 1\n16, 6, 0, 1\n17, 6, 1, 1\n18, 5, 1, 1\n";
    let crossed = "*ELEMENT, TYPE=C3D8, ELSET=body\n30, 11, 12, 13, 14, 16, 15, 17, 18\n*NSET, NSET=base\n11, 12, 14\n";
    let case = deck_case(folder.path(), &format!("{NODES}{cube}"), ELEMENTS, crossed);
    expect_error(folder.path(), &[&case], 3, &["30", "Jacobian"]);
}

#[test]
fn elements_without_material_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let more = "*ELEMENT, TYPE=C3D4, ELSET=bare\n30, 1, 2, 4, 5\n";
    let case = deck_case(folder.path(), NODES, ELEMENTS, more);
    expect_error(folder.path(), &[&case], 2, &["30", "material"]);
}

#[test]
fn orphan_nodes_are_dropped_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let case = deck_case(
        folder.path(),
        &format!("{NODES}99, 5, 5, 5\n"),
        ELEMENTS,
        "",
    );
    for n in rank_counts() {
        let run = on_ranks(n, folder.path(), &[&case]).expect_code(0);
        assert!(
            run.stderr.contains("warning: ") && run.stderr.contains("99"),
            "{}",
            run.stderr
        );
        let summary = summary(&folder.path().join("results"));
        assert_eq!(summary["mesh"]["nodes"], 5);
        assert!(summary["warnings"][0].as_str().unwrap().contains("99"));
    }
}

#[test]
fn free_rigid_motions_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([4, 2, 2], "hex8", ""));
    let roller = "constraint.0.displacement=[0.0, \"free\", \"free\"]";
    let motions = ["translation y", "translation z", "rotation about x"];
    expect_error(folder.path(), &[&case, "--set", roller], 3, &motions);
    assert_eq!(summary(&folder.path().join("results"))["exit_code"], 3);
    expect_error(
        folder.path(),
        &[&case, "--set", "constraint=[]"],
        3,
        &["translation x", "rotation about z"],
    );
}

#[test]
fn parts_that_hang_together_at_an_edge_or_a_point_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let far = format!("{NODES}6, 2, 1, 0\n7, 2, 2, 2\n");
    let case = deck_case(folder.path(), &far, "10, 1, 2, 3, 4\n20, 2, 3, 6, 7\n", "");
    let hinge = [
        "rotation about (",
        "part with node 2 ",
        "(4 nodes",
        "an edge or a point",
    ];
    expect_error(folder.path(), &[&case], 3, &hinge);
    let case = deck_case(folder.path(), &far, "10, 1, 2, 3, 4\n20, 2, 5, 6, 7\n", "");
    let point = ["rotation about x", "rotation about z", "an edge or a point"];
    // A load that does not turn the part makes no difference.
    for load in ["load.0.body_force=[0.0, 0.0, -1.0]", "load=[]"] {
        expect_error(folder.path(), &[&case, "--set", load], 3, &point);
    }
}

#[test]
fn a_stiffness_beyond_all_numbers_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([4, 2, 2], "hex8", ""));
    for method in ["direct", "cg"] {
        let args = [
            &case,
            "--set",
            "material.0.young=1.7e308",
            "--set",
            &format!("solver.method=\"{method}\""),
        ];
        let parts = ["the matrix holds numbers that are not finite, the first at node "];
        expect_error(folder.path(), &args, 3, &parts);
    }
}

#[test]
fn no_load_is_solved_by_zero_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let case = write_case(folder.path(), &box_case([4, 2, 2], "hex8", ""));
    for n in rank_counts() {
        for method in ["direct", "cg"] {
            let set = format!("solver.method={method}");
            let run = on_ranks(
                n,
                folder.path(),
                &[&case, "--set", "load=[]", "--set", &set],
            )
            .expect_code(0);
            assert!(run.stderr.contains("warning: "), "{}", run.stderr);
            let summary = summary(&folder.path().join("results"));
            assert_eq!(summary["results"]["max_displacement"], 0.0);
            assert_eq!(summary["solver"]["iterations"], 0);
        }
    }
}

#[test]
fn an_output_directory_that_cannot_be_is_refused_before_the_solution() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let case = write_case(at, &box_case([2, 1, 1], "hex8", ""));
    std::fs::write(at.join("occupied"), "a file").unwrap();
    expect_error(at, &[&case, "-o", "occupied"], 2, &["occupied"]);
    expect_error(at, &[&case, "-o", "/proc/nowhere"], 4, &["/proc/nowhere"]);
    assert_eq!(
        std::fs::read_to_string(at.join("occupied")).unwrap(),
        "a file"
    );
}

#[test]
fn contradicting_supports_and_loads_without_density_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let twice = "[[constraint]]\non = \"zmin\"\ndisplacement = [0.1, \"free\", \"free\"]\n";
    let case = write_case(at, &box_case([2, 1, 1], "hex8", twice));
    expect_error(at, &[&case], 2, &["prescribed twice", "case.toml:"]);
    let far = "[[probe]]\nname = \"far\"\nat = [9.0, 0.0, 0.0]\nfield = \"displacement\"\n";
    let case = write_case(at, &box_case([2, 1, 1], "hex8", far));
    expect_error(at, &[&case], 2, &["case.toml:", "(9"]);
}
