//! Tests of reading, overriding and refusing whole case files.
//!
//! The bad inputs stand in `tests/bad_cases/NAME/` of the workspace: `case.toml`, `message.txt` (what is printed, with
//! the case named as `case.toml`), `code.txt` (exit code), and `overrides.txt` (a `--set` per line) where there are
//! any. The system tests give the same folders to the program.

use super::{
    Case, ElasticInput, Field, LoadKind, MeshSource, Method, ProbeAt, Selection, load_text, parse,
};
use crate::check::{SetCatalog, SetKind, check_against_sets, check_definitions};
use fem_mesh::Result;
use std::path::{Path, PathBuf};

const FILE: &str = include_str!("samples/file.toml");
const BOX: &str = include_str!("samples/box.toml");

fn with_overrides(text: &str, overrides: &[&str]) -> Result<Case> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.toml");
    std::fs::write(&path, text).unwrap();
    let overrides: Vec<_> = overrides.iter().map(|&item| item.to_owned()).collect();
    parse(Path::new("case.toml"), &load_text(&path, &overrides)?)
}

#[test]
fn a_case_is_read_as_it_is_written() {
    let case = parse(Path::new("folder/case.toml"), FILE).unwrap();
    assert_eq!(
        case.mesh.source,
        MeshSource::File(PathBuf::from("folder/bracket.msh"))
    );
    assert_eq!(
        (case.mesh.scale, case.materials[0].density),
        (1e-3, Some(7850.0))
    );
    assert_eq!(case.constraints[0].on, ["bolts", "base"]);
    assert_eq!(
        case.constraints[0].displacement,
        [Some(0.0), Some(0.0), None]
    );
    assert_eq!(case.loads[1].kind, LoadKind::Traction([0.0, 0.0, -1e6]));
    let kinds: Vec<_> = case.loads.iter().map(|load| load.kind.name()).collect();
    let expected = [
        "pressure",
        "traction",
        "force",
        "moment",
        "body_force",
        "gravity",
        "centrifugal",
        "temperature_change",
    ];
    assert_eq!(kinds, expected);
    let Selection::FacesInBox { min, max } = case.sets[0].selection else {
        panic!("faces")
    };
    assert_eq!(
        (min, max),
        (
            [1.0, f64::NEG_INFINITY, f64::NEG_INFINITY],
            [f64::INFINITY; 3]
        )
    );
    assert_eq!(
        (case.solver.method, case.parallel.threads),
        (Method::Cg, Some(2))
    );
    assert_eq!(case.probes[1].at, ProbeAt::Set("base".to_owned()));
    assert_eq!(case.probes[1].field, Field::VonMises);
    assert!(case.checks[0].passes(-1.2400e-3) && !case.checks[0].passes(f64::NAN));
}

#[test]
fn byte_order_mark_and_windows_line_ends_do_no_harm() {
    let text = format!("\u{feff}{}", FILE.replace('\n', "\r\n"));
    let case = parse(Path::new("case.toml"), &text).unwrap();
    assert_eq!(case.loads.len(), 8);
    let error = parse(Path::new("case.toml"), &text.replace("young", "yuong")).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("case.toml:14:1: unknown key `yuong`"),
        "{error}"
    );
}

#[test]
fn overrides_reach_tables_lists_and_named_entries() {
    let case = with_overrides(
        FILE,
        &[
            "solver.tolerance=1e-6",
            "load.1.traction=[1, 2, 3]",
            "material.steel.young=70e9",
            "title=Two words",
        ],
    )
    .unwrap();
    assert_eq!(case.solver.tolerance, 1e-6);
    assert_eq!(case.loads[1].kind, LoadKind::Traction([1.0, 2.0, 3.0]));
    assert_eq!(
        (case.materials[0].elastic[0].value, case.title.as_str()),
        (
            ElasticInput::Isotropic {
                young: 70e9,
                poisson: 0.3
            },
            "Two words"
        )
    );
    let case = with_overrides(
        BOX,
        &[
            "mesh.box.cells=[4, 5, 6]",
            "mesh.box.element=tet10",
            "solver.method = direct",
        ],
    );
    let case = case.unwrap();
    let MeshSource::Box(source) = &case.mesh.source else {
        panic!("a box")
    };
    assert_eq!(
        (source.cells, source.element.name(), case.solver.method),
        ([4, 5, 6], "tet10", Method::Direct)
    );
}

#[test]
fn a_bad_override_is_named_and_the_places_in_the_file_stay() {
    let message = |overrides: &[&str]| with_overrides(FILE, overrides).unwrap_err().to_string();
    for (item, part) in [
        ("solver.tolerance", "the override has no `=`"),
        ("solver..tolerance=1", "empty part"),
        ("title=", "has no value"),
        ("mesh.box.cells=[1,2", "not valid TOML"),
        ("mesh.scale.x=1", "`scale` is 0.001 and has no key `x`"),
        (
            "load.9.pressure=1",
            "`load` has 8 entries, numbered from 0, and none is `9`",
        ),
        (
            "solver.tolerance=2",
            "`tolerance` is 2; expected a finite number between 0 and 1",
        ),
        ("solver.tolerence=1e-3", "did you mean `tolerance`?"),
    ] {
        let message = message(&[item]);
        assert!(message.contains(&format!("--set {item}: ")), "{message}");
        assert!(message.contains(part), "{message}");
    }
    let text = FILE.replace("young = 210e9", "young = 0");
    let error = with_overrides(&text, &["title=x", "solver.tolerance=1e-3"])
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("case.toml:14:9: `young` is 0"), "{error}");
}

#[test]
fn what_is_no_case_file_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let message = |name: &str, bytes: Option<&[u8]>| {
        let path = folder.path().join(name);
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).unwrap();
        }
        let error = load_text(&path, &[]).unwrap_err();
        assert_eq!((error.exit_code(), error.file()), (2, Some(path.as_path())));
        error.to_string()
    };
    assert!(message("missing.toml", None).contains("there is no such file"));
    assert!(message("missing.inp", None).contains("there is no such file"));
    assert!(message("part.msh", Some(b"$MeshFormat\n")).contains("this is a mesh file"));
    assert!(
        message("latin.toml", Some(b"a = 1\ntitle = \"\xe9\"\n"))
            .contains("latin.toml:2: the file is not UTF-8")
    );
    assert!(
        message("nul.toml", Some(b"a = 1\nb = \0\n"))
            .contains("nul.toml:2:5: there is a NUL character")
    );
    assert!(!message("", None).contains("did you mean"));
    std::fs::write(folder.path().join("case.toml"), "").unwrap();
    assert!(
        message("", None)
            .contains("this is a directory; expected a case file in TOML; did you mean")
    );
}

#[test]
fn no_text_makes_the_parser_panic() {
    for (at, _) in FILE.char_indices() {
        let _ = parse(Path::new("case.toml"), &FILE[..at]);
        for junk in ["é", "[", "\"", "=", "\n", "-"] {
            let text = format!("{}{junk}{}", &FILE[..at], &FILE[at..]);
            if let Err(error) = parse(Path::new("case.toml"), &text) {
                assert!(error.line().is_some(), "{error}");
            }
        }
    }
}

/// What the program says of a case up to where the mesh is made: a box has six face sets and all elements.
fn message_of(folder: &Path) -> Result<Vec<String>> {
    let overrides = std::fs::read_to_string(folder.join("overrides.txt")).unwrap_or_default();
    let overrides: Vec<_> = overrides.lines().map(str::to_owned).collect();
    let text = load_text(&folder.join("case.toml"), &overrides)?;
    let case = parse(Path::new("case.toml"), &text)?;
    let mut sets = SetCatalog::new(1);
    for name in ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"] {
        sets.add(name, SetKind::Face, 1);
    }
    check_definitions(&case, &sets)?;
    check_against_sets(&case, &sets)
}

#[test]
fn every_bad_case_gets_the_message_beside_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/bad_cases");
    let mut folders: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    let mut n = 0;
    for folder in folders
        .iter()
        .filter(|folder| !folder.join("needs_mesh").exists())
    {
        let name = folder.file_name().unwrap().to_string_lossy();
        let expected = std::fs::read_to_string(folder.join("message.txt")).unwrap_or_default();
        let code = std::fs::read_to_string(folder.join("code.txt")).unwrap_or_default();
        let error = message_of(folder).expect_err(&name);
        assert_eq!(error.to_string(), expected.trim_end(), "{name}");
        assert_eq!(error.exit_code().to_string(), code.trim(), "{name}");
        n += 1;
    }
    assert!(n >= 40, "only {n} bad cases found");
}
