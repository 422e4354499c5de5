//! MED files: node orders, groups of several families, and what is wrong with a file.

use crate::mesh_file::fixtures::curved;
use crate::mesh_file::fixtures_binary::med_file;
use crate::mesh_file::read;
use fem_mesh::{CellFace, CellType};

#[test]
fn curved_cells_keep_their_nodes() {
    let folder = tempfile::tempdir().unwrap();
    for cell_type in CellType::SOLIDS {
        let expected = curved(cell_type, false);
        let path = folder.path().join(format!("{cell_type}.med"));
        med_file(&expected, &path);
        let found = read(&path).unwrap();
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
        assert_eq!(mesh.sets.faces["skin"], [CellFace { cell: 0, face: 1 }]);
        let sets = &mesh.sets;
        assert_eq!(
            (&sets.cells["body"], &sets.cells["two words"]),
            (&vec![0], &vec![0])
        );
        assert_eq!(sets.nodes["corner"], [0]);
        assert_eq!(
            found.warnings,
            ["the file holds 2 meshes: `part`, the largest, is read, not `empty`"]
        );
    }
}

#[test]
fn what_is_no_sound_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.med");
    med_file(&curved(CellType::Tet4, false), &path);
    let bytes = std::fs::read(&path).unwrap();
    let message = |bytes: &[u8]| {
        let path = folder.path().join("b.med");
        std::fs::write(&path, bytes).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    let cut = message(&bytes[..bytes.len() / 2]);
    assert!(cut.contains("b.med: not a sound HDF5 file"), "{cut}");
    let renamed = |from: &[u8], to: &[u8]| {
        let mut changed = bytes.clone();
        for at in 0..bytes.len() - from.len() {
            if bytes[at..].starts_with(from) {
                changed[at..at + from.len()].copy_from_slice(to);
            }
        }
        message(&changed)
    };
    assert!(renamed(b"ENS_MAA\0", b"ENS_MAB\0").contains("neither a MED mesh nor an Exodus model"));
    assert!(renamed(b"COO\0", b"COP\0").contains("dataset ENS_MAA/part/"));
}
