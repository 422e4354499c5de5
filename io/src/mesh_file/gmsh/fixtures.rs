//! The same bar of two hexahedra in every dialect of the format, for tests.
//!
//! Invariant: written from the manual, not by the code under test.

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

pub(super) fn words<T: ToString>(numbers: &[T]) -> String {
    numbers
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

pub(super) fn text_v2() -> String {
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
pub(super) struct Bytes {
    pub(super) bytes: Vec<u8>,
    big_endian: bool,
}

impl Bytes {
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    pub(super) fn raw(&mut self, mut little_endian: Vec<u8>) -> &mut Self {
        if self.big_endian {
            little_endian.reverse();
        }
        self.bytes.append(&mut little_endian);
        self
    }

    pub(super) fn ints(&mut self, ints: &[u32]) -> &mut Self {
        ints.iter()
            .fold(self, |s, n| s.raw(n.to_le_bytes().to_vec()))
    }

    pub(super) fn sizes(&mut self, sizes: &[u64]) -> &mut Self {
        sizes
            .iter()
            .fold(self, |s, n| s.raw(n.to_le_bytes().to_vec()))
    }

    pub(super) fn floats(&mut self, floats: &[f64]) -> &mut Self {
        floats
            .iter()
            .fold(self, |s, x| s.raw(x.to_le_bytes().to_vec()))
    }
}

pub(super) fn binary_head(version: &str, big_endian: bool) -> Bytes {
    let mut out = Bytes {
        bytes: Vec::new(),
        big_endian,
    };
    out.text(&format!("$MeshFormat\n{version} 1 8\n"))
        .ints(&[1]);
    out.text(&format!("\n$EndMeshFormat\n{NAMES}"));
    out
}

pub(super) fn binary_v2(big_endian: bool) -> Vec<u8> {
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
pub(super) fn text_v4() -> String {
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

pub(super) fn binary_v4(big_endian: bool) -> Vec<u8> {
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
