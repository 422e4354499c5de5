//! `.inp` of Abaqus and CalculiX: nodes, elements, sets and surfaces.
//!
//! Invariant: lines of at most 16 numbers, numbers of at most 20 characters.

use super::{cell_sets, numbers_from_1};
use fem_mesh::{CellType, Error, Mesh, Result};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Numbers on one line.
const PER_LINE: usize = 16;

/// The largest number that both programs take.
const MOST: u64 = 999_999_999;

/// The element of that shape, with our node order.
fn element_name(cell_type: CellType) -> Option<&'static str> {
    Some(match (cell_type.n_corners(), cell_type.n_nodes()) {
        (4, 4) => "C3D4",
        (4, 10) => "C3D10",
        (6, 6) => "C3D6",
        (6, 15) => "C3D15",
        (8, 8) => "C3D8",
        (8, 20) => "C3D20",
        _ => return None,
    })
}

/// Fails if an element has no name in the format.
pub(super) fn check(mesh: &Mesh) -> Result<()> {
    let types = mesh.cells.types.iter().zip(&mesh.cell_ids);
    match types.clone().find(|(t, _)| element_name(**t).is_none()) {
        None => Ok(()),
        Some((cell_type, id)) => {
            let what = format!("element {id} is a {cell_type}, which CalculiX lacks");
            Err(Error::input(what).advice("write .vtu or .msh"))
        }
    }
}

/// Writes the deck.
pub(super) fn write(out: &mut dyn Write, mesh: &Mesh) -> io::Result<()> {
    let nodes = numbers_from_1(&mesh.node_ids, MOST);
    let elements = numbers_from_1(&mesh.cell_ids, MOST);
    writeln!(out, "*HEADING\nMesh written by fem-solve\n*NODE")?;
    for (id, x) in nodes.iter().zip(&mesh.coords) {
        let [x, y, z] = x.map(short);
        writeln!(out, "{id}, {x}, {y}, {z}")?;
    }
    let mut last = None;
    for (cell, &cell_type) in mesh.cells.types.iter().enumerate() {
        if last != Some(cell_type) {
            writeln!(
                out,
                "*ELEMENT, TYPE={}",
                element_name(cell_type).unwrap_or_default()
            )?;
            last = Some(cell_type);
        }
        let of_cell = mesh.cells.nodes_of(cell).iter();
        let numbers = of_cell.map(|&node| nodes[node as usize]);
        write_list(out, std::iter::once(elements[cell]).chain(numbers))?;
    }
    let mut names = Names::default();
    for (name, cells) in cell_sets(mesh) {
        writeln!(out, "*ELSET, ELSET={}", names.free("ELSET", name))?;
        write_list(out, cells.iter().map(|&cell| elements[cell as usize]))?;
    }
    for (name, members) in &mesh.sets.nodes {
        writeln!(out, "*NSET, NSET={}", names.free("NSET", name))?;
        write_list(out, members.iter().map(|&node| nodes[node as usize]))?;
    }
    for (name, faces) in &mesh.sets.faces {
        writeln!(
            out,
            "*SURFACE, NAME={}, TYPE=ELEMENT",
            names.free("SURFACE", name)
        )?;
        for face in faces {
            writeln!(out, "{}, S{}", elements[face.cell as usize], face.face + 1)?;
        }
    }
    Ok(())
}

/// Numbers over as many lines as they need; a line that is continued ends with a comma.
fn write_list(out: &mut dyn Write, numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    let mut numbers = numbers.peekable();
    let mut on_line = 0;
    while let Some(number) = numbers.next() {
        on_line += 1;
        match numbers.peek() {
            None => writeln!(out, "{number}")?,
            Some(_) if on_line == PER_LINE => {
                writeln!(out, "{number},")?;
                on_line = 0;
            }
            Some(_) => write!(out, "{number}, ")?,
        }
    }
    Ok(())
}

/// The number in at most 20 characters, exact where they suffice.
fn short(x: f64) -> String {
    let exact = format!("{x:?}");
    if exact.len() <= 20 {
        return exact;
    }
    let shortest = format!("{x:e}");
    let digits = (0..=16).rev().map(|digits| format!("{x:.digits$e}"));
    let mut candidates = std::iter::once(shortest).chain(digits);
    candidates.find(|text| text.len() <= 20).unwrap_or(exact)
}

/// Names in use: decks do not tell capitals from small letters.
#[derive(Default)]
struct Names(BTreeSet<(&'static str, String)>);

impl Names {
    /// `name` as it can stand in a deck, unlike all others of that kind.
    fn free(&mut self, kind: &'static str, name: &str) -> String {
        let plain: String = (name.chars())
            .map(|c| if c == '"' || c.is_control() { '_' } else { c })
            .collect();
        let mut free = plain.trim().to_owned();
        let mut k = 2;
        while !self.0.insert((kind, free.to_ascii_uppercase())) {
            free = format!("{}_{k}", plain.trim());
            k += 1;
        }
        if free.contains([',', ' ', '=']) {
            format!("\"{free}\"")
        } else {
            free
        }
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_fit_calculix() {
        for x in [
            0.1,
            -1.0 / 3.0,
            1e-300 / 3.0,
            -1.234_567_890_123_456_7e-10,
            1e300,
            12.0,
            -0.0,
        ] {
            let text = short(x);
            assert!(text.len() <= 20, "{text}");
            let back: f64 = text.parse().unwrap();
            assert!((back - x).abs() <= 1e-12 * x.abs(), "{text}");
        }
        assert_eq!(short(0.1), "0.1");
    }
}
