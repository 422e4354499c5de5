//! Nastran decks: every form of entries, node orders, and what is wrong with a deck.

use crate::mesh_file::fixtures::{curved, nastran};
use crate::mesh_file::{MeshFile, read};
use fem_mesh::{CellFace, CellType, Result};

fn read_as(text: &str) -> Result<MeshFile> {
    super::read("a.bdf".as_ref(), text.as_bytes())?.finish()
}

fn message(text: &str) -> String {
    let error = read_as(text).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

#[test]
fn curved_cells_keep_their_nodes() {
    // It has no hexahedron of 27 nodes.
    for cell_type in CellType::SOLIDS.into_iter().filter(|t| t.n_nodes() != 27) {
        let expected = curved(cell_type, false);
        let found = read_as(&nastran(&expected)).unwrap();
        let mesh = &found.mesh;
        assert_eq!(mesh.coords, expected.coords, "{cell_type}");
        assert_eq!(mesh.cells, expected.cells, "{cell_type}");
        assert_eq!(
            (&mesh.node_ids, &mesh.cell_ids),
            (&expected.node_ids, &expected.cell_ids)
        );
        assert_eq!(mesh.sets.cells["pid_3"], [0]);
        assert_eq!(mesh.sets.faces["pid_4"], [CellFace { cell: 0, face: 1 }]);
        assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
        assert_eq!(
            found.warnings[1],
            "only the mesh of the deck is read; ignored: 1 SPC1"
        );
    }
}

#[test]
fn numbers_in_every_form_and_entries_in_every_field_form() {
    let text = "\
$ a comment
GRID           1        -7.000-1      0.   0.0+0                        $ another
GRID*                  2                         1.3D+00           0.0+0*A
*A                    .0
grid,3,,-7.00E-1,7.000-1
GRID\t4\t\t1.300+0\t7.0D-01\t0.0+0
CTETRA         9               1       2       3       4
CTETRA,10,2,1,2,3,5,
GRID           5               0         2.000-2
ENDDATA
GRID           1            99.0
";
    let found = read_as(text).unwrap();
    let mesh = &found.mesh;
    assert_eq!(
        mesh.coords,
        [
            [-0.7, 0.0, 0.0],
            [1.3, 0.0, 0.0],
            [-0.7, 0.7, 0.0],
            [1.3, 0.7, 0.0],
            [0.0, 0.0, 0.02]
        ]
    );
    // An element without property number has its own.
    assert_eq!(
        (&mesh.sets.cells["pid_9"], &mesh.sets.cells["pid_2"]),
        (&vec![0], &vec![1])
    );
}

#[test]
fn nodes_of_local_systems_are_placed() {
    let text = "\
CORD2C,5,,1.,0.,0.,1.,0.,1.,+
+,2.,0.,0.
GRDSET,,5
GRID,1,0,0.,0.,0.
GRID,2,,2.,90.,0.
GRID,3,,1.,180.,1.
GRID,4,0,3.,0.,0.
CTETRA,1,1,1,4,2,3
";
    let coords = read_as(text).unwrap().mesh.coords;
    for (found, expected) in
        coords
            .iter()
            .zip([[0.0; 3], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0], [3.0, 0.0, 0.0]])
    {
        assert!(
            (0..3).all(|k| (found[k] - expected[k]).abs() < 1e-15),
            "{coords:?}"
        );
    }
    let message = message("GRID,1,8,0.,0.,0.\nCTETRA,1,1,1,1,1,1\n");
    assert_eq!(
        message,
        "a.bdf:1: coordinate system 8 is not defined; expected an entry CORD2R, CORD2C or CORD2S of that number"
    );
}

const NODES: &str = "GRID,1,,0.,0.,0.\nGRID,2,,1.,0.,0.\nGRID,3,,0.,1.,0.\nGRID,4,,0.,0.,1.\n";

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let deck = |line: &str| message(&format!("{NODES}{line}\nGRID,9,,5.,5.,5.\n"));
    assert_eq!(
        deck("GRID,5,,1.0,x,0."),
        "a.bdf:5: not a number: `x`; expected coordinate 2 of GRID"
    );
    assert_eq!(
        deck("GRID,-5,,1.0,0.,0."),
        "a.bdf:5: not a whole number: `-5`; expected the number of a GRID"
    );
    // A number that is one column too far to the right loses its end to the next field.
    assert!(
        deck("GRID           5              0.      0.    2.000-2")
            .contains("not a whole number: `0-2`")
    );
    assert!(deck("GRID,5,,nan,0.,0.").contains("not a number: `nan`"));
    assert!(
        deck("CTETRA,1,1,1,2,3")
            .starts_with("a.bdf:5: CTETRA 1 has 3 nodes; expected 4 corner nodes")
    );
    assert!(deck("CTETRA,1,1,1,2,3,4,9,9\n+,9,9").contains("has 8 nodes"));
    assert!(deck("CTETRA,1,1,1,2,3,77").contains("names node 77, which does not exist"));
    assert!(deck("=,*(1),=,*(1.)").starts_with("a.bdf:5: replicated entries"));
    assert!(deck("BEGIN SUPER=1").starts_with("a.bdf:5: BEGIN is not supported"));
    assert!(deck("INCLUDE 'none.bdf'").starts_with("a.bdf:5: included file `none.bdf` not found"));
    assert!(deck("INCLUDE 'none").contains("no closing '"));
    assert_eq!(
        deck("CBAR,1,1,1,2"),
        "a.bdf: the mesh has no solid element (5 nodes, 1 other element); expected at least one tetrahedron, hexahedron, \
         wedge or pyramid; mesh the volume too; in Gmsh: `Physical Volume`, then `Mesh 3`"
    );
}

#[test]
fn included_files_are_read_beside_the_one_that_includes_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("parts")).unwrap();
    let main = "SOL 101\r\nCEND\r\nbegin   bulk\r\nINCLUDE 'parts\\\r\n  nodes.bdf'\r\nCTETRA,1,1,1,2,3,4\r\n";
    std::fs::write(at("main.bdf"), main).unwrap();
    std::fs::write(
        at("parts/nodes.bdf"),
        format!("{NODES}INCLUDE \"more.bdf\""),
    )
    .unwrap();
    std::fs::write(at("parts/more.bdf"), "GRID,5,,5.,5.,5.\nFORCE,1,1\n").unwrap();
    let found = read(&at("main.bdf")).unwrap();
    assert_eq!(found.mesh.n_nodes(), 4);
    assert_eq!(
        found.warnings,
        [
            "only the mesh of the deck is read; ignored: 1 FORCE",
            "1 node in no solid element, ignored unless a constraint names it: 5"
        ]
    );
    std::fs::write(at("parts/more.bdf"), "INCLUDE 'nodes.bdf'").unwrap();
    let message = read(&at("main.bdf")).unwrap_err().to_string();
    assert!(
        message.contains("more.bdf:1: `nodes.bdf` includes itself"),
        "{message}"
    );
}
