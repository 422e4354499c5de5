//! Exodus models in classic netCDF and in netCDF-4, and what is wrong with one.

use crate::mesh_file::fixtures::curved;
use crate::mesh_file::fixtures_binary::{exodus_classic, exodus_hdf};
use crate::mesh_file::{MeshFile, read};
use fem_mesh::{CellFace, CellType, Mesh, Result};

fn check(found: &MeshFile, expected: &Mesh, what: &str) {
    let mesh = &found.mesh;
    assert_eq!(
        (&mesh.coords, &mesh.cells),
        (&expected.coords, &expected.cells),
        "{what}"
    );
    assert_eq!(
        (&mesh.node_ids, &mesh.cell_ids),
        (&expected.node_ids, &expected.cell_ids),
        "{what}"
    );
    assert_eq!(
        mesh.sets.faces["skin"],
        [CellFace { cell: 0, face: 1 }],
        "{what}"
    );
    assert_eq!(
        (&mesh.sets.nodes["nodeset_5"], &mesh.sets.cells["body"]),
        (&vec![0], &vec![0]),
        "{what}"
    );
    assert_eq!(found.warnings, [""; 0], "{what}");
}

fn classic(bytes: &[u8]) -> Result<MeshFile> {
    super::read_classic("a.exo".as_ref(), bytes)?.finish()
}

#[test]
fn curved_cells_keep_their_nodes() {
    let folder = tempfile::tempdir().unwrap();
    for cell_type in CellType::SOLIDS {
        let expected = curved(cell_type, false);
        for version in [1, 2, 5] {
            let found = classic(&exodus_classic(&expected, version)).unwrap();
            check(&found, &expected, &format!("{cell_type} CDF-{version}"));
        }
        let path = folder.path().join(format!("{cell_type}.e"));
        exodus_hdf(&expected, &path);
        check(
            &read(&path).unwrap(),
            &expected,
            &format!("{cell_type} netCDF-4"),
        );
    }
}

/// The file with the four bytes of `from`, which it holds once, replaced.
fn replaced(bytes: &[u8], from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let at = bytes.windows(4).rposition(|w| w == from).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + 4].copy_from_slice(&to);
    bytes
}

#[test]
fn what_is_wrong_is_told() {
    let bytes = exodus_classic(&curved(CellType::Hex8, false), 1);
    let message = |bytes: &[u8]| classic(bytes).unwrap_err().to_string();
    let n = bytes.len();
    assert!(message(&bytes[..n - 1]).contains("the file ends inside variable `side_ss1`"));
    assert!(message(&bytes[..100]).contains("the file ends inside its head, at byte"));
    assert!(message(b"CDF\x09").contains("not a netCDF file of format"));
    let side = |to: i32| message(&[&bytes[..n - 4], &to.to_be_bytes()].concat());
    assert!(
        side(7).contains("set `skin` has side 7 of element 7, a hex8; expected a side from 1 to 6")
    );
    assert!(side(-1).contains("has side -1"));
    assert!(side(i32::MIN).contains("has side"));
    let wild = replaced(&bytes, 8_i32.to_be_bytes(), 90_i32.to_be_bytes());
    assert!(
        message(&wild).contains("names node 90 (from 1); expected a node from 1 to 8"),
        "{}",
        message(&wild)
    );
    let text = replaced(&bytes, *b"HEX\0", *b"CUT\0");
    assert!(
        message(&text).contains("no solid element"),
        "{}",
        message(&text)
    );
    let text = replaced(&bytes, *b"HEX\0", *b"TET\0");
    assert!(
        message(&text).contains("element type TET of 8 nodes is not supported yet"),
        "{}",
        message(&text)
    );
    let hdf = crate::mesh_file::read(env!("CARGO_MANIFEST_DIR").as_ref()).unwrap_err();
    assert!(hdf.to_string().contains("a directory"));
}
