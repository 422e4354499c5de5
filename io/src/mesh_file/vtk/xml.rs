//! XML files of VTK, `.vtu`: arrays in ASCII, base64 or appended (raw or base64), plain or compressed by zlib.
//!
//! Source: "VTK XML Formats" of the VTK documentation.
//!
//! Invariant: reads arrays; what cells and values mean is told in `grid.rs`.

use super::super::scan::shown;
use super::encoded::Encoding;
use super::grid::{Array, Grid};
use super::number::{Number, parse_any_float, parse_int};
use fem_mesh::{Error, Result};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

/// Reads a whole file. Errors come with the line, without the file.
pub(super) fn read(bytes: &[u8]) -> Result<Grid> {
    let document = Document::read(bytes)?;
    let mut grid = Grid::default();
    for piece in &document.pieces {
        document.add_piece(&mut grid, piece)?;
    }
    // Arrays that not every piece has divide nothing.
    let (n_points, n_cells) = (grid.points.len(), grid.types.len());
    grid.point_arrays.retain(|a| a.values.len() == n_points);
    grid.cell_arrays.retain(|a| a.values.len() == n_cells);
    Ok(grid)
}

/// What an array belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Points,
    Cells,
    PointData,
    CellData,
}

/// Where the data of an array stand.
#[derive(Clone, Copy, Debug)]
enum Data {
    /// Text between these bytes of the file.
    Ascii(usize, usize),
    Base64(usize, usize),
    /// From the start of the appended data.
    Appended(usize),
}

#[derive(Clone, Debug)]
struct Described {
    section: Section,
    name: String,
    kind: Option<Number>,
    n_components: usize,
    data: Data,
    /// Byte behind its tag.
    at: usize,
}

#[derive(Debug, Default)]
struct Piece {
    n_points: usize,
    n_cells: usize,
    at: usize,
    arrays: Vec<Described>,
}

struct Document<'a> {
    bytes: &'a [u8],
    encoding: Encoding,
    pieces: Vec<Piece>,
    /// The appended data, behind their mark `_`.
    appended: &'a [u8],
    appended_is_base64: bool,
}

impl<'a> Document<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut document = Document {
            bytes,
            encoding: Encoding {
                big_endian: false,
                head_size: 4,
                compressed: false,
                base64: true,
            },
            pieces: Vec::new(),
            appended: b"",
            appended_is_base64: false,
        };
        let mut xml = quick_xml::Reader::from_reader(bytes);
        let mut section = None;
        let mut has_root = false;
        loop {
            let event = xml.read_event().map_err(|error| {
                let at = usize::try_from(xml.error_position()).unwrap_or(0);
                Error::input(format!(
                    "not well-formed XML: {}",
                    shown(error.to_string().as_bytes())
                ))
                .at_line(line_of(bytes, at))
            })?;
            let at = usize::try_from(xml.buffer_position()).unwrap_or(bytes.len());
            let line = |what: Error| what.at_line(line_of(bytes, at));
            match event {
                Event::Eof => {
                    let what = if has_root {
                        "the file ends too early"
                    } else {
                        "no element VTKFile"
                    };
                    return Err(
                        line(Error::input(what)).advice("it may be cut off: write it again")
                    );
                }
                Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                    "VTKFile" => {
                        document.read_root(&tag).map_err(line)?;
                        has_root = true;
                    }
                    "Piece" => {
                        let piece = read_piece(&tag, at).map_err(line)?;
                        document.pieces.push(piece);
                    }
                    "Points" => section = Some(Section::Points),
                    "Cells" => section = Some(Section::Cells),
                    "PointData" => section = Some(Section::PointData),
                    "CellData" => section = Some(Section::CellData),
                    "FieldData" => section = None,
                    "DataArray" | "Array" => {
                        if let (Some(section), Some(piece)) = (section, document.pieces.last_mut())
                        {
                            let array = describe(&tag, section, at).map_err(line)?;
                            piece.arrays.push(array);
                        }
                    }
                    "AppendedData" => {
                        document.read_appended(&tag, at).map_err(line)?;
                        break;
                    }
                    _ => {}
                },
                Event::End(tag) => match tag.name().as_ref() {
                    "VTKFile" => break,
                    "Points" | "Cells" | "PointData" | "CellData" => section = None,
                    "DataArray" => document.end_array(at),
                    _ => {}
                },
                _ => {}
            }
        }
        if !has_root {
            return Err(Error::input("no element VTKFile").at_line(1));
        }
        Ok(document)
    }

    fn read_root(&mut self, tag: &BytesStart) -> Result<()> {
        let kind = attribute(tag, "type")?.unwrap_or_default();
        if kind != "UnstructuredGrid" {
            let error = Error::input(format!(
                "not an unstructured grid: VTKFile of type `{}`",
                shown(kind.as_bytes())
            ));
            return Err(error
                .expected("type `UnstructuredGrid`")
                .advice("in ParaView: Save Data as .vtu (merge blocks or parts first)"));
        }
        self.encoding.big_endian = attribute(tag, "byte_order")?.as_deref() == Some("BigEndian");
        if attribute(tag, "header_type")?.as_deref() == Some("UInt64") {
            self.encoding.head_size = 8;
        }
        match attribute(tag, "compressor")?.as_deref() {
            None | Some("") => {}
            Some("vtkZLibDataCompressor") => self.encoding.compressed = true,
            Some(other) => {
                let error = Error::input(format!(
                    "compressor `{}` is not supported",
                    shown(other.as_bytes())
                ));
                return Err(error
                    .expected("`vtkZLibDataCompressor` or none")
                    .advice("write the file with zlib or without compression"));
            }
        }
        Ok(())
    }

    fn read_appended(&mut self, tag: &BytesStart, at: usize) -> Result<()> {
        self.appended_is_base64 = match attribute(tag, "encoding")?.as_deref() {
            Some("raw") => false,
            Some("base64") => true,
            other => {
                let other = shown(other.unwrap_or_default().as_bytes());
                let error = Error::input(format!("appended data of encoding `{other}`"));
                return Err(error.expected("`raw` or `base64`"));
            }
        };
        let rest = &self.bytes[at.min(self.bytes.len())..];
        let mark = rest.iter().position(|b| !b.is_ascii_whitespace());
        match mark.filter(|&k| rest[k] == b'_') {
            Some(mark) => self.appended = &rest[mark + 1..],
            None => return Err(Error::input("appended data do not start with `_`")),
        }
        if self.appended_is_base64 {
            let end = self.appended.iter().position(|&b| b == b'<');
            self.appended = &self.appended[..end.unwrap_or(self.appended.len())];
        }
        Ok(())
    }

    /// The end tag of an array ends at byte `at`: the text of the array ends before it.
    fn end_array(&mut self, at: usize) {
        let Some(array) = self.pieces.last_mut().and_then(|p| p.arrays.last_mut()) else {
            return;
        };
        let before = self.bytes[..at.min(self.bytes.len())]
            .iter()
            .rposition(|&b| b == b'<');
        let start = match &mut array.data {
            Data::Ascii(start, end) | Data::Base64(start, end) => {
                *end = before.unwrap_or(*start).max(*start);
                *start
            }
            Data::Appended(_) => return,
        };
        // What stands between nested tags, as the ranges of newer writers, is not data; data come first.
        let end = before.unwrap_or(start).max(start);
        let tag = self.bytes[start..end].iter().position(|&b| b == b'<');
        if let (Some(tag), Data::Ascii(_, end) | Data::Base64(_, end)) = (tag, &mut array.data) {
            *end = start + tag;
        }
    }

    fn add_piece(&self, grid: &mut Grid, piece: &Piece) -> Result<()> {
        let at_piece = |error: Error| error.at_line(line_of(self.bytes, piece.at));
        if piece.n_points == 0 && piece.n_cells == 0 {
            return Ok(());
        }
        let find = |section: Section, name: Option<&str>| {
            let mut arrays = piece.arrays.iter().filter(|a| a.section == section);
            let found = arrays.find(|a| name.is_none_or(|name| a.name == name));
            found.ok_or_else(|| {
                let name = name.unwrap_or("of points");
                at_piece(Error::input(format!("a piece has no array `{name}`")))
            })
        };
        let first_point = grid.points.len() as i64;
        let first_entry = grid.connectivity.len() as i64;
        let points = find(Section::Points, None)?;
        let found = self.floats(points, piece.n_points, 3)?;
        grid.points
            .extend(found.chunks_exact(3).map(|p| [p[0], p[1], p[2]]));
        let connectivity = self.ints(find(Section::Cells, Some("connectivity"))?, None)?;
        let n_points = piece.n_points as i64;
        if let Some(point) = connectivity.iter().find(|&&p| p < 0 || p >= n_points) {
            let error = Error::input(format!("the connectivity names point {point}"));
            return Err(at_piece(
                error.expected(format!("a point from 0, of {n_points}")),
            ));
        }
        let ends = self.ints(find(Section::Cells, Some("offsets"))?, Some(piece.n_cells))?;
        let types = self.ints(find(Section::Cells, Some("types"))?, Some(piece.n_cells))?;
        grid.connectivity
            .extend(connectivity.iter().map(|p| p + first_point));
        grid.ends
            .extend(ends.iter().map(|e| e.saturating_add(first_entry)));
        grid.types.extend(types);
        for array in &piece.arrays {
            let (arrays, n) = match array.section {
                Section::PointData => (&mut grid.point_arrays, piece.n_points),
                Section::CellData => (&mut grid.cell_arrays, piece.n_cells),
                _ => continue,
            };
            if array.n_components == 1 && array.kind.is_some_and(Number::is_whole) {
                let values = self.ints(array, Some(n))?;
                match arrays.iter_mut().find(|a| a.name == array.name) {
                    Some(known) => known.values.extend(values),
                    None => arrays.push(Array {
                        name: array.name.clone(),
                        values,
                    }),
                }
            }
        }
        Ok(())
    }

    fn ints(&self, array: &Described, n: Option<usize>) -> Result<Vec<i64>> {
        let values = match array.data {
            Data::Ascii(start, end) => self.parse(array, (start, end), parse_int)?,
            _ => {
                let bytes = self.decode(array)?;
                self.kind(array)?.ints(&bytes, self.encoding.big_endian)
            }
        };
        self.check_count(array, values.len(), n)?;
        Ok(values)
    }

    fn floats(&self, array: &Described, n: usize, n_components: usize) -> Result<Vec<f64>> {
        let values = match array.data {
            Data::Ascii(start, end) => self.parse(array, (start, end), parse_any_float)?,
            _ => {
                let bytes = self.decode(array)?;
                self.kind(array)?.floats(&bytes, self.encoding.big_endian)
            }
        };
        self.check_count(array, values.len(), n.checked_mul(n_components))?;
        Ok(values)
    }

    fn parse<T>(
        &self,
        array: &Described,
        (start, end): (usize, usize),
        parse: impl Fn(&[u8]) -> Result<T>,
    ) -> Result<Vec<T>> {
        let fields = self.bytes[start..end].split(u8::is_ascii_whitespace);
        let numbers: Result<Vec<T>> = fields.filter(|f| !f.is_empty()).map(parse).collect();
        numbers.map_err(|error| self.in_array(array, error))
    }

    fn kind(&self, array: &Described) -> Result<Number> {
        array
            .kind
            .ok_or_else(|| self.in_array(array, Error::input("its number type is not supported")))
    }

    fn decode(&self, array: &Described) -> Result<Vec<u8>> {
        let mut encoding = self.encoding;
        let source = match array.data {
            Data::Base64(start, end) => &self.bytes[start..end],
            Data::Appended(offset) => {
                encoding.base64 = self.appended_is_base64;
                self.appended.get(offset..).ok_or_else(|| {
                    let error = Error::input(format!(
                        "its data at byte {offset} of the appended data are missing"
                    ));
                    self.in_array(
                        array,
                        error.advice("the file may be cut off: write it again"),
                    )
                })?
            }
            Data::Ascii(..) => b"",
        };
        encoding
            .decode(source)
            .map_err(|error| self.in_array(array, error))
    }

    fn in_array(&self, array: &Described, error: Error) -> Error {
        in_array(array, line_of(self.bytes, array.at), error)
    }

    fn check_count(&self, array: &Described, found: usize, expected: Option<usize>) -> Result<()> {
        match expected {
            Some(expected) if expected != found => Err(self.in_array(
                array,
                Error::input(format!("{found} numbers")).expected(format!("{expected} numbers")),
            )),
            _ => Ok(()),
        }
    }
}

/// The error as one of this array.
fn in_array(array: &Described, line: usize, error: Error) -> Error {
    Error::input(format!("array `{}`: {error}", shown(array.name.as_bytes()))).at_line(line)
}

fn read_piece(tag: &BytesStart, at: usize) -> Result<Piece> {
    Ok(Piece {
        n_points: count(tag, "NumberOfPoints")?,
        n_cells: count(tag, "NumberOfCells")?,
        at,
        arrays: Vec::new(),
    })
}

fn describe(tag: &BytesStart, section: Section, at: usize) -> Result<Described> {
    let name = attribute(tag, "Name")?.unwrap_or_default();
    let data = match attribute(tag, "format")?.as_deref() {
        None | Some("ascii") => Data::Ascii(at, at),
        Some("binary") => Data::Base64(at, at),
        Some("appended") => Data::Appended(count(tag, "offset")?),
        Some(other) => {
            let error = Error::input(format!(
                "array `{name}` has format `{}`",
                shown(other.as_bytes())
            ));
            return Err(error.expected("`ascii`, `binary` or `appended`"));
        }
    };
    Ok(Described {
        section,
        kind: Number::from_name(&attribute(tag, "type")?.unwrap_or_default()),
        n_components: match attribute(tag, "NumberOfComponents")? {
            None => 1,
            Some(_) => count(tag, "NumberOfComponents")?,
        },
        name,
        data,
        at,
    })
}

fn attribute(tag: &BytesStart, name: &str) -> Result<Option<String>> {
    let bad = |error: String| Error::input(format!("element {}: {error}", tag.name().as_ref()));
    let found = tag
        .try_get_attribute(name)
        .map_err(|e| bad(e.to_string()))?;
    found
        .map(|a| {
            a.normalized_value(XmlVersion::Implicit1_0)
                .map(|v| v.into_owned())
        })
        .transpose()
        .map_err(|e| bad(e.to_string()))
}

fn count(tag: &BytesStart, name: &str) -> Result<usize> {
    let text = attribute(tag, name)?.unwrap_or_default();
    text.trim().parse().map_err(|_| {
        Error::input(format!("{name}=\"{}\"", shown(text.as_bytes())))
            .expected("a whole number from 0")
    })
}

/// Line of a byte, counted from 1.
fn line_of(bytes: &[u8], at: usize) -> usize {
    1 + bytes[..at.min(bytes.len())]
        .iter()
        .filter(|&&b| b == b'\n')
        .count()
}
