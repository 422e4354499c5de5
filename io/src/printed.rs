//! The `.dat` file: tables of numbers in CalculiX's layout, which its users have tools for.
//!
//! Invariant: lays out what it is given; looks nothing up and computes nothing but sums.

use crate::atomic::write_text_atomically;
use crate::case::{Frame, PrintQuantity};
use fem_mesh::Result;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The text of a `.dat` file as it grows.
#[derive(Clone, Debug, Default)]
pub struct Printed {
    text: String,
    step: Option<usize>,
}

/// One row of a table: what it is of, and its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedRow {
    /// Number of the node or element in the input.
    pub id: u64,
    /// Integration point, from 1; 0 for a row of a node or of a whole element.
    pub point: u64,
    /// The numbers.
    pub values: Vec<f64>,
}

/// Forces on a section.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Section {
    /// Force, N: the integral of the stress times the normal.
    pub force: [f64; 3],
    /// Moment about the origin, N m.
    pub moment: [f64; 3],
    /// Area, m2.
    pub area: f64,
    /// Center of gravity, m.
    pub center: [f64; 3],
    /// Mean normal, of unit length.
    pub normal: [f64; 3],
}

impl Section {
    /// Moment about the center of gravity, N m.
    pub fn moment_about_center(&self) -> [f64; 3] {
        let moved = cross(self.center, self.force);
        [0, 1, 2].map(|i| self.moment[i] - moved[i])
    }

    /// Normal force (tension is positive) and size of the shear force, N; torque and size of the bending moment, N m.
    pub fn resultants(&self) -> [f64; 4] {
        let [along, across] = parts(self.force, self.normal);
        let [torque, bending] = parts(self.moment_about_center(), self.normal);
        [along, across, torque, bending]
    }
}

/// Part of a vector along a unit vector, and size of the part across.
fn parts(v: [f64; 3], n: [f64; 3]) -> [f64; 2] {
    let along = v[0] * n[0] + v[1] * n[1] + v[2] * n[2];
    let rest = [0, 1, 2].map(|i| v[i] - along * n[i]);
    let across = rest.iter().map(|c| c * c).sum::<f64>().sqrt();
    [along, across]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

impl PrintedRow {
    /// The columns before the numbers.
    fn keys(&self) -> String {
        match self.point {
            0 => format!("{:10}", self.id),
            point => format!("{:10}{point:4}", self.id),
        }
    }
}

impl Printed {
    /// Begins a frame; `time` is that of its end.
    pub fn start_frame(&mut self, frame: &Frame) {
        if self.step != Some(frame.step) {
            self.step = Some(frame.step);
            let _ = write!(
                self.text,
                "\n                        S T E P{:8}\n\n",
                frame.step + 1
            );
        }
        let _ = write!(
            self.text,
            "\n                                INCREMENT{:6}\n\n",
            frame.increment
        );
    }

    /// A table of single values, rows ascending.
    pub fn add_table(
        &mut self,
        quantity: PrintQuantity,
        set: &str,
        time: f64,
        rows: &[PrintedRow],
    ) {
        self.add_heading(heading(quantity), set, time);
        for row in rows {
            let _ = writeln!(self.text, "{}{}", row.keys(), numbers(&row.values));
        }
    }

    /// The sum over a set.
    pub fn add_total(
        &mut self,
        quantity: PrintQuantity,
        set: &str,
        time: f64,
        rows: &[PrintedRow],
    ) {
        let n = rows.first().map_or(0, |row| row.values.len());
        let mut sum = vec![0.0; n];
        for row in rows {
            sum.iter_mut().zip(&row.values).for_each(|(s, v)| *s += v);
        }
        let title = match quantity {
            PrintQuantity::Rf => "total force (fx,fy,fz)",
            PrintQuantity::Else => "total internal energy",
            _ => "total volume",
        };
        self.add_heading(title, set, time);
        let _ = writeln!(self.text, "      {}", numbers(&sum));
    }

    fn add_heading(&mut self, title: &str, set: &str, time: f64) {
        let _ = write!(
            self.text,
            "\n {title} for set {set} and time {}\n\n",
            fortran(time)
        );
    }

    /// Forces and moments on a section.
    pub fn add_section(&mut self, set: &str, time: f64, section: &Section) {
        let [along, across, torque, bending] = section.resultants();
        let first = [section.force, section.moment].concat();
        let second = [section.center, section.normal].concat();
        let last = [section.area, along, across, torque, bending];
        let blocks: [(&str, &[f64]); 4] = [
            (
                "total surface force (fx,fy,fz) and moment about the origin(mx,my,mz)",
                &first,
            ),
            ("center of gravity and mean normal", &second),
            (
                "moment about the center of gravity(mx,my,mz)",
                &section.moment_about_center(),
            ),
            (
                "area, normal force (+ = tension), shear force (size), torque and bending moment (size)",
                &last,
            ),
        ];
        let _ = write!(
            self.text,
            "\n\n\n statistics for surface set {set} and time {}\n",
            fortran(time)
        );
        for (title, values) in blocks {
            let _ = write!(self.text, "\n   {title}\n\n  {}\n", numbers(values));
        }
    }

    /// Whether nothing has been printed.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Writes `<name of the case>.dat` into the directory; returns its path. Not collective: one rank calls it.
    ///
    /// # Errors
    /// Machine: it cannot be written, or the disk is full.
    pub fn write(&self, directory: &Path, case: &Path) -> Result<PathBuf> {
        let name = Path::new(case.file_name().unwrap_or_default()).with_extension("dat");
        let path = directory.join(name);
        write_text_atomically(&path, &self.text)?;
        Ok(path)
    }
}

/// CalculiX's words for a table.
const fn heading(quantity: PrintQuantity) -> &'static str {
    match quantity {
        PrintQuantity::U => "displacements (vx,vy,vz)",
        PrintQuantity::Rf => "forces (fx,fy,fz)",
        PrintQuantity::Nt => "temperatures",
        PrintQuantity::S => "stresses (elem, integ.pnt.,sxx,syy,szz,sxy,sxz,syz)",
        PrintQuantity::E => "strains (elem, integ.pnt.,exx,eyy,ezz,exy,exz,eyz)",
        PrintQuantity::Me => "mechanical strains (elem, integ.pnt.,exx,eyy,ezz,exy,exz,eyz)",
        PrintQuantity::Coord => "global coordinates (elem, integ.pnt.,x,y,z)",
        PrintQuantity::Ener => "internal energy density (elem, integ.pnt.,eneint)",
        PrintQuantity::Else => "internal energy (element, energy)",
        PrintQuantity::Evol => "volume (element, volume)",
        PrintQuantity::Sof | PrintQuantity::Som | PrintQuantity::Soarea => "statistics",
    }
}

/// Each number in 14 columns.
fn numbers(values: &[f64]) -> String {
    values
        .iter()
        .map(|&v| format!(" {:>13}", exponential(v)))
        .collect()
}

/// One digit, point, six digits, `E`, sign and two digits of the exponent; with three digits of it one less before.
fn exponential(value: f64) -> String {
    let digits = |n: usize| {
        let text = format!("{value:.n$E}");
        match text.split_once('E') {
            Some((mantissa, exponent)) => {
                let (sign, size) = match exponent.strip_prefix('-') {
                    Some(size) => ('-', size),
                    None => ('+', exponent),
                };
                format!("{mantissa}E{sign}{size:0>2}")
            }
            None => text,
        }
    };
    let text = digits(6);
    if text.trim_start_matches('-').len() > 12 {
        digits(5)
    } else {
        text
    }
}

/// As Fortran's e14.7: a point before seven digits.
fn fortran(value: f64) -> String {
    let text = format!("{:.6E}", value.abs());
    let Some((mantissa, exponent)) = text.split_once('E') else {
        return text;
    };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent = exponent.parse::<i32>().unwrap_or(0) + i32::from(value != 0.0);
    let sign = if value < 0.0 { "-" } else { " " };
    let of_exponent = if exponent < 0 { '-' } else { '+' };
    format!("{sign}0.{digits}E{of_exponent}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::{Printed, PrintedRow, Section, exponential, fortran};
    use crate::case::{Frame, PrintQuantity};

    #[test]
    fn numbers_are_written_as_fortran_does() {
        for (value, text) in [
            (0.0, "0.000000E+00"),
            (-1.723861e-4, "-1.723861E-04"),
            (8.99964, "8.999640E+00"),
            (1.5e-120, "1.50000E-120"),
            (-2.0e300, "-2.00000E+300"),
        ] {
            assert_eq!(exponential(value), text);
        }
        for (value, text) in [
            (1.0, " 0.1000000E+01"),
            (0.0, " 0.0000000E+00"),
            (0.25, " 0.2500000E+00"),
            (1e-3, " 0.1000000E-02"),
        ] {
            assert_eq!(fortran(value), text);
        }
    }

    #[test]
    fn tables_stand_as_calculix_writes_them() {
        let frame = Frame {
            step: 0,
            name: "step 1".to_owned(),
            increment: 1,
            n_increments: 1,
            time: 1.0,
        };
        let mut printed = Printed::default();
        printed.start_frame(&frame);
        let row = |id, point, values: &[f64]| PrintedRow {
            id,
            point,
            values: values.to_vec(),
        };
        let forces = [row(1, 0, &[1.0, 0.0, -2.0]), row(12, 0, &[0.5, 0.0, 0.0])];
        printed.add_table(PrintQuantity::Rf, "FIX", 1.0, &forces);
        printed.add_total(PrintQuantity::Rf, "FIX", 1.0, &forces);
        printed.add_table(PrintQuantity::Ener, "E", 1.0, &[row(7, 2, &[3.0])]);
        let expected = "\n                        S T E P       1\n\n\n                                INCREMENT     1\n\n\n \
            forces (fx,fy,fz) for set FIX and time  0.1000000E+01\n\n         1  1.000000E+00  0.000000E+00 -2.000000E+00\n        \
            12  5.000000E-01  0.000000E+00  0.000000E+00\n\n total force (fx,fy,fz) for set FIX and time  0.1000000E+01\n\n        \
            1.500000E+00  0.000000E+00 -2.000000E+00\n\n internal energy density (elem, integ.pnt.,eneint) for set E and time  \
            0.1000000E+01\n\n         7   2  3.000000E+00\n";
        assert_eq!(printed.text, expected);
    }

    #[test]
    fn resultants_are_parts_along_and_across_the_normal() {
        let section = Section {
            force: [0.0, 9.0, 2.0],
            moment: [-72.0, 1.0, 4.5],
            area: 1.0,
            center: [0.5, 0.5, 6.0],
            normal: [0.0, 0.0, 1.0],
        };
        let moment = section.moment_about_center();
        assert_eq!(
            moment,
            [-72.0 - (0.5 * 2.0 - 6.0 * 9.0), 1.0 + 0.5 * 2.0, 0.0]
        );
        let bending = (19.0f64 * 19.0 + 4.0).sqrt();
        assert_eq!(section.resultants(), [2.0, 9.0, 0.0, bending]);
    }
}
