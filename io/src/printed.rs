//! Tables of printed numbers, in the layout that CalculiX gives its `.dat` file, which people's scripts read.
//!
//! In go tables whose rows are complete and in order; out comes text.
//!
//! Invariant: lays out numbers; knows no mesh and computes nothing but the exponents it writes.

use std::fmt::Write;

/// One row: what it is of, and its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of the node or element.
    pub id: u64,
    /// Number of the integration point, from 1; 0 for a row of a whole node or element.
    pub point: u64,
    /// The numbers.
    pub values: Vec<f64>,
}

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub enum Table {
    /// Values at nodes, integration points or of elements.
    Rows {
        /// What is printed, such as "displacements (vx,vy,vz)".
        what: &'static str,
        /// Name of the set.
        set: String,
        /// Ascending by number and point.
        rows: Vec<Row>,
    },
    /// A sum over a set.
    Total {
        /// What is printed, such as "total volume".
        what: &'static str,
        /// Name of the set.
        set: String,
        /// The sum.
        values: Vec<f64>,
    },
    /// Forces on a face set as one section.
    Section {
        /// Name of the set.
        set: String,
        /// What the section carries.
        section: Section,
    },
}

/// What a section carries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Section {
    /// Total force of the stresses on the faces, with their outward normals, N.
    pub force: [f64; 3],
    /// Its moment about the origin, N m.
    pub moment: [f64; 3],
    /// Center of the faces, m.
    pub center: [f64; 3],
    /// Mean of the outward normals.
    pub normal: [f64; 3],
    /// Area, m2.
    pub area: f64,
}

impl Section {
    /// Moment about the center, N m.
    pub fn moment_about_center(&self) -> [f64; 3] {
        let ([x, y, z], [fx, fy, fz]) = (self.center, self.force);
        let of_force = [y * fz - z * fy, z * fx - x * fz, x * fy - y * fx];
        std::array::from_fn(|i| self.moment[i] - of_force[i])
    }
}

/// The file: the tables of each step at its end. `time` is that of the end of the step.
pub fn render(steps: &[(f64, Vec<Table>)]) -> String {
    let mut text = String::new();
    for (k, (time, tables)) in steps.iter().enumerate() {
        let step = k + 1;
        let _ = writeln!(text, "\n                        S T E P {step:7}\n\n");
        let _ = writeln!(text, "                                INCREMENT     1\n");
        for table in tables {
            write_table(&mut text, *time, table);
        }
    }
    text
}

fn write_table(text: &mut String, time: f64, table: &Table) {
    let at = |what: &str, set: &str| {
        let set = set.to_uppercase();
        format!("\n {what} for set {set} and time {}\n", at_time(time))
    };
    match table {
        Table::Rows { what, set, rows } => {
            let _ = writeln!(text, "{}", at(what, set));
            for row in rows {
                let point = match row.point {
                    0 => String::new(),
                    point => format!(" {point:3}"),
                };
                let _ = writeln!(text, "{:10}{point}{}", row.id, numbers(&row.values));
            }
        }
        Table::Total { what, set, values } => {
            let _ = writeln!(text, "{}", at(what, set));
            let _ = writeln!(text, "      {}", numbers(values));
        }
        Table::Section { set, section } => {
            let what = format!("statistics for surface set {}", set.to_uppercase());
            let _ = writeln!(text, "\n\n\n {what} and time {}\n", at_time(time));
            write_section(text, section);
        }
    }
}

fn write_section(text: &mut String, section: &Section) {
    let about_center = section.moment_about_center();
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let across = |v: [f64; 3]| {
        let along = dot(v, section.normal);
        let rest: [f64; 3] = std::array::from_fn(|i| v[i] - along * section.normal[i]);
        (along, dot(rest, rest).sqrt())
    };
    let ((normal, shear), (torque, bending)) = (across(section.force), across(about_center));
    let parts: [(&str, Vec<f64>); 4] = [
        (
            "total surface force (fx,fy,fz) and moment about the origin(mx,my,mz)",
            [section.force, section.moment].concat(),
        ),
        (
            "center of gravity and mean normal",
            [section.center, section.normal].concat(),
        ),
        (
            "moment about the center of gravity(mx,my,mz)",
            about_center.to_vec(),
        ),
        (
            "area, normal force (+ = tension), shear force (size), torque and bending moment (size)",
            vec![section.area, normal, shear, torque, bending],
        ),
    ];
    for (what, values) in parts {
        let _ = writeln!(text, "   {what}\n\n  {}\n", numbers(&values));
    }
}

/// Numbers as Fortran's format 1p,(1x,e13.6) writes them.
fn numbers(values: &[f64]) -> String {
    let one = |value: &f64| {
        if !value.is_finite() {
            return format!(" {value:>13}");
        }
        let (mantissa, exponent) = parts(*value, 6);
        format!(" {mantissa:>9}{}", exponent_text(exponent))
    };
    values.iter().map(one).collect()
}

/// A time as Fortran's e14.7 writes it, without the sign: 0.ddddddd times a power of ten.
fn at_time(time: f64) -> String {
    if time == 0.0 {
        return " 0.0000000E+00".to_owned();
    }
    let (mantissa, exponent) = parts(time, 6);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let sign = if time < 0.0 { "-" } else { " " };
    format!("{sign}0.{digits}{}", exponent_text(exponent + 1))
}

/// Mantissa with that many digits behind the point, and exponent.
fn parts(value: f64, digits: usize) -> (String, i32) {
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

/// Three digits leave no room for the letter.
fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    match exponent.abs() {
        size if size < 100 => format!("E{sign}{size:02}"),
        size => format!("{sign}{size:03}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Section, Table, render};

    #[test]
    fn the_layout_is_the_known_one() {
        let rows = |point: u64| Row {
            id: 7,
            point,
            values: vec![-2.534_328e-18, 0.0, 3.792_103e-5],
        };
        let table = |what, point| Table::Rows {
            what,
            set: "Nall".to_owned(),
            rows: vec![rows(point)],
        };
        let total = Table::Total {
            what: "total volume",
            set: "E".to_owned(),
            values: vec![1.5e-100],
        };
        let text = render(&[(
            1.0,
            vec![
                table("displacements (vx,vy,vz)", 0),
                table("stresses", 12),
                total,
            ],
        )]);
        let expected = "
                        S T E P       1


                                INCREMENT     1


 displacements (vx,vy,vz) for set NALL and time  0.1000000E+01

         7 -2.534328E-18  0.000000E+00  3.792103E-05

 stresses for set NALL and time  0.1000000E+01

         7  12 -2.534328E-18  0.000000E+00  3.792103E-05

 total volume for set E and time  0.1000000E+01

        1.500000-100
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_section_tells_normal_and_shear_force_torque_and_bending() {
        // A force of 2 along the normal z and 9 across it, whose line of action passes the origin: 6 below the center.
        let section = Section {
            force: [0.0, 9.0, 2.0],
            moment: [0.0; 3],
            center: [0.0, 0.0, 6.0],
            normal: [0.0, 0.0, 1.0],
            area: 4.0,
        };
        assert_eq!(section.moment_about_center(), [54.0, 0.0, 0.0]);
        let text = render(&[(
            12.5,
            vec![Table::Section {
                set: "s1".to_owned(),
                section,
            }],
        )]);
        assert!(text.contains(" statistics for surface set S1 and time  0.1250000E+02\n"));
        let last = text.lines().rfind(|line| !line.is_empty()).unwrap();
        let numbers: Vec<f64> = last
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        assert_eq!(numbers, [4.0, 2.0, 9.0, 0.0, 54.0]);
    }
}
