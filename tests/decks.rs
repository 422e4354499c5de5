//! CalculiX's own test decks, where they are at hand (they are not part of the project): the static ones with solids give
//! the numbers of their reference output on 1, 2 and 4 ranks, all others are refused by name at once.

use crate::common::{alone, on_ranks, root};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Largest deviation of displacements, and of all other quantities, relative to the largest of their block.
const OF_DISPLACEMENTS: f64 = 1e-4;
const OF_OTHERS: f64 = 1e-3;
/// Longest time in which a deck is refused, in seconds.
const REFUSAL_SECONDS: u64 = 20;

/// Decks that run and agree with their reference output.
const AGREE: &[&str] = &[
    "achtel2",
    "achtel29",
    "achtel9",
    "achtelcas",
    "achtelg",
    "aniso",
    "beam20p",
    "beam8p",
    "beam8p_mpc",
    "beamd",
    "beamd2",
    "beamd3",
    "beamidset",
    "beamp",
    "beampis",
    "beampo2",
    "beampo3",
    "beampo4",
    "beampo6",
    "beampset",
    "beamptied1noadjust",
    "beamptied2",
    "beamt",
    "beamt3",
    "beamt4",
    "c3d6",
    "coupling1",
    "coupling10",
    "coupling11",
    "coupling1_set",
    "coupling3",
    "coupling6",
    "coupling7",
    "coupling9",
    "disk2",
    "inistrain",
    "mpcforce",
    "pret1",
    "segment1",
    "segment2",
    "segmentf",
];
/// Decks that run. Most have no reference output. achtelc prints a table of its centrifugal load, which we do not; beammpc
/// has an MPC BEAM, for which CalculiX takes rotations as large.
const RUN: &[&str] = &[
    "achtelc",
    "beammpc",
    "beamperror",
    "beamprb",
    "circ11p",
    "opt2",
    "patch_c3d8i",
    "segmentunsmooth",
];

/// Sizes by which deviations are measured where the reference is rounding: inistrain is free of stress, and held it would
/// be under E times its strain.
const SIZES: [(&str, f64); 1] = [("inistrain", 2100.0)];
/// Rows of the reference that are no results: the degree of freedom 2 of this node is a pressure.
const NO_NODES: [(&str, i64); 1] = [("beamd2", 262)];

/// The folder of decks, or `None` (said on stderr) where it is not.
fn folder() -> Option<PathBuf> {
    let folder = root().join("../shared/decks");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no folder {}", folder.display());
    None
}

/// Names of the decks, and whether each is linear static.
fn index(folder: &Path) -> Vec<(String, bool)> {
    let text = std::fs::read_to_string(folder.join("INDEX.csv")).expect("the folder has an index");
    let decks = text.lines().skip(1).filter_map(|line| {
        let mut fields = line.split(',');
        let deck = fields.next()?.strip_suffix(".inp")?.to_owned();
        Some((deck, fields.nth(1)? == "STATIC"))
    });
    decks.collect()
}

/// One table of a `.dat` file: rows of numbers behind whole numbers that say what they are of.
type Block = BTreeMap<Vec<i64>, Vec<f64>>;

/// The tables of a `.dat` file by their headings. Headings of a section have no time; all its rows are one block.
fn blocks(text: &str) -> Vec<(String, Block)> {
    let mut blocks: Vec<(String, Block)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut fields: Vec<&str> = line.split_whitespace().collect();
        // Behind numbers in local axes.
        if fields.last() == Some(&"L") {
            fields.pop();
        }
        let numbers: Option<Vec<f64>> = fields.iter().map(|f| f.parse().ok()).collect();
        match numbers {
            Some(numbers) => {
                let n_keys = fields
                    .iter()
                    .take_while(|f| f.parse::<i64>().is_ok())
                    .count();
                let Some((_, block)) = blocks.last_mut() else {
                    continue;
                };
                let mut key: Vec<i64> = fields[..n_keys]
                    .iter()
                    .filter_map(|f| f.parse().ok())
                    .collect();
                if key.is_empty() {
                    key.push(block.len() as i64);
                }
                block.insert(key, numbers[n_keys..].to_vec());
            }
            None if line.contains(" time ") => {
                let words: Vec<String> = fields.iter().map(|f| f.to_ascii_uppercase()).collect();
                blocks.push((words.join(" "), Block::new()));
            }
            None => {}
        }
    }
    blocks
}

/// The largest deviation of `found` from `expected`, as a share of what is allowed, and what is missing. Rows of zeros may
/// be missing: CalculiX prints them for numbers of a set that no node has.
fn deviation(deck: &str, found: &str, expected: &str) -> (f64, Vec<String>) {
    let given = SIZES.iter().find(|(name, _)| *name == deck);
    let is_no_node = |key: &[i64]| {
        NO_NODES
            .iter()
            .any(|&(name, id)| name == deck && key == [id])
    };
    let found = blocks(found);
    let mut worst: f64 = 0.0;
    let mut missing = Vec::new();
    for (heading, rows) in blocks(expected) {
        let Some((_, ours)) = found.iter().find(|(ours, _)| *ours == heading) else {
            missing.push(format!("no table `{heading}`"));
            continue;
        };
        let largest = rows
            .values()
            .flatten()
            .fold(0.0, |m: f64, v| m.max(v.abs()));
        let size = given.map_or(largest, |(_, size)| *size);
        let allowed = if heading.starts_with("DISPLACEMENTS") {
            OF_DISPLACEMENTS
        } else {
            OF_OTHERS
        };
        for (key, row) in rows.iter().filter(|(_, row)| row.iter().any(|&v| v != 0.0)) {
            let Some(ours) = ours.get(key).filter(|ours| ours.len() == row.len()) else {
                if !is_no_node(key) {
                    missing.push(format!("no row {key:?} in `{heading}`"));
                }
                continue;
            };
            for (a, b) in ours.iter().zip(row) {
                worst = worst.max((a - b).abs() / (allowed * size.max(f64::MIN_POSITIVE)));
            }
        }
    }
    (worst, missing)
}

/// What became of a deck on some ranks.
#[derive(Debug, PartialEq)]
enum Verdict {
    Agrees(f64),
    /// Agrees where there is something to compare; what is missing.
    Partly(f64, String),
    Differs(f64),
    /// Runs; there is nothing to compare with.
    Runs(String),
    /// Exit code, message.
    Refused(i32, String),
}

fn run(folder: &Path, deck: &str, n_ranks: usize) -> Verdict {
    let results = tempfile::tempdir().expect("there is a place for temporary files");
    let path = folder.join(format!("{deck}.inp")).display().to_string();
    let run = on_ranks(
        n_ranks,
        results.path(),
        &[&path, "-o", "results", "--quiet"],
    );
    if run.code != 0 {
        let message = run
            .error_lines()
            .first()
            .map(|line| line.replace(&format!("{}/", folder.display()), ""));
        return Verdict::Refused(run.code, message.unwrap_or_default());
    }
    let reference =
        std::fs::read_to_string(folder.join(format!("{deck}.dat.ref"))).unwrap_or_default();
    if blocks(&reference).is_empty() {
        return Verdict::Runs("no reference".to_owned());
    }
    let printed = results.path().join("results").join(format!("{deck}.dat"));
    let printed = std::fs::read_to_string(printed).unwrap_or_default();
    let (share, missing) = deviation(deck, &printed, &reference);
    match missing.first() {
        _ if share.is_nan() || share > 1.0 => Verdict::Differs(share),
        None => Verdict::Agrees(share),
        Some(first) => Verdict::Partly(share, format!("{first}, {} in all", missing.len())),
    }
}

fn ranks() -> &'static [usize] {
    if cfg!(feature = "mpi") {
        &[1, 2, 4]
    } else {
        &[0]
    }
}

#[test]
fn static_decks_give_the_numbers_of_their_reference() {
    let Some(folder) = folder() else { return };
    let mut table = String::new();
    let mut failures = Vec::new();
    let (mut n, mut n_agree, mut n_run) = (0, 0, 0);
    for (deck, _) in index(&folder)
        .into_iter()
        .filter(|(_, is_static)| *is_static)
    {
        n += 1;
        let mut verdicts = Vec::new();
        for &n_ranks in ranks() {
            verdicts.push(run(&folder, &deck, n_ranks));
            // What is refused is refused before ranks matter.
            if matches!(verdicts[0], Verdict::Refused(2, _)) {
                break;
            }
        }
        let agrees = verdicts.iter().all(|v| matches!(v, Verdict::Agrees(_)));
        let runs = verdicts.iter().all(|v| !matches!(v, Verdict::Refused(..)));
        (n_agree, n_run) = (n_agree + usize::from(agrees), n_run + usize::from(runs));
        let must_agree = AGREE.contains(&deck.as_str());
        if (must_agree && !agrees) || (RUN.contains(&deck.as_str()) && !runs) {
            failures.push(deck.clone());
        }
        for (ranks, verdict) in ranks().iter().zip(&verdicts) {
            let _ = match verdict {
                Verdict::Agrees(share) => writeln!(
                    table,
                    "{deck:22} {ranks}  agrees   {share:8.1e} of what is allowed"
                ),
                Verdict::Partly(share, what) => writeln!(
                    table,
                    "{deck:22} {ranks}  in part  {share:8.1e} of what is allowed; {what}"
                ),
                Verdict::Differs(share) => writeln!(
                    table,
                    "{deck:22} {ranks}  differs  {share:8.1e} of what is allowed"
                ),
                Verdict::Runs(why) => writeln!(table, "{deck:22} {ranks}  runs     {why}"),
                Verdict::Refused(code, message) => {
                    writeln!(table, "{deck:22} {ranks}  refused  {code} {message}")
                }
            };
        }
    }
    eprintln!(
        "{table}{n} static decks: {n_run} run, {n_agree} of them agree with their reference on {:?} ranks",
        ranks()
    );
    assert!(
        failures.is_empty(),
        "no longer as expected: {failures:?}\n{table}"
    );
}

/// What a case made of a deck with couplings, ties, equations, local axes, steps and temperatures gives is what the deck
/// gives, to the last digit.
#[test]
fn cases_made_of_decks_give_the_same_numbers() {
    let Some(folder) = folder() else { return };
    let scratch = tempfile::tempdir().expect("there is a place for temporary files");
    let at = scratch.path();
    for deck in [
        "coupling6",
        "beamptied2",
        "beam8p_mpc",
        "segment1",
        "beamt4",
        "pret1",
    ] {
        let path = folder.join(format!("{deck}.inp")).display().to_string();
        alone(at, &["mesh", "convert", &path, deck]).expect_code(0);
        let case = format!("{deck}/case.toml");
        alone(at, &[&path, "-o", "of_deck", "--quiet"]).expect_code(0);
        alone(at, &[&case, "-o", "of_case", "--quiet"]).expect_code(0);
        let results = |name: &str| crate::common::summary(&at.join(name))["results"].clone();
        assert_eq!(results("of_deck"), results("of_case"), "{deck}");
        let printed = |path: PathBuf| std::fs::read_to_string(path).expect("the deck prints");
        let of_deck = printed(at.join("of_deck").join(format!("{deck}.dat")));
        assert_eq!(of_deck, printed(at.join("of_case/case.dat")), "{deck}");
    }
}

#[test]
fn other_decks_are_refused_by_name() {
    let Some(folder) = folder() else { return };
    let scratch = tempfile::tempdir().expect("there is a place for temporary files");
    for (deck, is_static) in index(&folder) {
        if is_static {
            continue;
        }
        let path = folder.join(format!("{deck}.inp")).display().to_string();
        let start = Instant::now();
        let run = alone(scratch.path(), &[&path, "--quiet"]);
        let seconds = start.elapsed().as_secs();
        let errors = run.error_lines();
        assert_eq!((run.code, errors.len()), (2, 1), "{deck}: {}", run.stderr);
        assert!(
            errors[0].contains(&format!("{deck}.inp:")) && errors[0].contains(" is not supported"),
            "{}",
            errors[0]
        );
        assert!(seconds < REFUSAL_SECONDS, "{deck}: {seconds} s");
    }
    assert!(
        !scratch.path().join("results").exists(),
        "a refused deck leaves nothing"
    );
}

/// A bar of two bricks under tension, fixed at one end so that it is stretched evenly.
const BAR: &str = "*HEADING\nBar under tension\n*NODE\n1,0,0,0\n2,1,0,0\n3,1,1,0\n4,0,1,0\n5,0,0,1\n6,1,0,1\n7,1,1,1\n8,0,1,1\n\
    9,2,0,0\n10,2,1,0\n11,2,0,1\n12,2,1,1\n*ELEMENT, TYPE=C3D8, ELSET=Eall\n1, 1,2,3,4,5,6,7,8\n2, 2,9,10,3,6,11,12,7\n\
    *NSET, NSET=FIX\n1,4,5,8\n*NSET, NSET=TIP\n9,10,11,12\n*MATERIAL, NAME=M\n*ELASTIC\n100., 0.25\n*SOLID SECTION, ELSET=Eall, MATERIAL=M\n\
    *BOUNDARY\nFIX,1\n1,2,3\n4,3\n*STEP\n*STATIC\n*CLOAD\nTIP,1,2.5\n*END STEP\n";

#[test]
fn a_deck_and_the_case_made_of_it_give_the_same_numbers_on_any_ranks() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let at = folder.path();
    std::fs::write(at.join("bar.inp"), BAR).expect("the folder is writable");
    alone(at, &["mesh", "convert", "bar.inp", "bar"]).expect_code(0);
    for n in crate::common::rank_counts() {
        let mut results = Vec::new();
        for (input, output) in [("bar.inp", "of_deck"), ("bar/case.toml", "of_case")] {
            on_ranks(n, at, &[input, "-o", output, "--quiet"]).expect_code(0);
            let summary = crate::common::summary(&at.join(output));
            assert_eq!(summary["title"], "Bar under tension");
            results.push(summary["results"].clone());
        }
        assert_eq!(results[0], results[1], "on {n} ranks");
        // Stress 10, strain 0.1 along the bar: the tip moves by 0.2 there and by 0.025 twice across.
        let largest = results[0]["max_displacement"].as_f64().unwrap();
        let expected = f64::sqrt(0.2 * 0.2 + 2.0 * 0.025 * 0.025);
        assert!((largest - expected).abs() < 1e-9, "{largest}");
        assert!((results[0]["max_von_mises"].as_f64().unwrap() - 10.0).abs() < 1e-7);
    }
}

#[test]
fn overrides_and_check_take_decks() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let at = folder.path();
    std::fs::write(at.join("bar.inp"), BAR).expect("the folder is writable");
    let check = alone(at, &["check", "bar.inp", "--quiet"]).expect_code(0);
    assert!(
        check.stdout.contains("Bar under tension"),
        "{}",
        check.stdout
    );
    alone(at, &["bar.inp", "--set", "solver.method=cg", "--quiet"]).expect_code(0);
    let run = alone(at, &["bar.inp", "--set", "solver.metod=cg", "--quiet"]).expect_code(2);
    assert!(
        run.error_lines()[0].contains("--set solver.metod=cg"),
        "{}",
        run.stderr
    );
    let run = alone(at, &["missing.inp"]).expect_code(2);
    assert_eq!(run.error_lines(), ["error: missing.inp: deck not found"]);
}
