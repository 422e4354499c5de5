//! Element names of Abaqus and CalculiX.
//!
//! Invariant: reads names only.

use fem_mesh::CellType;

/// What an element name means to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A solid we know. `special` if the name asks for a formulation beyond shape and integration.
    Solid {
        /// Its shape; our node order is Abaqus's.
        cell_type: CellType,
        /// Hybrid, coupled, ...
        special: bool,
    },
    /// Something three-dimensional we cannot read, with its number of nodes (0 if unknown).
    Unsupported(usize),
    /// Shells, membranes and plane elements, with their number of corners.
    Surface(usize),
    /// Beams, springs, masses, ...
    Other,
}

/// Takes the element name in capitals.
pub(crate) fn element_kind(name: &str) -> Kind {
    const UNSUPPORTED: [&str; 6] = ["AC3D", "F3D", "COH3D", "CIN3D", "GK3D", "SC"];
    if let Some(rest) = name
        .strip_prefix("C3D")
        .or_else(|| name.strip_prefix("DC3D"))
    {
        let (n_nodes, letters) = split_number(rest);
        let cell_type = match n_nodes {
            4 => CellType::Tet4,
            5 => CellType::Pyramid5,
            6 => CellType::Wedge6,
            8 => CellType::Hex8,
            10 => CellType::Tet10,
            15 => CellType::Wedge15,
            20 => CellType::Hex20,
            _ => return Kind::Unsupported(n_nodes),
        };
        // R: reduced, I: incompatible modes or improved, M: modified, S: improved surface stress.
        let special = letters.contains(|c| !matches!(c, 'R' | 'I' | 'M' | 'S'));
        return Kind::Solid { cell_type, special };
    }
    match UNSUPPORTED
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
    {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            Kind::Unsupported(split_number(rest).0)
        }
        _ => surface_kind(name),
    }
}

/// Shells (S4R, STRI3, DS8), membranes (M3D3), surface (SFM3D4) and rigid (R3D4) elements, plane elements (CPS6): mesh
/// generators write the skin of a solid as such.
fn surface_kind(name: &str) -> Kind {
    const PREFIXES: [&str; 9] = [
        "SFM3D", "STRI", "CPS", "CPE", "CAX", "M3D", "R3D", "DS", "S",
    ];
    let rest = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    match rest.map(|rest| split_number(rest).0) {
        Some(3 | 6 | 65) => Kind::Surface(3),
        Some(4 | 8 | 9) => Kind::Surface(4),
        _ => Kind::Other,
    }
}

/// Whether the element named so lives in two dimensions, or has no stiffness: in a mesh of solids it can only be the
/// skin that a mesh generator writes for a group of faces.
pub(super) fn is_plane(name: &str) -> bool {
    ["CPS", "CPE", "CAX", "SFM3D"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn split_number(text: &str) -> (usize, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (text[..end].parse().unwrap_or(0), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::{Kind, element_kind};
    use fem_mesh::CellType;

    #[test]
    fn names_of_solids_and_others() {
        let solid = |cell_type| Kind::Solid {
            cell_type,
            special: false,
        };
        assert_eq!(element_kind("C3D10M"), solid(CellType::Tet10));
        assert_eq!(element_kind("C3D20R"), solid(CellType::Hex20));
        assert_eq!(element_kind("DC3D4"), solid(CellType::Tet4));
        let hybrid = Kind::Solid {
            cell_type: CellType::Hex8,
            special: true,
        };
        assert_eq!(element_kind("C3D8RH"), hybrid);
        assert_eq!(element_kind("C3D15"), solid(CellType::Wedge15));
        assert_eq!(element_kind("C3D27"), Kind::Unsupported(27));
        assert_eq!(element_kind("SC8R"), Kind::Unsupported(8));
        for (name, n_corners) in [
            ("S4R", 4),
            ("S8R", 4),
            ("STRI65", 3),
            ("CPS6", 3),
            ("M3D3", 3),
        ] {
            assert_eq!(element_kind(name), Kind::Surface(n_corners), "{name}");
        }
        for other in ["SCALE", "SPRING1", "T3D2", "MASS", "U1", "B31", "S", ""] {
            assert_eq!(element_kind(other), Kind::Other, "{other}");
        }
    }
}
