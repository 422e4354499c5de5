//! What is written is read back as the same mesh.

use super::write;
use crate::mesh_file::fixtures::curved;
use crate::mesh_file::read;
use fem_mesh::{CellFace, CellType, Mesh};

/// A curved cell with sets of every kind, some of which overlap.
fn sample(cell_type: CellType) -> Mesh {
    let mut mesh = curved(cell_type, false);
    let face = |face| CellFace { cell: 0, face };
    let sets = &mut mesh.sets;
    sets.cells.insert("all".into(), vec![0]);
    sets.cells.insert("body".into(), vec![0]);
    sets.cells.insert("two words".into(), vec![0]);
    sets.faces.insert("a & <b>".into(), vec![face(0), face(2)]);
    sets.faces.insert("second".into(), vec![face(1), face(2)]);
    sets.nodes.insert("corner".into(), vec![0]);
    sets.nodes
        .insert("most".into(), (0..mesh.coords.len() as u32 - 1).collect());
    mesh
}

#[test]
fn every_type_comes_back_with_its_sets() {
    let folder = tempfile::tempdir().unwrap();
    for cell_type in CellType::SOLIDS {
        let expected = sample(cell_type);
        for format in ["vtu", "inp", "msh"] {
            let what = format!("{cell_type}.{format}");
            let path = folder.path().join(&what);
            if let Err(error) = write(&path, &expected) {
                let text = error.to_string();
                let in_no_deck = format == "inp" && text.contains(cell_type.name());
                assert!(
                    in_no_deck && text.contains("which CalculiX lacks"),
                    "{text}"
                );
                continue;
            }
            let found = read(&path).unwrap();
            assert_eq!(found.warnings, [""; 0], "{what}");
            let mut mesh = found.mesh;
            if format == "inp" {
                for (x, y) in mesh
                    .coords
                    .iter_mut()
                    .flatten()
                    .zip(expected.coords.iter().flatten())
                {
                    assert!((*x - y).abs() <= 1e-12 * y.abs(), "{what}");
                    *x = *y;
                }
            }
            assert_eq!(mesh, expected, "{what}");
        }
    }
}

/// Number, type, nodes by index and membership of `odd` of each element, by number: `.msh` groups elements by type.
fn by_number(mesh: &Mesh) -> Vec<(u64, CellType, Vec<u32>, bool)> {
    let odd = &mesh.sets.cells["odd"];
    let mut elements: Vec<_> = (0..mesh.n_cells())
        .map(|k| {
            let nodes = mesh.cells.nodes_of(k).to_vec();
            let is_odd = odd.contains(&(k as u32));
            (mesh.cell_ids[k], mesh.cells.types[k], nodes, is_odd)
        })
        .collect();
    elements.sort_unstable();
    elements
}

#[test]
fn meshes_of_many_elements_and_wild_numbers_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut mesh = Mesh::default();
    for k in 0..40_u32 {
        let x = f64::from(k);
        mesh.coords
            .extend([[x, 0.0, 0.0], [x, 1.0, 0.1 * x], [x, 0.0, 1.0]]);
    }
    mesh.node_ids = (0..120).map(|k| 3 * k).collect();
    for k in 0..39_u32 {
        let n = 3 * k;
        if k % 2 == 0 {
            mesh.cells
                .push(CellType::Wedge6, &[n, n + 1, n + 2, n + 3, n + 4, n + 5]);
        } else {
            mesh.cells.push(CellType::Tet4, &[n, n + 1, n + 2, n + 3]);
            mesh.cells
                .push(CellType::Tet4, &[n + 1, n + 4, n + 2, n + 3]);
            mesh.cells
                .push(CellType::Tet4, &[n + 2, n + 4, n + 5, n + 3]);
        }
    }
    mesh.cell_ids = (0..mesh.n_cells() as u64).map(|k| 1_000_000 - k).collect();
    mesh.sets
        .cells
        .insert("all".into(), (0..mesh.n_cells() as u32).collect());
    mesh.sets.cells.insert(
        "odd".into(),
        (0..mesh.n_cells() as u32).filter(|k| k % 2 == 1).collect(),
    );
    for format in ["vtu", "inp", "msh"] {
        let path = folder.path().join(format!("m.{format}"));
        write(&path, &mesh).unwrap();
        let found = read(&path).unwrap();
        assert_eq!(found.warnings, [""; 0], "{format}");
        assert_eq!(by_number(&found.mesh), by_number(&mesh), "{format}");
        // Number 0 is no number for Abaqus and Gmsh: nodes are numbered anew.
        let first = if format == "vtu" { 0 } else { 1 };
        assert_eq!(found.mesh.node_ids[0], first, "{format}");
    }
}

#[test]
fn unknown_formats_and_bad_places_are_refused() {
    let mesh = sample(CellType::Tet4);
    let message = |path: &str| write(path.as_ref(), &mesh).unwrap_err().to_string();
    assert_eq!(
        message("a.stl"),
        "a.stl: meshes cannot be written in the format of that extension; expected .vtu, .inp (Abaqus, CalculiX) or \
         .msh (Gmsh 4.1)"
    );
    assert!(message("no/such/folder/a.vtu").starts_with("no/such/folder/a.vtu: "));
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken.vtu");
    std::fs::create_dir(&path).unwrap();
    let error = write(&path, &sample(CellType::Tet4)).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("no file"), "{error}");
    assert!(path.is_dir());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
