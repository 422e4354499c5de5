//! Decks of Abaqus and CalculiX as cases: a deck into the text of a case file and the mesh that it names.
//!
//! What goes in: the path of a deck. What comes out: text that [`crate::case::parse`] takes, with the mesh, which holds
//! the sets of the deck and those that its cards need (a node by its number, one face of the elements of a set). So a deck
//! goes the way of every case, nothing is reachable by a deck only, and `mesh convert` writes the text as it is. What is
//! said node by node becomes sets of the mesh, which stays with the ranks that hold the nodes; only the text is the
//! same on every rank, and it grows with the number of cards and of different values, not with that of nodes (but for
//! temperatures of single nodes, which are listed in it).
//!
//! Linear statics depends on the state at the end of each step: amplitudes are evaluated there.
//!
//! Invariant: serial; knows no rank and no solver. Every card has a fate, in `keywords.rs`.

mod case_joins;
mod case_loads;
mod case_materials;
mod case_text;
mod conditions;
mod joins;
mod keywords;
mod materials;
mod model;
mod output;
mod pre_tension;
mod reader;
mod source;
mod toml;

#[cfg(test)]
mod tests;

use crate::atomic::write_text_atomically;
use crate::case::plain_text;
use crate::mesh_file::{self, MeshFile, abaqus, read_bytes};
use fem_mesh::{Error, Result};
use std::path::Path;

/// A deck read.
#[derive(Clone, Debug)]
pub struct Deck {
    /// The text of the case.
    pub text: String,
    /// Its mesh with all sets that the text names, and what the user should know.
    pub mesh: MeshFile,
}

/// Name of the mesh file that [`convert`] writes beside `case.toml`.
const MESH_FILE: &str = "mesh.inp";

/// Whether a file is a deck by its name.
pub fn is_deck(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("inp"))
}

/// Reads the deck at `path`, on rank 0.
///
/// # Errors
/// Input errors with file and line: those of [`mesh_file::read`]; a keyword, parameter or element type that is unknown or
/// not supported; values that are missing or no numbers; names of sets, materials and the like that do not exist.
pub fn read(path: &Path) -> Result<Deck> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    read_for(path, &name, false)
}

fn read_for(path: &Path, mesh: &str, writes_nodes: bool) -> Result<Deck> {
    let bytes = read_bytes(path, "deck")?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let parts = abaqus::read_deck(path, bytes)?;
    let mut reader = reader::read(parts)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let purpose = case_text::Purpose {
        mesh,
        name: &stem,
        writes_nodes,
    };
    let text = case_text::write(&mut reader, &purpose)?;
    let mut notes = reader.notes;
    let mut mesh = reader.source.draft.finish()?;
    notes.append(&mut mesh.warnings);
    mesh.warnings = notes;
    Ok(Deck { text, mesh })
}

/// Writes the deck at `path` into the directory as `case.toml` and a mesh file, which keeps what surfaces name: elements and their faces; what the user should know.
///
/// # Errors
/// Those of [`read`]; a directory that cannot be made or holds a case already, a full disk.
pub fn convert(path: &Path, directory: &Path) -> Result<MeshFile> {
    let deck = read_for(path, MESH_FILE, true)?;
    let case = directory.join("case.toml");
    if case.exists() {
        let error = Error::input("there is a case file already").in_file(&case);
        return Err(error.expected("a directory without a case"));
    }
    std::fs::create_dir_all(directory).map_err(|e| {
        Error::machine(format!("cannot make the directory: {e}")).in_file(directory)
    })?;
    mesh_file::write(&directory.join(MESH_FILE), &deck.mesh.mesh)?;
    write_text_atomically(&case, &plain_text(&deck.text))?;
    Ok(deck.mesh)
}
