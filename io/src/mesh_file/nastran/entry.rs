//! Bulk data entries: one name and its fields, from lines in small, large or free field form.
//!
//! Invariant: knows the form of entries, not the meaning of any.

use super::super::draft::Place;
use super::super::scan::{shown, trim};
use fem_mesh::{Error, Result};

/// One entry, whole, with its continuations. Fields are counted from 0 behind the name: field 0 is the manual's
/// field 2, and each continuation line adds eight.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// In capitals, without the star of the large field form.
    pub(super) name: String,
    /// Where it begins.
    pub(super) place: Place,
    text: Vec<u8>,
    ends: Vec<usize>,
    /// What the last field of the last line says of the line to come.
    mark: Vec<u8>,
}

/// What one line is.
pub(super) enum Line<'a> {
    /// The first line of an entry.
    Start { name: String, fields: Fields<'a> },
    /// A further line of the entry before.
    Continued(Fields<'a>),
}

/// The data fields of one line, and the marks of its continuation.
pub(super) struct Fields<'a> {
    fields: Vec<&'a [u8]>,
    /// Eight, or four in the large field form.
    per_line: usize,
    own_mark: &'a [u8],
    next_mark: &'a [u8],
}

impl Entry {
    /// Forgets everything but the memory.
    pub(super) fn start(&mut self, name: String, place: Place) {
        self.name = name;
        self.place = place;
        self.text.clear();
        self.ends.clear();
        self.mark.clear();
    }

    /// The field, without blanks around it; empty where there is none.
    pub(super) fn field(&self, k: usize) -> &[u8] {
        let Some(&end) = self.ends.get(k) else {
            return b"";
        };
        let start = if k == 0 { 0 } else { self.ends[k - 1] };
        &self.text[start..end]
    }

    /// Takes the fields of one line. A mark that names another entry's continuation is an error.
    pub(super) fn add(&mut self, line: &Fields) -> Result<()> {
        let bare = |mark: &[u8]| -> Vec<u8> {
            let start = usize::from(mark.first().is_some_and(|c| matches!(c, b'+' | b'*')));
            trim(&mark[start..]).to_ascii_uppercase()
        };
        let (asked, found) = (bare(&self.mark), bare(line.own_mark));
        if !asked.is_empty() && !found.is_empty() && asked != found {
            return Err(Error::input(format!(
                "continuation `{}` does not follow its entry",
                shown(line.own_mark)
            ))
            .expected(format!("`{}`", shown(&self.mark)))
            .advice("write the file with every entry in one piece"));
        }
        while !self.ends.len().is_multiple_of(line.per_line) {
            self.ends.push(self.text.len());
        }
        for k in 0..line.per_line {
            let field = line.fields.get(k).copied().unwrap_or_default();
            self.text.extend_from_slice(field);
            self.ends.push(self.text.len());
        }
        self.mark.clear();
        self.mark.extend_from_slice(line.next_mark);
        Ok(())
    }
}

/// Takes a line apart. It is neither empty nor a comment, and has no tabs.
pub(super) fn split(line: &[u8]) -> Result<Line<'_>> {
    if line.contains(&b',') {
        split_free(line)
    } else {
        split_fixed(line)
    }
}

fn split_fixed(line: &[u8]) -> Result<Line<'_>> {
    let column = |from: usize, to: usize| {
        let end = to.min(line.len());
        trim(&line[from.min(end)..end])
    };
    let head = column(0, 8);
    let is_large = head.starts_with(b"*") || head.ends_with(b"*");
    let (per_line, width) = if is_large { (4, 16) } else { (8, 8) };
    let fields = (0..per_line).map(|k| column(8 + k * width, 8 + (k + 1) * width));
    let fields = Fields {
        fields: fields.collect(),
        per_line,
        own_mark: head,
        next_mark: column(72, 80),
    };
    Ok(start_or_continue(head, fields))
}

fn split_free(line: &[u8]) -> Result<Line<'_>> {
    let mut all: Vec<&[u8]> = line.split(|&b| b == b',').map(trim).collect();
    let head = all.remove(0);
    let is_large = head.starts_with(b"*") || head.ends_with(b"*");
    let per_line = if is_large { 4 } else { 8 };
    let next_mark = all.get(per_line).copied().unwrap_or_default();
    if all[per_line.min(all.len())..]
        .iter()
        .skip(1)
        .any(|f| !f.is_empty())
    {
        return Err(
            Error::input(format!("more than {} fields on a line", per_line + 2))
                .advice("continue the entry on the next line, with `+` in its first field"),
        );
    }
    // A short line may end with the mark of its continuation: a field that begins with + but is no number.
    let is_mark = |field: &[u8]| {
        field.first().is_some_and(|c| matches!(c, b'+' | b'*'))
            && !field
                .get(1)
                .is_some_and(|c| c.is_ascii_digit() || *c == b'.')
    };
    let mut next_mark = next_mark;
    all.truncate(per_line);
    if next_mark.is_empty() && all.last().is_some_and(|f| is_mark(f)) {
        next_mark = all.pop().unwrap_or_default();
    }
    let fields = Fields {
        fields: all,
        per_line,
        own_mark: head,
        next_mark,
    };
    Ok(start_or_continue(head, fields))
}

fn start_or_continue<'a>(head: &[u8], fields: Fields<'a>) -> Line<'a> {
    match head.first() {
        None | Some(b'+' | b'*') => Line::Continued(fields),
        _ => {
            let name = head.strip_suffix(b"*").unwrap_or(head);
            let name = String::from_utf8_lossy(trim(name)).to_ascii_uppercase();
            Line::Start { name, fields }
        }
    }
}

/// The line with each tab widened to the next multiple of eight columns.
pub(super) fn without_tabs(line: &[u8]) -> Vec<u8> {
    let mut wide = Vec::with_capacity(line.len() + 16);
    for &byte in line {
        if byte == b'\t' {
            wide.push(b' ');
            while !wide.len().is_multiple_of(8) {
                wide.push(b' ');
            }
        } else {
            wide.push(byte);
        }
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::{Entry, Line, split, without_tabs};

    fn entry(lines: &[&str]) -> Result<Entry, String> {
        let mut entry = Entry::default();
        for line in lines {
            let line = without_tabs(line.as_bytes());
            let fields = match split(&line).map_err(|e| e.to_string())? {
                Line::Start { name, fields } => {
                    entry.start(name, Default::default());
                    fields
                }
                Line::Continued(fields) => fields,
            };
            entry.add(&fields).map_err(|e| e.to_string())?;
        }
        Ok(entry)
    }

    fn fields(lines: &[&str]) -> Vec<String> {
        let entry = entry(lines).unwrap();
        let mut found = vec![entry.name.clone()];
        let is_filled = |&k: &usize| !entry.field(k).is_empty();
        let n_fields = (0..40).filter(is_filled).max().map_or(0, |k| k + 1);
        found.extend((0..n_fields).map(|k| String::from_utf8_lossy(entry.field(k)).into()));
        found
    }

    #[test]
    fn every_form_gives_the_same_fields() {
        let small = fields(&[
            "ctetra         7       1      11      12      13      14      15      16+A",
            "+A            17      18      19",
        ]);
        let expected: Vec<&str> = "CTETRA 7 1 11 12 13 14 15 16 17 18 19".split(' ').collect();
        assert_eq!(small, expected);
        let blank = fields(&[
            "CTETRA         7       1      11      12      13      14      15      16",
            "              17      18      19",
        ]);
        let free = fields(&["CTETRA,7,1,11,12,13,14,15,16,+", "+,17,18,19"]);
        let bare = fields(&["CTETRA, 7, 1, 11, 12, 13, 14, 15, 16,", ",17,18,19"]);
        let tabs = fields(&["CTETRA\t7\t1\t11\t12\t13\t14\t15\t16", "\t17\t18\t19"]);
        let large = fields(&[
            "CTETRA*                7               1              11              12*X",
            "*X                    13              14              15              16",
            "*                     17              18              19",
        ]);
        for other in [blank, free, bare, tabs, large] {
            assert_eq!(other, expected);
        }
        // A short line with a mark, and a number with a sign in that place.
        assert_eq!(fields(&["GRID,1,,+1.,+2.,+3.,+", "+,,"])[5], "+3.");
        // Half a large line, then a small one: the fields in between are blank.
        let mixed = fields(&["GRID*                  1", "+             2"]);
        assert_eq!(mixed[9], "2");
    }

    #[test]
    fn foreign_continuations_and_long_lines_are_refused() {
        let first = "CTETRA         7       1      11      12      13      14      15      16+A";
        let message = entry(&[first, "+B            17"]).unwrap_err();
        assert!(
            message.starts_with("continuation `+B` does not follow its entry; expected `+A`"),
            "{message}"
        );
        let message = entry(&["GRID,1,2,3,4,5,6,7,8,9,10"]).unwrap_err();
        assert!(message.starts_with("more than 10 fields"), "{message}");
    }
}
