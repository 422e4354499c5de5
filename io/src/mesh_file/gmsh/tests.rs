//! A bar of two elements in every dialect, and what is wrong with a file.

use super::fixtures::{binary_head, binary_v2, binary_v4, text_v2, text_v4, words};
use crate::mesh_file::MeshFile;
use fem_mesh::{CellFace, CellType, FreeNode, Result};
use std::path::Path;

fn read_as(bytes: &[u8]) -> Result<MeshFile> {
    super::read(Path::new("a.msh"), bytes)?.finish()
}

fn message(text: impl AsRef<[u8]>) -> String {
    let error = read_as(text.as_ref()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

#[test]
fn every_dialect_gives_the_same_mesh() {
    let first = read_as(text_v2().as_bytes()).unwrap();
    let mesh = &first.mesh;
    assert_eq!(mesh.node_ids[..2], [10, 20]);
    assert_eq!(
        (mesh.coords[11], mesh.cell_ids.as_slice()),
        ([2.0, 0.0, 1.0], &[40, 41][..])
    );
    assert_eq!(mesh.cells.nodes_of(1), [4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(mesh.sets.cells["left"], [0]);
    assert_eq!(mesh.sets.cells["all"], [0, 1]);
    assert_eq!(
        mesh.sets.faces["two words"],
        [CellFace { cell: 1, face: 1 }]
    );
    assert_eq!(mesh.sets.faces["9"], [CellFace { cell: 0, face: 1 }]);
    assert_eq!(mesh.sets.nodes["edge \"a\""], [0, 1]);
    assert_eq!(
        first.warnings,
        [
            "physical group `unused` (dimension 3) has no elements, ignored",
            "1 surface element of `9` between two solid elements: the face of the one that comes first in the file is \
             taken",
        ]
    );
    let windows = text_v4().replace('\n', " \t\r\n");
    for (k, bytes) in [
        binary_v2(false),
        binary_v2(true),
        text_v4().into_bytes(),
        windows.into_bytes(),
        binary_v4(false),
        binary_v4(true),
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(read_as(bytes).unwrap(), first, "dialect {k}");
    }
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    for whole in [
        text_v2().into_bytes(),
        text_v4().into_bytes(),
        binary_v2(false),
        binary_v4(true),
    ] {
        // The end mark of the last section is "$EndElements\n"; nothing is missing without its line end.
        let last = whole
            .windows(12)
            .rposition(|w| w == b"$EndElements")
            .unwrap()
            + 12;
        for length in 1..last {
            let error = read_as(&whole[..length]).expect_err("cut off");
            assert_eq!(error.exit_code(), 2, "{error}");
        }
    }
    let text = text_v2();
    let cut = |at: &str| message(&text[..text.find(at).unwrap()]);
    assert_eq!(
        cut("30 0 1 1"),
        "a.msh:15: the file ends inside section $Nodes; it may be cut off: write it again"
    );
    assert_eq!(
        cut("$Elements"),
        "a.msh: the file has no section $Elements; it may be cut off: write it again"
    );
    let binary = binary_v4(false);
    let at = binary.windows(9).position(|w| w == b"$EndNodes").unwrap();
    assert_eq!(
        message(&binary[..at - 9]),
        "a.msh: the file ends inside section $Nodes; it may be cut off: write it again"
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let text = text_v2();
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        message(text.replacen(from, to, 1))
    };
    assert_eq!(
        with("\n30 0 1 1\n", "\n30 0 nan 1\n"),
        "a.msh:15: not a number: `nan`; expected coordinate y"
    );
    assert_eq!(
        with("\n30 0 1 1\n", "\n30 0 1\n"),
        "a.msh:15: the line ends too early; expected coordinate z"
    );
    assert_eq!(
        with("\n30 0 1 1\n", "\n30 0 1 1 1\n"),
        "a.msh:15: `1` is one field too many; expected the end of the line after a node: number x y z"
    );
    assert_eq!(
        with("\n30 0 1 1\n", "\n20 0 1 1\n"),
        "a.msh:15: node 20 is given twice, with different coordinates (first on line 14); number every node once"
    );
    assert_eq!(
        with("100 110 120\n", "100 110 125\n"),
        "a.msh:32: element 41 names node 125, which does not exist"
    );
    assert_eq!(
        with("100 110 120\n", "100 110 50\n"),
        "a.msh:32: element 41 names node 50 twice; expected 8 different nodes for a hex8; replace collapsed elements \
         by wedges or tetrahedra"
    );
    assert_eq!(
        with("\n41 5", "\n40 5"),
        "a.msh:32: element number 40 is given twice (first on line 31); number every element once"
    );
    assert!(
        with(
            "\n42 3 2 9 1 50 60 70 80\n",
            "\n42 5 2 2 1 50 60 70 80 10 20 30 40\n"
        )
        .starts_with("a.msh:33: elements 40 and 42 have the same nodes; remove one")
    );
    assert_eq!(
        with(
            "\n42 3 2 9 1 50 60 70 80\n",
            "\n42 14 2 9 1 50 60 70 80 90 10 20 30 40 50 60 70 80 90\n"
        ),
        "a.msh:33: element type pyramid14 (Gmsh type 14) is not supported yet (1 element of it); expected solids of \
         type tet4, tet10, pyramid5, pyramid13, wedge6, wedge15, hex8, hex20, hex27; mesh the part with one of these"
    );
    assert_eq!(
        with("\n42 3 2 9", "\n42 77 2 9"),
        "a.msh:33: unknown Gmsh element type 77"
    );
    assert_eq!(
        with("$Nodes\n12\n", "$Nodes\n18446744073709551615\n"),
        "a.msh:25: section $Nodes ends too early, at `$EndNodes`; expected as many entries as the head of the section \
         announces"
    );
    assert_eq!(
        with("$Nodes\n12\n", "$Nodes\n11\n"),
        "a.msh:24: section $Nodes goes on after its last entry; expected `$EndNodes`, found `120 2 0 1`"
    );
    assert!(
        with("2.2 0 8", "4 0 8")
            .starts_with("a.msh:2: Gmsh format 4 is not supported; expected format 2.2")
    );
}

#[test]
fn counts_in_binary_files_are_not_believed() {
    for size in [u64::MAX, u64::MAX / 8, 1 << 40] {
        let mut out = binary_head("4.1", false);
        out.text("$Nodes\n")
            .sizes(&[1, size, 1, size])
            .ints(&[3, 1, 0])
            .sizes(&[size, 1, 2, 3]);
        assert!(message(&out.bytes).starts_with("a.msh: the file ends inside section $Nodes"));
    }
    let mut nan = binary_head("2.2", false);
    nan.text("$Nodes\n1\n")
        .ints(&[1])
        .floats(&[0.0, f64::NAN, 0.0])
        .text("\n$EndNodes\n");
    assert!(
        message(&nan.bytes).contains("not a number: `NaN` at byte"),
        "{}",
        message(&nan.bytes)
    );
    let mut mixed = binary_head("2.2", false);
    mixed.bytes[20] = 2;
    assert!(message(&mixed.bytes).starts_with("a.msh: the mark of the byte order is wrong"));
}

#[test]
fn second_order_elements_come_in_our_order() {
    let node = |id: usize, x: [f64; 3]| format!("{id} {}\n", words(&x));
    let corners = [
        [0.0, 0.0, 0.0],
        [2.0, 0.0, 0.0],
        [0.0, 2.0, 0.0],
        [0.0, 0.0, 2.0],
    ];
    let edges = [[0, 1], [1, 2], [0, 2], [0, 3], [2, 3], [1, 3]];
    let mut nodes: String = corners
        .iter()
        .enumerate()
        .map(|(k, &x)| node(k + 1, x))
        .collect();
    for (k, [a, b]) in edges.into_iter().enumerate() {
        let mid = std::array::from_fn(|axis| f64::midpoint(corners[a][axis], corners[b][axis]));
        nodes += &node(k + 5, mid);
    }
    let text = format!(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n10\n{nodes}$EndNodes\n$Elements\n2\n1 11 2 0 1 1 2 3 4 5 6 7 8 9 \
         10\n2 9 2 3 1 1 3 4 7 9 8\n$EndElements\n"
    );
    let mesh = read_as(text.as_bytes()).unwrap().mesh;
    assert_eq!(mesh.cells.types, [CellType::Tet10]);
    for (k, edge) in CellType::Tet10.edges().iter().enumerate() {
        let [a, b, mid] = [usize::from(edge[0]), usize::from(edge[1]), 4 + k];
        let [a, b, mid] = [a, b, mid].map(|k| mesh.coords[mesh.cells.nodes[k] as usize]);
        assert_eq!(
            mid,
            std::array::from_fn(|axis| f64::midpoint(a[axis], b[axis]))
        );
    }
    assert_eq!(mesh.sets.faces["3"], [CellFace { cell: 0, face: 3 }]);
    assert_eq!(mesh.sets.cells.keys().collect::<Vec<_>>(), ["all"]);
}

#[test]
fn entities_in_several_groups_and_partitions() {
    let text = text_v4().replace(
        "\n40 0 0 0 1 1 1 1 1 2 1 -2\n",
        "\n40 0 0 0 1 1 1 3 1 -2 3 2 1 -2\n",
    );
    let sets = read_as(text.as_bytes()).unwrap().mesh.sets;
    assert_eq!(
        sets.cells.keys().collect::<Vec<_>>(),
        ["3", "all", "left", "unused"]
    );
    assert_eq!(
        (&sets.cells["3"], &sets.cells["unused"]),
        (&vec![0], &vec![0])
    );
    // Element 41 of a partition of volume 41, which is entity 99 of group 8.
    let partitioned = "$PartitionedEntities\n2\n0\n0 0 0 1\n99 3 41 1 2 0 0 0 1 1 1 1 8 0\n$EndPartitionedEntities\n$Nodes";
    let text = text_v4()
        .replace("$Nodes", partitioned)
        .replace("\n3 41 5 1\n", "\n3 99 5 1\n");
    assert_eq!(read_as(text.as_bytes()).unwrap().mesh.sets.cells["8"], [1]);
}

#[test]
fn nodes_of_no_solid_are_dropped_from_mesh_and_sets() {
    let text = text_v2()
        .replace("$Nodes\n12\n", "$Nodes\n14\n5 9 9 9\n7 8 8 8\n")
        .replace(
            "$Elements\n6\n",
            "$Elements\n8\n50 15 2 4 1 5\n51 3 2 7 1 5 7 10 20\n",
        );
    let file = read_as(text.as_bytes()).unwrap();
    assert_eq!(file.mesh, {
        let mut expected = read_as(text_v2().as_bytes()).unwrap().mesh;
        expected.sets.nodes.insert("4".into(), Vec::new());
        // A constraint may name them.
        let free = |id, x, sets| FreeNode { id, x, sets };
        expected.free = vec![
            free(5, [9.0; 3], vec!["4".to_owned()]),
            free(7, [8.0; 3], Vec::new()),
        ];
        expected
    });
    for warning in [
        "2 nodes in no solid element, ignored unless a constraint names them: 5, 7",
        "node set `4` has only nodes in no solid element",
        "1 surface element of `two words` lies on no face of a solid element, ignored",
    ] {
        assert!(
            file.warnings.iter().any(|w| w == warning),
            "{:?}",
            file.warnings
        );
    }
}

#[test]
fn a_surface_mesh_is_refused() {
    let text = text_v2()
        .replace(
            "\n40 5 2 1 1 10 20 30 40 50 60 70 80\n41 5 2 0 1 50 60 70 80 90 100 110 120\n",
            "\n",
        )
        .replace("$Elements\n6\n", "$Elements\n4\n");
    assert!(
        message(&text).starts_with("a.msh: the mesh has no solid element (12 nodes"),
        "{}",
        message(&text)
    );
}

#[test]
fn spoiled_bytes_never_panic() {
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for whole in [
        text_v2().into_bytes(),
        text_v4().into_bytes(),
        binary_v2(true),
        binary_v4(false),
    ] {
        for _ in 0..500 {
            let mut bytes = whole.clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                bytes[at] = [b'0', b'9', b'-', b'\n', b' ', b'$', 0, 255][random(8)];
            }
            if let Err(error) = read_as(&bytes) {
                assert_eq!(error.exit_code(), 2, "{error}");
            }
        }
    }
}
