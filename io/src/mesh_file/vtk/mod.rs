//! Unstructured grids of VTK: legacy files (`.vtk`, ASCII and binary) and XML files (`.vtu`, every encoding).
//!
//! `legacy.rs` and `xml.rs` read arrays, `grid.rs` makes a draft of them, `number.rs` knows the number types.
//!
//! Invariant: knows unstructured grids only; other data sets are refused by name.

mod encoded;
mod grid;
mod legacy;
mod number;
mod xml;

pub(super) use grid::SET_PREFIX;

use super::draft::Draft;
use fem_mesh::Result;
use std::path::Path;

/// Reads the bytes of the legacy file at `path`.
pub(super) fn read_legacy(path: &Path, bytes: &[u8]) -> Result<Draft> {
    let grid = legacy::read(bytes).map_err(|error| error.in_file(path))?;
    grid.into_draft(path).map_err(|error| error.in_file(path))
}

/// Reads the bytes of the XML file at `path`.
pub(super) fn read_xml(path: &Path, bytes: &[u8]) -> Result<Draft> {
    let grid = xml::read(bytes).map_err(|error| error.in_file(path))?;
    grid.into_draft(path).map_err(|error| error.in_file(path))
}

#[cfg(test)]
mod tests;
