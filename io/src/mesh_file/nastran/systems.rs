//! Coordinate systems of Nastran (CORD2R, CORD2C, CORD2S): from the coordinates of a GRID to basic ones.
//!
//! Source: Nastran Quick Reference Guide, entries CORD2R, CORD2C and CORD2S; angles are in degrees.
//!
//! Invariant: geometry only; which system a node uses is known by the reader.

use super::super::draft::Place;
use fem_mesh::{Error, Result};
use std::collections::BTreeMap;

type Point = [f64; 3];

/// How three numbers name a point in a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rectangular,
    Cylindrical,
    Spherical,
}

/// A system as its entry gives it: origin, a point on the z axis and one in the xz plane, all in system `reference`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition {
    pub(super) kind: Kind,
    pub(super) reference: u64,
    pub(super) points: [Point; 3],
    pub(super) place: Place,
}

/// Axes x, y, z and origin in basic coordinates.
#[derive(Clone, Copy, Debug)]
struct Frame {
    kind: Kind,
    origin: Point,
    axes: [Point; 3],
}

/// The systems of a file by number; 0 is the basic one.
#[derive(Debug, Default)]
pub(super) struct Systems {
    definitions: BTreeMap<u64, Definition>,
    frames: BTreeMap<u64, Frame>,
}

impl Systems {
    pub(super) fn define(&mut self, id: u64, definition: Definition) {
        self.definitions.insert(id, definition);
    }

    /// Basic coordinates of `point` in system `id`.
    ///
    /// # Errors
    /// A system that is not defined, refers to itself or has no axes, with the place of its entry where there is one.
    pub(super) fn in_basic(
        &mut self,
        id: u64,
        point: Point,
    ) -> std::result::Result<Point, (Option<Place>, Error)> {
        if id == 0 {
            return Ok(point);
        }
        if !self.frames.contains_key(&id) {
            self.resolve(id)?;
        }
        let frame = &self.frames[&id];
        Ok(frame.place(point))
    }

    /// Resolves the system with all those it rests on, the lowest first.
    fn resolve(&mut self, id: u64) -> std::result::Result<(), (Option<Place>, Error)> {
        let mut chain: Vec<u64> = Vec::new();
        let mut next = id;
        while next != 0 && !self.frames.contains_key(&next) {
            let Some(definition) = self.definitions.get(&next) else {
                let from = chain.last().and_then(|k| self.definitions.get(k));
                let error = Error::input(format!("coordinate system {next} is not defined"))
                    .expected("an entry CORD2R, CORD2C or CORD2S of that number");
                return Err((from.map(|d| d.place), error));
            };
            if chain.contains(&next) {
                let error = Error::input(format!("coordinate system {next} rests on itself"));
                return Err((Some(definition.place), error));
            }
            chain.push(next);
            next = definition.reference;
        }
        for id in chain.into_iter().rev() {
            let definition = self.definitions[&id];
            let mut points = definition.points;
            for point in &mut points {
                if let Some(frame) = self.frames.get(&definition.reference) {
                    *point = frame.place(*point);
                }
            }
            let frame = Frame::new(definition.kind, points)
                .map_err(|error| (Some(definition.place), error))?;
            self.frames.insert(id, frame);
        }
        Ok(())
    }
}

impl Frame {
    fn new(kind: Kind, [origin, on_z, in_xz]: [Point; 3]) -> Result<Frame> {
        let flat = || {
            Error::input("the three points of a coordinate system lie on a line")
                .expected("an origin, a point on the z axis and one beside it")
        };
        let z = unit(minus(on_z, origin)).ok_or_else(flat)?;
        let y = unit(cross(z, minus(in_xz, origin))).ok_or_else(flat)?;
        Ok(Frame {
            kind,
            origin,
            axes: [cross(y, z), y, z],
        })
    }

    fn place(&self, [a, b, c]: Point) -> Point {
        let local = match self.kind {
            Kind::Rectangular => [a, b, c],
            Kind::Cylindrical => {
                let angle = b.to_radians();
                [a * angle.cos(), a * angle.sin(), c]
            }
            Kind::Spherical => {
                let (from_z, around) = (b.to_radians(), c.to_radians());
                [
                    a * from_z.sin() * around.cos(),
                    a * from_z.sin() * around.sin(),
                    a * from_z.cos(),
                ]
            }
        };
        std::array::from_fn(|k| {
            self.origin[k]
                + (0..3)
                    .map(|axis| local[axis] * self.axes[axis][k])
                    .sum::<f64>()
        })
    }
}

fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn cross(a: Point, b: Point) -> Point {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

fn unit(a: Point) -> Option<Point> {
    let length = a.iter().map(|x| x * x).sum::<f64>().sqrt();
    (length > 0.0 && length.is_finite()).then(|| a.map(|x| x / length))
}

#[cfg(test)]
mod tests {
    use super::{Definition, Kind, Systems};

    fn define(systems: &mut Systems, id: u64, kind: Kind, reference: u64, points: [[f64; 3]; 3]) {
        let place = Default::default();
        let definition = Definition {
            kind,
            reference,
            points,
            place,
        };
        systems.define(id, definition);
    }

    #[test]
    fn systems_rest_on_one_another() {
        let mut systems = Systems::default();
        // z along the basic x, x along the basic y: so y along the basic z.
        let turned = [[1.0, 2.0, 3.0], [2.0, 2.0, 3.0], [1.0, 3.0, 3.0]];
        define(&mut systems, 5, Kind::Rectangular, 0, turned);
        let own = [[0.0; 3], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]];
        define(&mut systems, 9, Kind::Cylindrical, 5, own);
        define(&mut systems, 7, Kind::Spherical, 0, own);
        let near = |found: [f64; 3], expected: [f64; 3]| {
            assert!(
                (0..3).all(|k| (found[k] - expected[k]).abs() < 1e-14),
                "{found:?}"
            );
        };
        near(
            systems.in_basic(9, [2.0, 90.0, 4.0]).unwrap(),
            [5.0, 2.0, 5.0],
        );
        near(
            systems.in_basic(7, [2.0, 90.0, 90.0]).unwrap(),
            [0.0, 2.0, 0.0],
        );
        near(
            systems.in_basic(0, [1.0, 2.0, 3.0]).unwrap(),
            [1.0, 2.0, 3.0],
        );
    }

    #[test]
    fn broken_systems_are_refused() {
        let mut systems = Systems::default();
        let own = [[0.0; 3], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]];
        define(&mut systems, 1, Kind::Rectangular, 2, own);
        define(&mut systems, 2, Kind::Rectangular, 1, own);
        define(&mut systems, 3, Kind::Rectangular, 0, [[0.0; 3]; 3]);
        let mut message = |id| systems.in_basic(id, [0.0; 3]).unwrap_err().1.to_string();
        assert!(message(1).contains("rests on itself"));
        assert!(message(3).contains("lie on a line"));
        assert!(message(4).contains("4 is not defined"));
    }
}
