//! A bar of two elements in every dialect, and what is wrong with a file.

use crate::mesh_file::MeshFile;
use fem_mesh::{CellFace, CellType, Result};
use std::path::Path;

fn read_as(bytes: &[u8]) -> Result<MeshFile> {
    super::read(Path::new("a.msh"), bytes)?.finish()
}

fn message(text: impl AsRef<[u8]>) -> String {
    let error = read_as(text.as_ref()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

const NAMES: &str = "$PhysicalNames\n4\n1 5 \"edge \"a\"\"\n2 7 \"two words\"\n3 1 \"left\"\n3 2 \"unused\"\n$EndPhysicalNames\n";

/// Nodes of a bar of two hexahedra from x = 0 to 2; numbers 10, 20, ... in layers of x.
fn bar_nodes() -> Vec<(u32, [f64; 3])> {
    let square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];
    (0..12)
        .map(|k| {
            let [y, z] = square[k % 4];
            (10 * (k as u32 + 1), [(k / 4) as f64, y, z])
        })
        .collect()
}

/// Number, Gmsh's type, group (0: none), nodes. The last of them lies between the two hexahedra.
fn bar_elements() -> Vec<(u32, u32, u32, Vec<u32>)> {
    vec![
        (1, 1, 5, vec![10, 20]),
        (2, 3, 7, vec![90, 120, 110, 100]),
        (3, 3, 0, vec![10, 20, 30, 40]),
        (40, 5, 1, vec![10, 20, 30, 40, 50, 60, 70, 80]),
        (41, 5, 0, vec![50, 60, 70, 80, 90, 100, 110, 120]),
        (42, 3, 9, vec![50, 60, 70, 80]),
    ]
}

fn words<T: ToString>(numbers: &[T]) -> String {
    numbers
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

fn text_v2() -> String {
    let nodes: String = bar_nodes()
        .iter()
        .map(|(id, x)| format!("{id} {}\n", words(x)))
        .collect();
    let element = |(id, kind, group, nodes): &(u32, u32, u32, Vec<u32>)| {
        format!("{id} {kind} 2 {group} 1 {}\n", words(nodes))
    };
    let elements: String = bar_elements().iter().map(element).collect();
    format!(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n{NAMES}$Nodes\n12\n{nodes}$EndNodes\n$Elements\n6\n{elements}$EndElements\n"
    )
}

/// Appends numbers as bytes of one byte order.
struct Bytes {
    bytes: Vec<u8>,
    big_endian: bool,
}

impl Bytes {
    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    fn raw(&mut self, mut little_endian: Vec<u8>) -> &mut Self {
        if self.big_endian {
            little_endian.reverse();
        }
        self.bytes.append(&mut little_endian);
        self
    }

    fn ints(&mut self, ints: &[u32]) -> &mut Self {
        ints.iter()
            .fold(self, |s, n| s.raw(n.to_le_bytes().to_vec()))
    }

    fn sizes(&mut self, sizes: &[u64]) -> &mut Self {
        sizes
            .iter()
            .fold(self, |s, n| s.raw(n.to_le_bytes().to_vec()))
    }

    fn floats(&mut self, floats: &[f64]) -> &mut Self {
        floats
            .iter()
            .fold(self, |s, x| s.raw(x.to_le_bytes().to_vec()))
    }
}

fn binary_head(version: &str, big_endian: bool) -> Bytes {
    let mut out = Bytes {
        bytes: Vec::new(),
        big_endian,
    };
    out.text(&format!("$MeshFormat\n{version} 1 8\n"))
        .ints(&[1]);
    out.text(&format!("\n$EndMeshFormat\n{NAMES}"));
    out
}

fn binary_v2(big_endian: bool) -> Vec<u8> {
    let mut out = binary_head("2.2", big_endian);
    out.text("$Nodes\n12\n");
    for (id, x) in bar_nodes() {
        out.ints(&[id]).floats(&x);
    }
    out.text("\n$EndNodes\n$Elements\n6\n");
    // The two hexahedra in one block, the others one by one.
    for (id, kind, group, nodes) in bar_elements() {
        match id {
            40 => drop(out.ints(&[kind, 2, 2])),
            41 => {}
            _ => drop(out.ints(&[kind, 1, 2])),
        }
        out.ints(&[id, group, 1]).ints(&nodes);
    }
    out.text("\n$EndElements\n");
    out.bytes
}

/// One entity for each element; its number is that of the element.
fn text_v4() -> String {
    let mut text = format!("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n{NAMES}$Entities\n0 1 3 2\n");
    for dimension in 1..4 {
        for (id, kind, group, _) in bar_elements()
            .iter()
            .filter(|e| dimension_of(e.1) == dimension)
        {
            let groups = if *group == 0 {
                "0".to_owned()
            } else {
                format!("1 {group}")
            };
            assert!([1, 3, 5].contains(kind));
            text += &format!("{id} 0 0 0 1 1 1 {groups} 2 1 -2\n");
        }
    }
    text += "$EndEntities\n$Nodes\n2 12 10 120\n2 2 1 4\n";
    let nodes = bar_nodes();
    text += &nodes[..4]
        .iter()
        .map(|(id, _)| format!("{id}\n"))
        .collect::<String>();
    text += &nodes[..4]
        .iter()
        .map(|(_, x)| format!("{} 0.5 0.5\n", words(x)))
        .collect::<String>();
    text += "3 40 0 8\n";
    text += &nodes[4..]
        .iter()
        .map(|(id, _)| format!("{id} "))
        .collect::<String>();
    text += "\n";
    text += &nodes[4..]
        .iter()
        .map(|(_, x)| format!("{}\n", words(x)))
        .collect::<String>();
    text += "$EndNodes\n$Elements\n6 6 1 42\n";
    for (id, kind, _, nodes) in bar_elements() {
        text += &format!(
            "{} {id} {kind} 1\n{id} {}\n",
            dimension_of(kind),
            words(&nodes)
        );
    }
    text + "$EndElements\n"
}

fn dimension_of(kind: u32) -> u32 {
    match kind {
        1 => 1,
        3 => 2,
        _ => 3,
    }
}

fn binary_v4(big_endian: bool) -> Vec<u8> {
    let mut out = binary_head("4.1", big_endian);
    out.text("$Entities\n").sizes(&[0, 1, 3, 2]);
    for dimension in 1..4 {
        for (id, _, group, _) in bar_elements()
            .iter()
            .filter(|e| dimension_of(e.1) == dimension)
        {
            out.ints(&[*id]).floats(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
            if *group == 0 {
                out.sizes(&[0])
            } else {
                out.sizes(&[1]).ints(&[*group])
            };
            out.sizes(&[1]).ints(&[7]);
        }
    }
    out.text("\n$EndEntities\n$Nodes\n")
        .sizes(&[2, 12, 10, 120]);
    let nodes = bar_nodes();
    for (head, block) in [([2, 2, 1], &nodes[..4]), ([3, 40, 0], &nodes[4..])] {
        out.ints(&head).sizes(&[block.len() as u64]);
        block
            .iter()
            .fold(&mut out, |out, (id, _)| out.sizes(&[u64::from(*id)]));
        for (_, x) in block {
            out.floats(x);
            if head[2] == 1 {
                out.floats(&[0.5, 0.5]);
            }
        }
    }
    out.text("\n$EndNodes\n$Elements\n").sizes(&[6, 6, 1, 42]);
    for (id, kind, _, nodes) in bar_elements() {
        out.ints(&[dimension_of(kind), id, kind])
            .sizes(&[1, u64::from(id)]);
        nodes
            .iter()
            .fold(&mut out, |out, &node| out.sizes(&[u64::from(node)]));
    }
    out.text("\n$EndElements\n$Unknown\n")
        .sizes(&[5, 6])
        .text("\n$EndUnknown\n");
    out.bytes
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
            "\n42 7 2 9 1 50 60 70 80 90\n"
        ),
        "a.msh:33: element type pyramid5 (Gmsh type 7) is not supported yet (1 element of it); expected solids of \
         type tet4, tet10, wedge6, hex8, hex20; mesh the part with one of these"
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
        expected
    });
    for warning in [
        "2 nodes in no solid element, ignored: 5, 7",
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
