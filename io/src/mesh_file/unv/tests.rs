//! Universal files: node orders, groups, datasets of every age, and what is wrong with a file.

use crate::mesh_file::MeshFile;
use crate::mesh_file::fixtures::{curved, unv};
use fem_mesh::{CellFace, CellType, Result};

fn read_as(text: &str) -> Result<MeshFile> {
    super::read("a.unv".as_ref(), text.as_bytes())?.finish()
}

fn message(text: &str) -> String {
    read_as(text).unwrap_err().to_string()
}

#[test]
fn curved_cells_keep_their_nodes() {
    let in_format = |t: &CellType| t.n_corners() != 5 && t.n_nodes() != 27;
    for cell_type in CellType::SOLIDS.into_iter().filter(in_format) {
        let expected = curved(cell_type, false);
        let found = read_as(&unv(&expected)).unwrap();
        let mesh = &found.mesh;
        assert_eq!(
            (&mesh.coords, &mesh.cells),
            (&expected.coords, &expected.cells),
            "{cell_type}"
        );
        assert_eq!(
            (&mesh.node_ids, &mesh.cell_ids),
            (&expected.node_ids, &expected.cell_ids)
        );
        let face = [CellFace { cell: 0, face: 1 }];
        assert_eq!(
            (&mesh.sets.faces["skin"][..], &mesh.sets.faces["pid_4"][..]),
            (&face[..], &face[..])
        );
        assert_eq!(
            (&mesh.sets.nodes["corner"], &mesh.sets.cells["pid_3"]),
            (&vec![0], &vec![0])
        );
        assert_eq!(
            found.warnings,
            ["1 elements that are neither solids nor surface elements, ignored"]
        );
    }
}

#[test]
fn older_datasets_and_groups_of_two_numbers() {
    let text = "    -1\n   151\nanything\n    -1\n    -1\n    15\n1 0 0 1 0.0 0.0 0.0\n2 0 0 1 1.0 0.0 0.0\n3 0 0 1 0.0 1.D0 \
        0.0\n4 0 0 1 0.0 0.0 1.0\n    -1\n    -1\n    55\nresults\n    -1\n    -1\n   780\n5 111 1 6 1 1 7 4\n1 2 3 4\n    -1\n    -1\n  2432\n3 0 0 0 \
        0 0 0 3\n\n7 1 7 2 8 5 0 0\n4 0 0 0 0 0 0 0\nnothing\n    -1\n";
    let found = read_as(&text.replace('\n', "\r\n")).unwrap();
    let sets = &found.mesh.sets;
    assert_eq!(
        (&sets.nodes["group_3"], &sets.cells["group_3"]),
        (&vec![0, 1], &vec![0])
    );
    assert_eq!(sets.cells["pid_6"], [0]);
    assert_eq!(
        found.warnings,
        [
            "only the mesh is read; ignored: datasets 55",
            "element set without solid elements: `nothing`",
        ]
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let text = unv(&curved(CellType::Hex8, false));
    let file = |from: &str, to: &str| message(&text.replacen(from, to, 1));
    assert!(file("  2411", "  2413").contains("names node 11, which does not exist"));
    assert!(file("D0", "Dx").starts_with("a.unv:4: not a number"));
    assert!(
        file("7 115 3 1 7 8", "7 115 3 1 7 9").contains("nodes of element 7; expected 9 nodes")
    );
    assert!(
        file("7 115 3 1 7 8", "7 116 3 1 7 8").contains("element 7 has 8 nodes; expected 20 nodes")
    );
    assert!(
        file("7 115 3 1 7 8", "7 117 3 1 7 8")
            .contains("element type I-DEAS type 117 is not supported yet")
    );
    assert!(file("7 115 3 1 7 8", "7 115 3 1 7 99999999999999").contains("nodes of element 7"));
    assert!(
        file("0 0 0 0 0 2\ncorner", "0 0 0 0 0 999999999999\ncorner")
            .contains("dataset 2467 ends too early")
    );
    assert!(
        message(text.trim_end().trim_end_matches("-1"))
            .contains("the file ends inside dataset 2467")
    );
    assert!(message("    -1\n  2411\n  -1\nx\n").contains("a.unv:4: `x` between datasets"));
    let local = "    -1\n  2420\n1\nname\n1 0 0\nlocal\n0 1 0\n-1 0 0\n0 0 1\n0 0 0\n    -1\n";
    assert!(
        message(&format!("{local}{text}"))
            .contains("nodes in the local coordinate system 1; expected coordinates"),
    );
    let global = local.replace("0 1 0\n-1 0 0", "1 0 0\n0 1. 0");
    assert_eq!(
        read_as(&format!("{global}{text}")).unwrap().mesh.n_cells(),
        1
    );
}
