//! Constraints between nodes through the whole program: a bar read from a file with its reference node, ranks agreeing.

use crate::common::{on_ranks, rank_counts, summary};
use serde_json::Value;

/// Two bars of 1 x 1 x 1, each of one element, end to end without a common node, and node 100 in no element.
const MESH: &str = "*NODE
1, 0, 0, 0
2, 1, 0, 0
3, 1, 1, 0
4, 0, 1, 0
5, 0, 0, 1
6, 1, 0, 1
7, 1, 1, 1
8, 0, 1, 1
11, 1, 0, 0
12, 2, 0, 0
13, 2, 1, 0
14, 1, 1, 0
15, 1, 0, 1
16, 2, 0, 1
17, 2, 1, 1
18, 1, 1, 1
100, 3, 0.5, 0.5
*ELEMENT, TYPE=C3D8, ELSET=EALL
1, 1, 2, 3, 4, 5, 6, 7, 8
2, 11, 12, 13, 14, 15, 16, 17, 18
*SURFACE, NAME=LEFT
1, S6
*SURFACE, NAME=INNER
1, S4
*SURFACE, NAME=OUTER
2, S6
*SURFACE, NAME=RIGHT
2, S4
*NSET, NSET=TIP
100
";

/// Poisson's ratio 0, E A = 1000, length 2: a force of 10 at the tip gives 0.02.
const CASE: &str = "[mesh]
file = \"bars.inp\"
[[material]]
name = \"m\"
young = 1000.0
poisson = 0.0
[[constraint]]
on = \"LEFT\"
displacement = [0.0, 0.0, 0.0]
[[tie]]
slave = \"OUTER\"
master = \"INNER\"
[[coupling]]
kind = \"kinematic\"
reference = 100
on = \"RIGHT\"
[[load]]
on = \"TIP\"
force = [10.0, 0.0, 0.0]
[solver]
tolerance = 1e-12
[[probe]]
name = \"tip\"
set = \"TIP\"
field = \"displacement\"
[[check]]
probe = \"tip\"
component = 0
expected = 0.02
tolerance = 1e-9
[[probe]]
name = \"left\"
set = \"LEFT\"
field = \"reaction\"
[[check]]
probe = \"left\"
component = 0
expected = -10.0
tolerance = 1e-9
";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[test]
fn a_tied_bar_on_a_reference_node_is_the_same_on_any_number_of_ranks() {
    for n in rank_counts() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bars.inp"), MESH).unwrap();
        std::fs::write(folder.path().join("case.toml"), CASE).unwrap();
        let run = on_ranks(n, folder.path(), &["case.toml"]).expect_code(0);
        let summary = summary(&folder.path().join("results"));
        let results = &summary["results"];
        assert!(number(&results["balance_error"]) < 1e-9, "{results}");
        for i in 0..3 {
            assert!(
                number(&results["constraint_sum"][i]).abs() < 1e-8,
                "{results}"
            );
        }
        assert!(
            !run.stdout.contains("sum of constraint forces"),
            "{}",
            run.stdout
        );
        // 16 nodes of elements, the reference node and its rotations.
        assert_eq!(summary["dofs"], 3 * 18);
        assert_eq!(summary["checks"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn parts_that_nothing_joins_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bars.inp"), MESH).unwrap();
    let untied = CASE
        .replace("slave = \"OUTER\"\nmaster = \"INNER\"\n", "")
        .replace("[[tie]]\n", "");
    std::fs::write(folder.path().join("case.toml"), untied).unwrap();
    for n in rank_counts() {
        let run = on_ranks(n, folder.path(), &["check", "case.toml"]).expect_code(3);
        assert!(run.stderr.contains("left free"), "{}", run.stderr);
        assert!(run.stderr.contains("body with node 11"), "{}", run.stderr);
    }
}
