//! Where the lines of a case came from that was made of a deck: messages about such a case name the deck.
//!
//! The text of such a case begins with comments that name the files of the deck, and a comment before each table gives
//! file and line. Whoever reads the text as a case file sees comments.
//!
//! Invariant: knows comments and lines, no key.

use fem_mesh::Error;
use std::path::{Path, PathBuf};

/// Begins a comment that tells an origin: at the head of the text the name of a file, later `file:line`.
pub(crate) const ORIGIN: &str = "#@ ";

/// Origins of the lines of a case; empty for a case that a user wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    files: Vec<PathBuf>,
    /// Line of the case, index of a file, line in it; ascending.
    lines: Vec<(usize, usize, usize)>,
}

impl Origins {
    /// Those that the text tells.
    pub(super) fn of(text: &str) -> Origins {
        let mut origins = Origins::default();
        let mut is_head = true;
        for (k, line) in text.lines().enumerate() {
            let Some(origin) = line.strip_prefix(ORIGIN) else {
                is_head = false;
                if origins.files.is_empty() {
                    break;
                }
                continue;
            };
            if is_head {
                origins.files.push(PathBuf::from(origin));
            } else if let Some((file, line)) = place(origin) {
                origins.lines.push((k + 1, file, line));
            }
        }
        origins
    }

    /// The error with the place in the deck, if it is at a line of the case at `path`.
    pub(super) fn relocated(&self, path: &Path, error: Error) -> Error {
        let (true, Some(line)) = (error.file() == Some(path), error.line()) else {
            return error;
        };
        let after = self.lines.partition_point(|origin| origin.0 <= line);
        match after.checked_sub(1).map(|k| self.lines[k]) {
            Some((_, file, line)) => match self.files.get(file) {
                Some(file) => error.moved_to(file, line),
                None => error,
            },
            None if self.files.is_empty() => error,
            None => error.without_line(),
        }
    }
}

fn place(origin: &str) -> Option<(usize, usize)> {
    let (file, line) = origin.split_once(':')?;
    Some((file.parse().ok()?, line.parse().ok()?))
}

/// The text of a case made of a deck, for a file of its own: origins as comments for people.
pub(crate) fn plain_text(text: &str) -> String {
    let origins = Origins::of(text);
    let name = |file: usize| {
        let name = origins.files.get(file).and_then(|f| f.file_name());
        name.map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let mut plain = format!("# Made from the deck {}.\n", name(0));
    for line in text.lines().skip(origins.files.len()) {
        match line.strip_prefix(ORIGIN).and_then(place) {
            Some((0, line)) => plain.push_str(&format!("# Line {line} of the deck.")),
            Some((file, line)) => plain.push_str(&format!("# Line {line} of {}.", name(file))),
            None => plain.push_str(line),
        }
        plain.push('\n');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{Origins, plain_text};
    use fem_mesh::Error;
    use std::path::Path;

    const TEXT: &str = "#@ a.inp\n#@ sub/b.inp\ntitle = \"t\"\n\n#@ 1:7\n[[load]]\non = \"x\"\n";

    #[test]
    fn errors_move_to_the_deck() {
        let path = Path::new("a.inp");
        let origins = Origins::of(TEXT);
        let moved = |line| {
            let error = Error::input("wrong")
                .in_file(path)
                .at_line(line)
                .at_column(3);
            origins.relocated(path, error).to_string()
        };
        assert_eq!(moved(7), "sub/b.inp:7: wrong");
        assert_eq!(moved(3), "a.inp: wrong");
        let elsewhere = Error::input("wrong").in_file("m.msh").at_line(7);
        assert_eq!(origins.relocated(path, elsewhere.clone()), elsewhere);
        assert_eq!(Origins::of("title = \"t\"\n#@ 1:7\n"), Origins::default());
    }

    #[test]
    fn a_file_has_comments_for_people() {
        let plain = plain_text(TEXT);
        assert_eq!(
            plain,
            "# Made from the deck a.inp.\ntitle = \"t\"\n\n# Line 7 of b.inp.\n[[load]]\non = \"x\"\n"
        );
    }
}
