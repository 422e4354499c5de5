//! Meshes into files: `.vtu`, `.inp` and `.msh`, chosen by the extension; the way back from [`super::read`].
//!
//! Nodes, elements and faces keep their sets; numbers are kept where the format has room for them. A file appears under
//! its name only when complete.
//!
//! Invariant: serial; writes the mesh and nothing else.

mod inp;
mod msh;
mod vtu;

use crate::atomic::{Unfinished, disk_error};
use fem_mesh::{CellFace, Error, Mesh, Result};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// What can be written, for messages.
const WRITABLE: &str = ".vtu, .inp (Abaqus, CalculiX) or .msh (Gmsh 4.1)";

/// Writes `mesh` to `path`, in place of any earlier file.
///
/// In `.inp` coordinates have 14 digits, for CalculiX reads no more than 20 characters; elsewhere they are exact. A set
/// of no members is left out of `.vtu` and `.msh`, which have no place for it.
///
/// # Errors
/// Input errors for an unknown extension, a name that is a directory's or a device's, and an element type that the format
/// lacks; machine errors of the disk.
pub fn write(path: &Path, mesh: &Mesh) -> Result<()> {
    let extension = path
        .extension()
        .map(|e| e.to_string_lossy().to_ascii_lowercase());
    let write: fn(&mut dyn Write, &Mesh) -> io::Result<()> = match extension.as_deref() {
        Some("vtu") => vtu::write,
        Some("inp") => {
            inp::check(mesh).map_err(|error| error.in_file(path))?;
            inp::write
        }
        Some("msh") => {
            msh::check(mesh).map_err(|error| error.in_file(path))?;
            msh::write
        }
        _ => {
            let error = Error::input("meshes cannot be written in the format of that extension");
            return Err(error.in_file(path).expected(WRITABLE));
        }
    };
    // The finished file takes the place of what has the name: that must not be a directory or a device.
    if path.exists() && !path.is_file() {
        let error = Error::input("there is something of this name that is no file");
        return Err(error
            .in_file(path)
            .expected("the name of a new file, or of one to replace"));
    }
    let unfinished = Unfinished::new(path);
    let written = File::create(unfinished.temporary()).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out, mesh)?;
        out.flush()
    });
    written.map_err(|error| disk_error(path, &error))?;
    unfinished.publish()
}

/// Element sets worth writing: the set `all` that every reader adds says nothing.
fn cell_sets(mesh: &Mesh) -> impl Iterator<Item = (&str, &[u32])> {
    let sets = mesh.sets.cells.iter();
    let told = sets.filter(|(name, cells)| name.as_str() != "all" || cells.len() != mesh.n_cells());
    told.map(|(name, cells)| (name.as_str(), cells.as_slice()))
}

/// Every face of a face set, once.
fn all_faces(mesh: &Mesh) -> Vec<CellFace> {
    let faces: BTreeSet<CellFace> = mesh.sets.faces.values().flatten().copied().collect();
    faces.into_iter().collect()
}

/// The numbers, if they all lie between 1 and `most` (formats that count from 1); else positions from 1.
fn numbers_from_1(ids: &[u64], most: u64) -> Cow<'_, [u64]> {
    if ids.iter().all(|&id| (1..=most).contains(&id)) {
        Cow::Borrowed(ids)
    } else {
        (1..=ids.len() as u64).collect()
    }
}

#[cfg(test)]
mod tests;
