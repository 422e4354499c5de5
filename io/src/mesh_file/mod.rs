//! Mesh files into a [`Mesh`]: one file per format, chosen by the content of the file and its extension.
//!
//! What goes in: a path. What comes out: the mesh with the numbers and named sets of the file, and what the user
//! should know about it. Each format fills a [`draft::Draft`]; `finish.rs` checks it and makes the mesh, so that
//! every format is checked the same way.
//!
//! Invariant: serial; knows no case, no material and no communication. The caller reads on rank 0.

mod abaqus;
mod draft;
mod finish;
mod gmsh;
mod id_lookup;
mod resolve_sets;
mod scan;

#[cfg(test)]
mod real_files;

use fem_mesh::{Error, Mesh, Result};
use std::path::Path;

/// A mesh read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshFile {
    /// The mesh: solids only, every node used by one. It has the element set `all`.
    pub mesh: Mesh,
    /// What was ignored or is doubtful, one sentence each, without the file name.
    pub warnings: Vec<String>,
}

/// What we read, for messages.
const SUPPORTED: &str = ".msh (Gmsh 2.2 and 4.1, ASCII and binary) or .inp (Abaqus, CalculiX)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Gmsh,
    Abaqus,
}

/// Reads a mesh file on this rank. The content decides where it is clear (an Abaqus deck may be called `.msh`).
///
/// Physical groups of Gmsh become sets: of elements (dimension 3), of faces (2) and of nodes (1, 0). Sets and
/// surfaces of an Abaqus deck keep their names as first written; an element set of shells or plane elements only
/// becomes the set of the faces they lie on. The set `all` holds every element unless the file
/// has a set of that name.
///
/// # Errors
/// Input errors with file and, in text files, line: a file that is missing, a directory, empty, cut off or of an
/// unknown format; a field that is not a number, or not finite; no solid element; an element type not supported; an
/// element that names a node which does not exist; numbers given twice; two elements on the same nodes.
pub fn read(path: &Path) -> Result<MeshFile> {
    let extension = path
        .extension()
        .map(|e| e.to_string_lossy().to_ascii_lowercase());
    let by_extension = match extension.as_deref() {
        Some("msh") => Some(Format::Gmsh),
        Some("inp") => Some(Format::Abaqus),
        _ => None,
    };
    let bytes = read_bytes(path, "mesh file")?;
    let Some(by_extension) = by_extension else {
        let what = match extension {
            Some(extension) => format!("unknown mesh file extension `.{extension}`"),
            None => "a mesh file without extension".to_owned(),
        };
        return Err(Error::input(what).in_file(path).expected(SUPPORTED));
    };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let draft = match by_content(bytes).unwrap_or(by_extension) {
        Format::Gmsh => gmsh::read(path, bytes)?,
        Format::Abaqus => abaqus::read(path, bytes)?,
    };
    draft.finish()
}

/// The bytes of a file that must exist and hold something. `kind` names it in messages.
fn read_bytes(path: &Path, kind: &str) -> Result<Vec<u8>> {
    let refuse = |what: String| Err(Error::input(what).in_file(path));
    if path.is_dir() {
        return refuse(format!("a directory, not a {kind}"));
    }
    match std::fs::read(path) {
        Ok(bytes) if bytes.is_empty() => refuse(format!("the {kind} is empty")),
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            refuse(format!("{kind} not found"))
        }
        Err(error) => refuse(format!("cannot read the {kind}: {error}")),
    }
}

/// The format that the first text of the file gives away.
fn by_content(bytes: &[u8]) -> Option<Format> {
    let start = scan::trim(&bytes[..bytes.len().min(4096)]);
    match start.first()? {
        b'*' => Some(Format::Abaqus),
        b'$' => Some(Format::Gmsh),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use std::path::Path;

    fn message(name: &str, content: &[u8]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        let error = read(&path).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let folder = format!("{}/", directory.path().display());
        error.to_string().replace(&folder, "")
    }

    #[test]
    fn what_is_no_mesh_file_is_refused() {
        assert_eq!(message("a.msh", b""), "a.msh: the mesh file is empty");
        assert_eq!(
            message("a.stl", b"solid"),
            "a.stl: unknown mesh file extension `.stl`; expected .msh (Gmsh 2.2 and 4.1, ASCII and binary) or .inp \
             (Abaqus, CalculiX)"
        );
        assert!(
            message("mesh", b"x").starts_with("mesh: a mesh file without extension; expected .msh")
        );
        let missing = read(Path::new("no/such.msh")).unwrap_err();
        assert_eq!(missing.to_string(), "no/such.msh: mesh file not found");
        let directory = tempfile::tempdir().unwrap();
        let error = read(directory.path()).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with(": a directory, not a mesh file"),
            "{error}"
        );
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn the_content_wins_over_the_extension() {
        assert_eq!(
            message("a.msh", b"** a deck\n*NODE\n1,0,0,0\n"),
            "a.msh: the mesh has no solid element (1 node, 0 other elements); expected at least one tetrahedron, \
             hexahedron or wedge; advice"
                .replace("advice", "mesh the volume too; in Gmsh: `Physical Volume`, then `Mesh 3`")
        );
        assert_eq!(
            message("a.msh", b"!HEADER\n!NODE\n"),
            "a.msh:1: not a Gmsh mesh; expected `$MeshFormat`, found `!HEADER`"
        );
    }
}
