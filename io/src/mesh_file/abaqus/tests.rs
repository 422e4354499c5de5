//! Decks of one or two elements: what is read from them, and what is wrong with them.

use crate::mesh_file::{MeshFile, read};
use fem_mesh::{CellFace, CellType, Result};
use std::path::Path;

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Reads the first of some files, each given with its name.
fn read_all(files: &[(&str, &str)]) -> Result<MeshFile> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        write(directory.path(), name, text);
    }
    read(&directory.path().join(files[0].0))
}

fn read_deck(text: &str) -> MeshFile {
    read_all(&[("a.inp", text)]).unwrap_or_else(|error| panic!("{error}"))
}

/// The message with file names as given.
fn message_of(files: &[(&str, &str)]) -> String {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        write(directory.path(), name, text);
    }
    let error = read(&directory.path().join(files[0].0)).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error
        .to_string()
        .replace(&format!("{}/", directory.path().display()), "")
}

fn message(text: &str) -> String {
    message_of(&[("a.inp", text)])
}

/// A tetrahedron 7 on nodes 1 to 4.
const NODES: &str = "*NODE, NSET=Nall\n1,0,0,0\n2,1.,0,0\n3,0,1D0,0\n4,0,0,1\n";
const TET: &str = "*ELEMENT, TYPE=C3D4, ELSET=Eall\n7,1,2,3,4\n";

fn deck(rest: &str) -> String {
    format!("{NODES}{TET}{rest}")
}

#[test]
fn sets_and_surfaces_of_a_deck() {
    let file = read_deck(&deck(
        "** a comment\n*NSET, NSET=Base\n1, 2,\n3\n*nset,nset=BASE\n 4\n*Nset, nset=Odd, generate\n1, 1000000000000, 2\n\
         *Surface, name=Skin\nEALL, S1\n7, s3\n*SURFACE, TYPE=NODE, NAME=Tip\nbase\n*ELSET,ELSET=\"two words\"\n7\n",
    ));
    let sets = &file.mesh.sets;
    assert_eq!(
        (file.mesh.node_ids.as_slice(), file.mesh.cell_ids.as_slice()),
        (&[1, 2, 3, 4][..], &[7][..])
    );
    assert_eq!(
        sets.nodes.keys().collect::<Vec<_>>(),
        ["Base", "Nall", "Odd", "Tip"]
    );
    assert_eq!(
        (&sets.nodes["Base"], &sets.nodes["Odd"]),
        (&vec![0, 1, 2, 3], &vec![0, 2])
    );
    assert_eq!(
        sets.cells.keys().collect::<Vec<_>>(),
        ["Eall", "all", "two words"]
    );
    assert_eq!(
        sets.faces["Skin"],
        [CellFace { cell: 0, face: 0 }, CellFace { cell: 0, face: 2 }]
    );
    assert_eq!(sets.nodes["Tip"].len(), 4);
    assert!(file.warnings.is_empty(), "{:?}", file.warnings);
}

#[test]
fn a_deck_that_defines_all_keeps_its_own() {
    let sets = read_deck(&deck(
        "*ELEMENT,TYPE=C3D4\n8,4,3,2,9\n*NODE\n9,1,1,1\n*ELSET,ELSET=ALL\n8\n",
    ))
    .mesh
    .sets;
    assert_eq!(sets.cells["ALL"], [1]);
    assert!(!sets.cells.contains_key("all"));
}

#[test]
fn element_lists_run_over_several_lines() {
    let nodes: String = (1..=20).map(|k| format!("{k}, {k}., 0, 0\n")).collect();
    let text = format!(
        "*NODE\n{nodes}*ELEM, TYPE=C3D20R\n5, 1, 2, 3, 4, 5, 6, 7,\n8,9,10,11,12,13,14,15\n\n** between\n16,17,18,19,20\n"
    );
    let mesh = read_deck(&text).mesh;
    assert_eq!(mesh.cells.types, [CellType::Hex20]);
    assert_eq!(mesh.cells.nodes, (0..20).collect::<Vec<_>>());
    let cut = text.replace(",19,20", "");
    assert_eq!(
        message(&cut),
        "a.inp:23: element 5 has 18 nodes; expected 20 nodes for an element of type C3D20R; the file may be cut off, \
         or a line be missing"
    );
}

#[test]
fn elements_that_are_no_solids_are_counted() {
    let file = read_deck(&deck(
        "*ELEMENT, TYPE=S3, ELSET=Skin\n20, 1,2,3\n21,1,2,\n4\n*ELEMENT,TYPE=T3D2,ELSET=Rod\n22,1,\n2\n*ELEMENT,TYPE=MASS,ELSET=Eall\n30,1\n*ELSET,ELSET=Mixed\n\
         7,20,99\n*STEP\n*STATIC\n1.,1.\n*NODE PRINT,NSET=Nall\nU\n*END STEP\n",
    ));
    assert_eq!(file.mesh.sets.cells["Mixed"], [0]);
    assert_eq!(
        file.mesh.sets.faces["Skin"],
        [CellFace { cell: 0, face: 0 }]
    );
    assert_eq!(
        file.warnings,
        [
            "elements that are no solids add no stiffness (sets of surface elements stand for faces): 1 MASS, 2 S3, 1 T3D2",
            "only the mesh of the deck is read; ignored: *STEP, *STATIC, *NODE PRINT, *END STEP",
            "element set `Mixed` names 1 element that does not exist: 99",
        ]
    );
    assert!(!file.mesh.sets.cells.contains_key("Rod"));
    let plane = read_deck(&deck("*ELEMENT, TYPE=CPS3, ELSET=Skin\n20, 1,2,3\n"));
    assert_eq!(
        plane.mesh.sets.faces["Skin"],
        [CellFace { cell: 0, face: 0 }]
    );
    assert_eq!(plane.warnings, [] as [&str; 0]);
    assert!(
        message(&format!("{NODES}*ELEMENT,TYPE=S3\n1,1,2,3\n"))
            .starts_with("a.inp: the mesh has no solid element (4 nodes, 1 other element)")
    );
    assert_eq!(
        message(&deck(
            "*ELEMENT, TYPE=C3D27\n8,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,\n16,17,18,19,20,21,22,23,24,25,26,27\n"
        )),
        "a.inp:9: element type C3D27 is not supported yet (1 element of it); expected solids of type tet4, tet10, \
         pyramid5, pyramid13, wedge6, wedge15, hex8, hex20, hex27; mesh the part with one of these"
    );
}

#[test]
fn included_files_are_found_beside_the_including_one() {
    let main =
        "*INCLUDE, INPUT=sub/nodes.inp\n*ELEMENT, TYPE=C3D4\n*INCLUDE, INPUT=\"sub/data.txt\"\n";
    let nodes = "*NODE\n*INCLUDE,INPUT=more.inp\n4,0,0,1\n";
    let more = "1,0,0,0\r\n2,1,0,0\r\n3,0,1,0\r\n\x1a";
    let files = [
        ("a.inp", main),
        ("sub/nodes.inp", nodes),
        ("sub/more.inp", more),
        ("sub/data.txt", "7,1,2,3,4"),
    ];
    let mesh = read_all(&files).unwrap().mesh;
    assert_eq!(
        (mesh.node_ids.len(), mesh.cell_ids.as_slice()),
        (4, &[7][..])
    );

    let missing = message_of(&files[..2]);
    assert!(
        missing
            .starts_with("sub/nodes.inp:2: included file `more.inp` not found; expected the file"),
        "{missing}"
    );
    let loops = [
        ("a.inp", "*INCLUDE,INPUT=b.inp\n"),
        ("b.inp", "*INCLUDE,INPUT=a.inp\n"),
    ];
    assert_eq!(message_of(&loops), "b.inp:1: `a.inp` includes itself");
    let bad = [
        ("a.inp", main),
        ("sub/nodes.inp", nodes),
        ("sub/more.inp", "1,0,x,0\n"),
        ("sub/data.txt", ""),
    ];
    assert_eq!(
        message_of(&bad),
        "sub/more.inp:1: not a number: `x`; expected coordinate y of node 1"
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let with = |from: &str, to: &str| message(&deck("").replacen(from, to, 1));
    assert_eq!(
        with("2,1.,0,0", "2,inf,0,0"),
        "a.inp:3: not a number: `inf`; expected coordinate x of node 2"
    );
    assert_eq!(
        with("2,1.,0,0", "2 1. 0 0"),
        "a.inp:3: not a whole number: `2 1. 0 0`; expected the number of a node"
    );
    assert_eq!(
        with("7,1,2,3,4", "7,1,2,3,5"),
        "a.inp:7: element 7 names node 5, which does not exist"
    );
    assert_eq!(
        with("TYPE=C3D4", "ELSET=a"),
        "a.inp:6: *ELEMENT without TYPE=; expected TYPE=..."
    );
    assert_eq!(
        message(&deck("*NODE\n2,5,0,0\n")),
        "a.inp:9: node 2 is given twice, with different coordinates (first on line 3); number every node once"
    );
    assert_eq!(
        message(&deck("*ELEMENT,TYPE=C3D4\n8,4,3,2,1\n"))
            .split(';')
            .next()
            .unwrap(),
        "a.inp:9: elements 7 and 8 have the same nodes"
    );
    assert_eq!(
        message(&deck("*ELEMENT,TYPE=S3\n7,1,2,3\n")),
        "a.inp:7: element number 7 is given twice, to a solid and to another element; number every element once"
    );
    assert_eq!(
        message(&deck("*NSET,NSET=a\nnone\n")),
        "a.inp:9: node set `none` does not exist; expected a set defined before this line"
    );
    assert_eq!(
        message(&deck("*SURFACE,NAME=a\nEall,S5\n")),
        "a.inp:9: surface `a` names face S5 of element 7, a tet4; expected S1 to S4"
    );
    assert_eq!(
        message(&deck("*SURFACE,NAME=a\nEall\n")),
        "a.inp:9: surface `a`: `` is no face of a solid; expected an element or element set and a face, S1 to S6"
    );
    assert_eq!(
        message(&deck("*NSET,NSET=a,GENERATE\n5,1\n")),
        "a.inp:9: not a range: `5,1`; expected first, last, step with last not below first and step from 1"
    );
    assert!(
        message(&deck("*NGEN\n1,2,1\n")).starts_with("a.inp:8: keyword *NGEN is not supported")
    );
}

#[test]
fn a_node_given_again_at_the_same_place_counts_once() {
    let file = read_deck(&deck("*NODE\n2,1,0,0\n"));
    assert_eq!(file.mesh.n_nodes(), 4);
    assert_eq!(
        file.warnings,
        ["1 node given more than once with the same coordinates, taken once: 2"]
    );
}

#[test]
fn one_part_with_one_instance_is_flat() {
    let part = "*Part, name=P\n*Node\n1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n*Element, type=C3D4\n1,1,2,3,4\n\
                *Nset, nset=Set-1\n1\n*End Part\n";
    let assembly = "*Assembly, name=A\n*Instance, name=P-1, part=P\n0., 0., 0.\n*End Instance\n\
                    *Nset, nset=set-1, instance=P-1\n2\n*Elset, elset=E, instance=p-1\n1\n*Nset, nset=Both\n\
                    P-1.3, set-1\n*End Assembly\n";
    let sets = read_deck(&format!("{part}{assembly}")).mesh.sets;
    assert_eq!(
        sets.nodes.keys().collect::<Vec<_>>(),
        ["Both", "P.Set-1", "set-1"]
    );
    assert_eq!(
        (
            &sets.nodes["set-1"],
            &sets.nodes["P.Set-1"],
            &sets.nodes["Both"]
        ),
        (&vec![1], &vec![0], &vec![1, 2])
    );
    let moved = assembly.replace("0., 0., 0.", "0., 0., 1.");
    assert_eq!(
        message(&format!("{part}{moved}")),
        "a.inp:14: instance `P-1` is moved or rotated, which is not supported; write a flat deck, without parts and \
         instances"
    );
    assert_eq!(
        message(&format!("{part}*Part, name=Q\n*End Part\n")),
        "a.inp:12: more than one *PART: `P` and `Q`; write a flat deck, without parts and instances"
    );
}
