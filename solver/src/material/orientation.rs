//! Axes of material at a point: the same everywhere, or radial, tangential and axial about a line.
//!
//! Invariant: geometry only; knows no law.

use crate::element::geometry::{cross, dot};
use fem_io::case::{OrientationInput, OrientationSystem};

/// Unit vectors along axes 1, 2, 3, right-handed, in global components.
pub type Axes = [[f64; 3]; 3];

/// Where the axes of a material point.
#[derive(Clone, Debug, PartialEq)]
pub enum Orientation {
    /// The same axes at every point.
    Rectangular(Axes),
    /// At each point 1 is radial, 2 tangential, 3 along the axis; then turned.
    Cylindrical {
        /// A point on the axis, m.
        origin: [f64; 3],
        /// Unit vector along the axis.
        axis: [f64; 3],
        /// Components of the axes in radial, tangential and axial direction.
        turn: Axes,
    },
}

impl Orientation {
    /// The orientation of the case, whose `a` and `b` have no fault.
    pub fn new(input: &OrientationInput) -> Self {
        let turn = turn(input.rotation);
        match input.system {
            OrientationSystem::Rectangular => {
                let first = unit(input.a);
                let third = unit(cross(first, input.b));
                let axes = [first, cross(third, first), third];
                Orientation::Rectangular(product(&turn, &axes))
            }
            OrientationSystem::Cylindrical => Orientation::Cylindrical {
                origin: input.a,
                axis: unit([0, 1, 2].map(|i| input.b[i] - input.a[i])),
                turn,
            },
        }
    }

    /// The axes at a point. On the axis of a cylinder, where no direction is radial, axis 1 is any normal to it.
    pub fn axes_at(&self, x: [f64; 3]) -> Axes {
        match self {
            Orientation::Rectangular(axes) => *axes,
            Orientation::Cylindrical { origin, axis, turn } => {
                let arm = [0, 1, 2].map(|i| x[i] - origin[i]);
                let along = dot(arm, *axis);
                let mut radial = [0, 1, 2].map(|i| arm[i] - along * axis[i]);
                if dot(radial, radial) <= 1e-24 * dot(arm, arm) {
                    radial = any_normal(*axis);
                }
                let radial = unit(radial);
                product(turn, &[radial, cross(*axis, radial), *axis])
            }
        }
    }

    /// The axes if they are the same at every point.
    pub fn as_constant(&self) -> Option<&Axes> {
        match self {
            Orientation::Rectangular(axes) => Some(axes),
            Orientation::Cylindrical { .. } => None,
        }
    }
}

/// Axes turned about one of themselves, in their own components.
fn turn(rotation: Option<(usize, f64)>) -> Axes {
    let mut axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    if let Some((about, degrees)) = rotation {
        let (s, c) = degrees.to_radians().sin_cos();
        let (j, k) = ((about + 1) % 3, (about + 2) % 3);
        axes[j][j] = c;
        axes[j][k] = s;
        axes[k][j] = -s;
        axes[k][k] = c;
    }
    axes
}

fn product(turn: &Axes, axes: &Axes) -> Axes {
    turn.map(|row| [0, 1, 2].map(|j| (0..3).map(|k| row[k] * axes[k][j]).sum()))
}

fn unit(v: [f64; 3]) -> [f64; 3] {
    let length = dot(v, v).sqrt();
    v.map(|c| c / length)
}

/// A vector normal to `v`.
fn any_normal(v: [f64; 3]) -> [f64; 3] {
    let least = (0..3).min_by(|&i, &j| v[i].abs().total_cmp(&v[j].abs()));
    let mut other = [0.0; 3];
    other[least.unwrap_or(0)] = 1.0;
    cross(v, other)
}

#[cfg(test)]
mod tests {
    use super::{Axes, Orientation};
    use fem_io::case::{OrientationInput, OrientationSystem};

    fn orientation(
        system: OrientationSystem,
        a: [f64; 3],
        b: [f64; 3],
        rotation: Option<(usize, f64)>,
    ) -> Orientation {
        Orientation::new(&OrientationInput {
            name: String::new(),
            elements: vec![],
            system,
            a,
            b,
            rotation,
            place: Default::default(),
        })
    }

    fn assert_axes(found: Axes, expected: Axes) {
        for (a, b) in found.as_flattened().iter().zip(expected.as_flattened()) {
            assert!((a - b).abs() < 1e-15, "{found:?}");
        }
    }

    #[test]
    fn rectangular_axes_follow_a_and_b() {
        let (a, b) = ([0.0, 0.0, 2.0], [3.0, 0.0, 1.0]);
        let axes = orientation(OrientationSystem::Rectangular, a, b, None);
        let expected = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
        assert_axes(axes.axes_at([5.0, 1.0, 2.0]), expected);
        // A quarter turn about axis 3 takes 1 to 2 and 2 to the opposite of 1.
        let axes = orientation(OrientationSystem::Rectangular, a, b, Some((2, 90.0)));
        let expected = [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]];
        assert_axes(axes.axes_at([0.0; 3]), expected);
        assert!(axes.as_constant().is_some());
    }

    #[test]
    fn cylindrical_axes_are_radial_tangential_and_axial() {
        let (a, b) = ([1.0, 0.0, -3.0], [1.0, 0.0, 7.0]);
        let axes = orientation(OrientationSystem::Cylindrical, a, b, None);
        let z = [0.0, 0.0, 1.0];
        assert_axes(
            axes.axes_at([3.0, 0.0, 9.0]),
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], z],
        );
        assert_axes(
            axes.axes_at([1.0, 2.0, 0.0]),
            [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], z],
        );
        let on_axis = axes.axes_at([1.0, 0.0, 4.0]);
        assert!(on_axis.as_flattened().iter().all(|v| v.is_finite()));
        let turned = orientation(OrientationSystem::Cylindrical, a, b, Some((0, 90.0)));
        assert_axes(
            turned.axes_at([3.0, 0.0, 0.0]),
            [[1.0, 0.0, 0.0], z, [0.0, -1.0, 0.0]],
        );
        assert!(turned.as_constant().is_none());
    }
}
