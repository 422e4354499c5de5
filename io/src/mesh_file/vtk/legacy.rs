//! Legacy VTK files: `# vtk DataFile Version 1.0` to `5.1`, ASCII and binary.
//!
//! Source: "VTK File Formats", part "Simple Legacy Formats", and the writers of VTK 9 for version 5.1.
//!
//! Invariant: reads arrays; what cells and values mean is told in `grid.rs`.

use super::super::scan::{Scanner, readable, shown};
use super::grid::{Array, Grid};
use super::number::{Number, parse_any_float, parse_int};
use fem_mesh::{Error, Result};

/// Reads a whole file. Errors come with the line (in ASCII) or the byte (in binary), without the file.
pub(super) fn read(bytes: &[u8]) -> Result<Grid> {
    let mut reader = Reader {
        scan: Scanner::new(bytes),
        binary: false,
        grid: Grid::default(),
        of: None,
    };
    reader.read_header()?;
    while let Some(word) = reader.next_word() {
        reader.read_section(&word)?;
    }
    for (what, is_missing) in [
        ("POINTS", reader.grid.points.is_empty()),
        ("CELLS", reader.grid.ends.is_empty()),
        ("CELL_TYPES", reader.grid.types.is_empty()),
    ] {
        if is_missing {
            return Err(Error::input(format!("the file has no section {what}"))
                .advice("it may be cut off: write it again"));
        }
    }
    Ok(reader.grid)
}

struct Reader<'a> {
    scan: Scanner<'a>,
    binary: bool,
    grid: Grid,
    /// What arrays belong to at present: points (false) or cells (true), and how many there are.
    of: Option<(bool, usize)>,
}

/// What to keep of an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Ints,
    Floats,
    Nothing,
}

/// What was kept.
#[derive(Default)]
struct Kept {
    ints: Vec<i64>,
    floats: Vec<f64>,
}

impl Reader<'_> {
    /// With the place reached.
    fn error(&self, error: Error) -> Error {
        if self.binary {
            error.advice(format!("near byte {} of the file", self.scan.position()))
        } else {
            error.at_line(self.scan.line())
        }
    }

    fn read_header(&mut self) -> Result<()> {
        self.scan.rest_of_line(); // known to be "# vtk DataFile Version"
        self.scan.rest_of_line(); // the title
        let line = self.scan.line();
        let form = self.scan.rest_of_line().to_ascii_uppercase();
        match form.as_slice() {
            b"ASCII" => {}
            b"BINARY" => self.binary = true,
            _ => {
                let error = Error::input(format!("`{}` on the third line", shown(&form)));
                return Err(error.at_line(line).expected("ASCII or BINARY"));
            }
        }
        let keyword = self.next_word().unwrap_or_default();
        let kind = self.next_word().unwrap_or_default();
        if (keyword.as_str(), kind.as_str()) != ("DATASET", "UNSTRUCTURED_GRID") {
            let error = Error::input(format!("not an unstructured grid: `{keyword} {kind}`"));
            return Err(self.error(error.expected("`DATASET UNSTRUCTURED_GRID`")));
        }
        Ok(())
    }

    /// The next word in capitals, on this line or a later one.
    fn next_word(&mut self) -> Option<String> {
        self.scan.next_record();
        self.scan
            .field()
            .map(|word| shown(word).to_ascii_uppercase())
    }

    fn read_section(&mut self, word: &str) -> Result<()> {
        match word {
            "POINTS" => self.read_points(),
            "CELLS" => self.read_cells(),
            "CELL_TYPES" => {
                let n = self.count("the number of cell types")?;
                self.end_line();
                self.grid.types = self.numbers(Number::I32, n, Keep::Ints, "cell types")?.ints;
                Ok(())
            }
            "POINT_DATA" => {
                self.of = Some((false, self.count("the number of points")?));
                Ok(())
            }
            "CELL_DATA" => {
                self.of = Some((true, self.count("the number of cells")?));
                Ok(())
            }
            "METADATA" => {
                self.end_line();
                while !self.scan.rest_of_line().is_empty() {}
                Ok(())
            }
            "FIELD" => self.read_field(),
            "LOOKUP_TABLE" => {
                self.word("the name of a table")?;
                let n = self.count("the size of a table")?;
                self.end_line();
                self.skip(Number::U8, n, 4)
            }
            _ => self.read_attribute(word),
        }
    }

    fn read_points(&mut self) -> Result<()> {
        let n = self.count("the number of points")?;
        let kind = self.number_type()?;
        self.end_line();
        let n = n
            .checked_mul(3)
            .ok_or_else(|| self.cut_off("coordinates"))?;
        let found = self.numbers(kind, n, Keep::Floats, "coordinates")?.floats;
        self.grid.points = found.chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect();
        Ok(())
    }

    /// Up to version 4.2 the points of each cell behind their number; from 5.0 on two arrays.
    fn read_cells(&mut self) -> Result<()> {
        let first = self.count("the number of cells")?;
        let second = self.count("the size of the list of cells")?;
        self.end_line();
        let rest = self.scan.rest();
        let blanks = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        if rest[blanks..].starts_with(b"OFFSETS") {
            self.next_word();
            let kind = self.number_type()?;
            self.end_line();
            let offsets = self.numbers(kind, first, Keep::Ints, "OFFSETS")?.ints;
            match self.next_word().as_deref() {
                Some("CONNECTIVITY") => {}
                _ => return Err(self.error(Error::input("no section CONNECTIVITY after OFFSETS"))),
            }
            let kind = self.number_type()?;
            self.end_line();
            self.grid.connectivity = self.numbers(kind, second, Keep::Ints, "CONNECTIVITY")?.ints;
            self.grid.ends = offsets.into_iter().skip(1).collect();
            return Ok(());
        }
        let list = self.numbers(Number::I32, second, Keep::Ints, "cells")?.ints;
        let mut rest = list.as_slice();
        for cell in 0..first {
            let nodes = rest
                .split_first()
                .and_then(|(&n, after)| after.split_at_checked(usize::try_from(n).ok()?));
            let Some((nodes, after)) = nodes else {
                let error = Error::input(format!(
                    "cell {cell} (from 0) reaches beyond the list of cells"
                ));
                return Err(self.error(error.expected("the number of its points, then its points")));
            };
            self.grid.connectivity.extend_from_slice(nodes);
            self.grid.ends.push(self.grid.connectivity.len() as i64);
            rest = after;
        }
        if !rest.is_empty() {
            let error = Error::input(format!("{} numbers after the last cell", rest.len()));
            return Err(self.error(error.expected("a list of cells as long as section CELLS says")));
        }
        Ok(())
    }

    /// `SCALARS name type [n]` and its like.
    fn read_attribute(&mut self, word: &str) -> Result<()> {
        let n_components = match word {
            "SCALARS" | "COLOR_SCALARS" | "TEXTURE_COORDINATES" => 0, // told in the line
            "GLOBAL_IDS" | "PEDIGREE_IDS" => 1,
            "VECTORS" | "NORMALS" => 3,
            "TENSORS6" => 6,
            "TENSORS" => 9,
            _ => {
                let error = Error::input(format!("unknown section `{word}`"));
                return Err(self.error(error.expected("a section of a legacy VTK file")));
            }
        };
        let Some((of_cells, n)) = self.of else {
            let error = Error::input(format!("{word} before POINT_DATA and CELL_DATA"));
            return Err(self.error(error));
        };
        let name = self.word("the name of an array")?;
        let mut components = n_components;
        if matches!(word, "COLOR_SCALARS" | "TEXTURE_COORDINATES") {
            components = self.count("the number of components")?;
        }
        if word == "COLOR_SCALARS" {
            self.end_line();
            return self.skip(Number::U8, n, components);
        }
        let kind = self.number_type()?;
        if word == "SCALARS" {
            components = match self.scan.field() {
                Some(field) => usize::try_from(parse_int(field).map_err(|e| self.error(e))?)
                    .map_err(|_| self.error(Error::input("a negative number of components")))?,
                None => 1,
            };
        }
        self.end_line();
        if word == "SCALARS" {
            self.pass_table_line();
        }
        self.keep_array(of_cells, name, kind, (components, n))
    }

    /// The line `LOOKUP_TABLE name` that follows SCALARS, with exactly two words.
    fn pass_table_line(&mut self) {
        let mut ahead = self.scan.clone();
        let line = ahead.rest_of_line().to_ascii_uppercase();
        if line.starts_with(b"LOOKUP_TABLE") {
            self.scan = ahead;
        }
    }

    /// Several arrays, each with a head `name components tuples type`.
    fn read_field(&mut self) -> Result<()> {
        self.word("the name of a field")?;
        let n_arrays = self.count("the number of arrays")?;
        for _ in 0..n_arrays {
            let mut name = self.word("the name of an array")?;
            while name == "METADATA" {
                self.end_line();
                while !self.scan.rest_of_line().is_empty() {}
                name = self.word("the name of an array")?;
            }
            let components = self.count("the number of components")?;
            let n = self.count("the number of tuples")?;
            let word = self.word("a number type")?;
            if word.eq_ignore_ascii_case("string") {
                self.end_line();
                self.skip_strings(components, n)?;
                continue;
            }
            let kind = self.named_type(&word)?;
            self.end_line();
            match self.of {
                Some((of_cells, n_of)) if n_of == n => {
                    self.keep_array(of_cells, name, kind, (components, n))?;
                }
                _ => self.skip(kind, n, components)?,
            }
        }
        Ok(())
    }

    /// Keeps an array of whole numbers with one component, passes others.
    fn keep_array(
        &mut self,
        of_cells: bool,
        name: String,
        kind: Number,
        (components, n): (usize, usize),
    ) -> Result<()> {
        if components != 1 || !kind.is_whole() {
            return self.skip(kind, n, components);
        }
        let name = decoded(&name);
        let values = self
            .numbers(kind, n, Keep::Ints, &format!("array `{name}`"))?
            .ints;
        let arrays = if of_cells {
            &mut self.grid.cell_arrays
        } else {
            &mut self.grid.point_arrays
        };
        arrays.push(Array { name, values });
        Ok(())
    }

    fn skip(&mut self, kind: Number, n: usize, components: usize) -> Result<()> {
        let n = n
            .checked_mul(components)
            .ok_or_else(|| self.cut_off("an array"))?;
        self.numbers(kind, n, Keep::Nothing, "an array").map(drop)
    }

    /// A line each in text; behind a length of one to eight bytes in binary.
    fn skip_strings(&mut self, components: usize, n: usize) -> Result<()> {
        let n = n
            .checked_mul(components)
            .ok_or_else(|| self.cut_off("texts"))?;
        for _ in 0..n {
            if self.scan.rest().is_empty() {
                return Err(self.cut_off("texts"));
            }
            if !self.binary {
                self.scan.rest_of_line();
                continue;
            }
            let first = self.scan.rest()[0];
            let n_bytes = [8, 4, 2, 1][usize::from(first >> 6)];
            let Some(head) = self.scan.rest().get(..n_bytes) else {
                return Err(self.cut_off("texts"));
            };
            let length = super::number::word(head, true) & (u64::MAX >> (66 - 8 * n_bytes as u64));
            let end = usize::try_from(length)
                .ok()
                .and_then(|l| l.checked_add(n_bytes));
            match end.filter(|&end| end <= self.scan.rest().len()) {
                Some(end) => self.scan.skip_bytes(end),
                None => return Err(self.cut_off("texts")),
            }
        }
        Ok(())
    }

    /// `n` numbers from here on.
    fn numbers(&mut self, kind: Number, n: usize, keep: Keep, what: &str) -> Result<Kept> {
        let mut kept = Kept::default();
        if self.binary {
            let n_bytes = n
                .checked_mul(kind.size())
                .filter(|&n| n <= self.scan.rest().len());
            let Some(n_bytes) = n_bytes else {
                return Err(self.cut_off(what));
            };
            let bytes = &self.scan.rest()[..n_bytes];
            match keep {
                Keep::Ints => kept.ints = kind.ints(bytes, true),
                Keep::Floats => kept.floats = kind.floats(bytes, true),
                Keep::Nothing => {}
            }
            self.scan.skip_bytes(n_bytes);
            return Ok(kept);
        }
        for _ in 0..n {
            self.scan.next_record();
            let Some(field) = self.scan.field() else {
                return Err(self.cut_off(what));
            };
            let number = match keep {
                Keep::Ints => parse_int(field).map(|i| kept.ints.push(i)),
                Keep::Floats => parse_any_float(field).map(|x| kept.floats.push(x)),
                Keep::Nothing => Ok(()),
            };
            number.map_err(|error| self.error(error.expected(format!("{n} numbers of {what}"))))?;
        }
        Ok(kept)
    }

    fn cut_off(&self, what: &str) -> Error {
        let error = Error::input(format!("the file ends inside {what}"));
        if self.binary {
            error
                .expected(format!(
                    "more than the {} bytes of the file",
                    self.scan.position() + self.scan.rest().len()
                ))
                .advice("it may be cut off: write it again")
        } else {
            let error = error.at_line(self.scan.line());
            error.advice("it may be cut off: write it again")
        }
    }

    /// The next word as it is written.
    fn word(&mut self, what: &str) -> Result<String> {
        self.scan.next_record();
        match self.scan.field() {
            Some(word) => Ok(String::from_utf8_lossy(word).into_owned()),
            None => Err(self.error(Error::input("the file ends too early").expected(what))),
        }
    }

    fn count(&mut self, what: &str) -> Result<usize> {
        let word = self.word(what)?;
        word.parse().map_err(|_| {
            let error = Error::input(format!("not a count: `{}`", shown(word.as_bytes())));
            self.error(error.expected(what))
        })
    }

    fn number_type(&mut self) -> Result<Number> {
        let word = self.word("a number type")?;
        self.named_type(&word)
    }

    fn named_type(&self, word: &str) -> Result<Number> {
        Number::from_name(word).ok_or_else(|| {
            let error = Error::input(format!(
                "number type `{}` is not supported",
                shown(word.as_bytes())
            ));
            self.error(error.expected("char, short, int, long (or unsigned ones), float or double"))
        })
    }

    /// Passes the rest of the line; binary data starts behind it.
    fn end_line(&mut self) {
        self.scan.rest_of_line();
    }
}

/// The name with each `%41` as the character it stands for.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .filter(|_| first == b'%')
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    readable(&bytes)
}
