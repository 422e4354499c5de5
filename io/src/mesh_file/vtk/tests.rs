//! VTK files in every encoding, and what is wrong with one.

use crate::mesh_file::MeshFile;
use crate::mesh_file::draft::Draft;
use crate::mesh_file::fixtures::{Vtu, curved, vtk_ascii, vtk_binary, vtu};
use fem_mesh::{CellFace, CellType, Mesh, Result};

fn legacy(bytes: &[u8]) -> Result<MeshFile> {
    super::read_legacy("a.vtk".as_ref(), bytes)?.finish()
}

fn xml(bytes: &[u8]) -> Result<MeshFile> {
    super::read_xml("a.vtu".as_ref(), bytes)?.finish()
}

fn check(found: &MeshFile, expected: &Mesh, what: &str) {
    let mesh = &found.mesh;
    assert_eq!(mesh.coords, expected.coords, "{what}");
    assert_eq!(mesh.cells, expected.cells, "{what}");
    assert_eq!(
        (&mesh.node_ids, &mesh.cell_ids),
        (&expected.node_ids, &expected.cell_ids),
        "{what}"
    );
    let face = [CellFace { cell: 0, face: 1 }];
    assert_eq!(
        (&mesh.sets.faces["skin"][..], &mesh.sets.faces["mat_4"][..]),
        (&face[..], &face[..]),
        "{what}"
    );
    assert_eq!(
        (&mesh.sets.nodes["corner"], &mesh.sets.cells["mat_3"]),
        (&vec![0], &vec![0]),
        "{what}"
    );
    assert_eq!(found.warnings, [""; 0], "{what}");
}

#[test]
fn curved_cells_keep_their_nodes_in_every_encoding() {
    for cell_type in CellType::SOLIDS {
        let expected = curved(cell_type, false);
        for modern in [false, true] {
            let text = vtk_ascii(&expected, modern);
            check(
                &legacy(text.as_bytes()).unwrap(),
                &expected,
                &format!("ASCII {modern}"),
            );
        }
        check(
            &legacy(&vtk_binary(&expected)).unwrap(),
            &expected,
            "binary",
        );
        for form in Vtu::ALL {
            for big_endian in [false, true] {
                let bytes = vtu(&expected, form, big_endian);
                check(
                    &xml(&bytes).unwrap(),
                    &expected,
                    &format!("{form:?} {big_endian}"),
                );
            }
        }
    }
}

#[test]
fn mirrored_cells_are_turned_with_a_warning() {
    for cell_type in CellType::SOLIDS {
        let found = legacy(vtk_ascii(&curved(cell_type, true), false).as_bytes()).unwrap();
        let warning = "1 of 1 elements is given inside out (mirrored) and turned: 7";
        let is_news = cell_type.n_corners() != 6;
        assert_eq!(found.warnings, vec![warning; usize::from(is_news)]);
        let faces = &found.mesh.sets.faces["skin"];
        let (_, nodes) = found.mesh.cells.nodes_of_face(faces[0]);
        let mut nodes: Vec<u8> = nodes.map(|k| k as u8).collect();
        let mut expected = cell_type.faces()[1].nodes.to_vec();
        nodes.sort_unstable();
        expected.sort_unstable();
        assert_eq!(nodes, expected, "{cell_type}");
    }
}

const HEAD: &str = "# vtk DataFile Version 2.0\nt\nASCII\nDATASET UNSTRUCTURED_GRID\n";
const TETS: &str = "POINTS 5 float\n0 0 0 1 0 0 0 1 0 0 0 1 1 1 1\nCELLS 2 10\n4 0 1 2 3\n4 1 2 3 4\nCELL_TYPES 2\n10 10\n";

#[test]
fn voxels_pieces_and_numbers_by_position() {
    let corners: String = (0..8)
        .map(|k| format!("{} {} {}\n", k % 2, k / 2 % 2, k / 4))
        .collect();
    let text =
        format!("{HEAD}POINTS 8 int\n{corners}CELLS 1 9\n8 0 1 2 3 4 5 6 7\nCELL_TYPES 1\n11\n");
    let mesh = legacy(text.as_bytes()).unwrap().mesh;
    assert_eq!(mesh.cells.nodes_of(0), [0, 1, 3, 2, 4, 5, 7, 6]);
    assert_eq!((mesh.node_ids[0], mesh.cell_ids[0]), (0, 0));

    let piece = "<Piece NumberOfPoints='4' NumberOfCells='1'><Points><DataArray type='Float32' NumberOfComponents='3'>\
        0 0 0 1 0 0 0 1 0 0 0 1</DataArray></Points><Cells><DataArray type='Int32' Name='connectivity'>0 1 2 3\
        </DataArray><DataArray type='Int32' Name='offsets'>4</DataArray><DataArray type='UInt8' Name='types'>10\
        </DataArray></Cells></Piece>";
    let moved = piece.replace("0 0 0 1 0 0", "5 0 0 6 0 0");
    let ghost = piece.replace(
        "<Cells>",
        "<CellData><DataArray type='UInt8' Name='vtkGhostType'>1</DataArray></CellData><Cells>",
    );
    let whole = |pieces: &str| {
        format!(
            "<VTKFile type='UnstructuredGrid'><UnstructuredGrid>{pieces}</UnstructuredGrid></VTKFile>"
        )
    };
    let found = xml(whole(&format!(
        "{piece}<Piece NumberOfPoints='0' NumberOfCells='0'/>{moved}"
    ))
    .as_bytes())
    .unwrap();
    assert_eq!(found.mesh.cells.nodes_of(1), [4, 5, 6, 7]);
    let unghosted = piece.replace(
        "<Cells>",
        "<CellData><DataArray type='UInt8' Name='vtkGhostType'>0</DataArray></CellData><Cells>",
    );
    let found = xml(whole(&format!("{unghosted}{ghost}")).as_bytes()).unwrap();
    assert_eq!((found.mesh.n_nodes(), found.mesh.n_cells()), (4, 1));
    assert_eq!(
        found.warnings,
        ["4 nodes in no solid element, ignored unless a constraint names them: 4, 5, 6, 7"]
    );
}

#[test]
fn what_is_wrong_with_a_legacy_file_is_told_with_its_line() {
    let message = |text: &str| legacy(text.as_bytes()).unwrap_err().to_string();
    let file = |from: &str, to: &str| message(&format!("{HEAD}{TETS}").replace(from, to));
    assert_eq!(
        file("UNSTRUCTURED_GRID", "POLYDATA"),
        "a.vtk:4: not an unstructured grid: `DATASET POLYDATA`; expected `DATASET UNSTRUCTURED_GRID`"
    );
    assert_eq!(
        file("1 0 0", "1 x 0"),
        "a.vtk:6: not a number: `x`; expected 15 numbers of coordinates"
    );
    assert!(
        file("1 0 0", "1 nan 0")
            .starts_with("a.vtk: point 1 (from 0) has a coordinate that is not")
    );
    assert!(file("4 1 2 3 4", "4 1 2 3 -4").contains("cell 1 (from 0) names point -4"));
    assert!(
        file("4 1 2 3 4", "4 1 2 3 5").contains("names point 5; expected a point from 0, of 5")
    );
    assert!(file("4 1 2 3 4", "9 1 2 3 4").contains("cell 1 (from 0) reaches beyond the list"));
    assert!(file("CELLS 2 10", "CELLS 1 10").contains("5 numbers after the last cell"));
    assert!(file("POINTS 5", "POINTS 99999999999999999").contains("not a number: `CELLS`"));
    assert!(
        file("POINTS 5", "POINTS 18446744073709551615")
            .contains("the file ends inside coordinates")
    );
    assert!(
        file("CELL_TYPES 2\n10 10", "CELL_TYPES 2\n10 13")
            .contains("wedge of 4 points (VTK type 13)")
    );
    assert!(file("10 10", "10").starts_with("a.vtk:12: the file ends inside cell types"));
    assert!(file("float", "quad").contains("number type `quad` is not supported"));
    assert!(
        message(&HEAD.replace("ASCII", "TEXT")).starts_with("a.vtk:3: `TEXT` on the third line")
    );
    assert!(message(HEAD).contains("the file has no section POINTS"));
}

#[test]
fn what_is_wrong_with_an_xml_file_is_told() {
    let mesh = curved(CellType::Tet4, false);
    let message = |bytes: &[u8]| xml(bytes).unwrap_err().to_string();
    let text = String::from_utf8(vtu(&mesh, Vtu::Base64, false)).unwrap();
    let file = |from: &str, to: &str| message(text.replacen(from, to, 1).as_bytes());
    assert!(
        file("UnstructuredGrid", "PolyData")
            .contains("not an unstructured grid: VTKFile of type `PolyData`")
    );
    assert!(
        file("NumberOfPoints=\"4\"", "NumberOfPoints=\"5\"")
            .contains("12 numbers; expected 15 numbers")
    );
    assert!(
        file("NumberOfCells=\"2\"", "NumberOfCells=\"-2\"")
            .contains("NumberOfCells=\"-2\"; expected a whole")
    );
    assert!(file("format=\"binary\"", "format=\"hex\"").contains("has format `hex`"));
    assert!(
        file(
            "header_type",
            "compressor=\"vtkLZ4DataCompressor\" header_type"
        )
        .contains("compressor `vtkLZ4DataCompressor` is not supported")
    );
    assert!(file("</Points>", "</Pionts>").contains("not well-formed XML"));
    let cut = &text[..text.len() / 2];
    assert!(
        message(cut.as_bytes()).starts_with("a.vtu:"),
        "{}",
        message(cut.as_bytes())
    );
    for form in [
        Vtu::AppendedRaw,
        Vtu::AppendedRawCompressed,
        Vtu::AppendedBase64,
    ] {
        let bytes = vtu(&mesh, form, false);
        let cut = message(&bytes[..bytes.len() - 80]);
        assert!(
            cut.starts_with("a.vtu:") && cut.contains("array `"),
            "{form:?}: {cut}"
        );
    }
    assert!(message(b"<a></a>").starts_with("a.vtu:1: no element VTKFile"));
}

#[test]
fn a_draft_is_made_without_sets_of_many_values() {
    let values: String = (0..300).map(|k| format!("{k} ")).collect();
    let points: String = (0..300).map(|k| format!("{k} 0 0\n")).collect();
    let text = format!(
        "{HEAD}POINTS 300 float\n{points}CELLS 1 5\n4 0 1 2 3\nCELL_TYPES 1\n10\nPOINT_DATA 300\nSCALARS a int\n\
         LOOKUP_TABLE default\n{values}\n"
    );
    let draft: Draft = super::read_legacy("a.vtk".as_ref(), text.as_bytes()).unwrap();
    assert!(draft.node_sets.is_empty());
}
