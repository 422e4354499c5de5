//! Numbers that depend on temperature: piecewise linear between given temperatures, constant outside.
//!
//! Invariant: at least one point; temperatures ascend.

/// `N` numbers as a function of temperature.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve<const N: usize> {
    first: [f64; N],
    /// Temperature and values of each point; empty if the values are constant.
    points: Vec<(f64, [f64; N])>,
}

impl<const N: usize> Curve<N> {
    /// The same numbers at every temperature.
    pub(super) fn constant(values: [f64; N]) -> Self {
        Curve {
            first: values,
            points: Vec::new(),
        }
    }

    /// Through points of ascending temperature; `None` if there are none.
    pub(super) fn through(points: Vec<(f64, [f64; N])>) -> Option<Self> {
        let first = points.first()?.1;
        let is_constant = points.iter().all(|point| point.1 == first);
        Some(Curve {
            first,
            points: if is_constant { Vec::new() } else { points },
        })
    }

    /// The numbers if they are the same at every temperature.
    pub(super) fn as_constant(&self) -> Option<[f64; N]> {
        self.points.is_empty().then_some(self.first)
    }

    /// The numbers at a temperature.
    pub(super) fn at(&self, temperature: f64) -> [f64; N] {
        let after = self.points.partition_point(|point| point.0 <= temperature);
        let Some(low) = after.checked_sub(1).map(|k| &self.points[k]) else {
            return self.first;
        };
        let Some(high) = self.points.get(after) else {
            return low.1;
        };
        let share = (temperature - low.0) / (high.0 - low.0);
        std::array::from_fn(|i| low.1[i] + share * (high.1[i] - low.1[i]))
    }
}

#[cfg(test)]
mod tests {
    use super::Curve;

    #[test]
    fn values_are_linear_between_points_and_constant_outside() {
        let curve = Curve::through(vec![(0.0, [1.0]), (10.0, [3.0]), (30.0, [-1.0])]).unwrap();
        for (temperature, value) in [
            (-5.0, 1.0),
            (0.0, 1.0),
            (5.0, 2.0),
            (10.0, 3.0),
            (20.0, 1.0),
            (30.0, -1.0),
            (99.0, -1.0),
        ] {
            assert_eq!(curve.at(temperature), [value], "{temperature}");
        }
        assert_eq!(curve.as_constant(), None);
        let flat = Curve::through(vec![(0.0, [2.0]), (9.0, [2.0])]).unwrap();
        assert_eq!((flat.as_constant(), flat.at(4.0)), (Some([2.0]), [2.0]));
        assert_eq!(Curve::<1>::through(vec![]), None);
    }
}
