//! Every prebuilt case against its own checks, without a launcher and on 1 to 4 ranks.

use crate::common::{on_ranks, rank_counts, root};

#[test]
fn every_case_passes_its_checks_on_every_number_of_ranks() {
    let cases = root().join("cases");
    for n in rank_counts() {
        let run = on_ranks(
            n,
            &root(),
            &["verify", "--quiet", &cases.display().to_string()],
        )
        .expect_code(0);
        assert!(run.stdout.contains(", 0 failed"), "{}", run.stdout);
        let n_cases = std::fs::read_dir(&cases)
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().join("case.toml").exists())
            .count();
        assert!(n_cases >= 12, "only {n_cases} cases");
        assert_eq!(
            run.stdout.matches("  pass  ").count(),
            n_cases,
            "{}",
            run.stdout
        );
    }
    let patch = cases.join("patch-hex8").display().to_string();
    let run = on_ranks(0, &root(), &["verify", "-v", &patch]).expect_code(0);
    assert!(
        run.stdout.matches("  pass  ").count() > 20,
        "{}",
        run.stdout
    );
    on_ranks(0, &root(), &["verify", "no/such/case"]).expect_code(2);
}

#[test]
fn verify_fails_when_a_check_fails() {
    let folder = tempfile::tempdir().unwrap();
    let check = "[[probe]]\nname = \"tip\"\nset = \"xmax\"\nfield = \"displacement\"\n\
                 [[check]]\nprobe = \"tip\"\ncomponent = 2\nexpected = 1.0\ntolerance = 0.1\n";
    let case = crate::common::write_case(
        folder.path(),
        &crate::common::box_case([2, 1, 1], "hex8", check),
    );
    let run = on_ranks(0, folder.path(), &["verify", &case]).expect_code(1);
    assert!(run.stdout.contains("FAIL"), "{}", run.stdout);
    // The same as a plain run: the check decides the exit code.
    on_ranks(0, folder.path(), &[&case]).expect_code(1);
}
