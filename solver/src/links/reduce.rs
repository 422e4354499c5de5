//! From equations in any order to rows: Gauss-Jordan elimination on sparse rows.
//!
//! Each equation is first freed of degrees of freedom that earlier ones made dependent, so chains and cycles resolve
//! themselves; it is then solved for one of its own, which is put into the rows before. Prescribed degrees of freedom are
//! never made dependent. What has nothing left to solve for is redundant, or contradicts the others.
//!
//! Invariant: numbers only; the same input gives the same bits on every rank.

use super::{Equation, Row};
use std::collections::{BTreeMap, HashMap};

/// Coefficients below this share of what they were summed from are rounding.
const CANCELED: f64 = 1e-10;
/// Least coefficient to solve for, relative to the largest that went into the equation.
const LEAST_PIVOT: f64 = 1e-7;
/// The first term is solved for if its coefficient is at least this share of the largest.
const PREFERRED: f64 = 1e-3;
/// Largest relative contradiction of a redundant equation.
const CONSISTENT: f64 = 1e-8;

/// What [`reduce`] found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reduced {
    /// By dependent degree of freedom.
    pub rows: BTreeMap<u64, Row>,
    /// Indices of equations that follow from others and from prescribed values.
    pub redundant: Vec<usize>,
    /// The first equation that contradicts others or prescribed values, and by how much.
    pub contradiction: Option<(usize, f64)>,
}

/// Sums of coefficients, with the largest of their parts.
type Sums = BTreeMap<u64, (f64, f64)>;

/// Solves `equations` with values `prescribed` by degree of freedom.
pub fn reduce(equations: &[Equation], prescribed: &BTreeMap<u64, f64>) -> Reduced {
    let mut reduced = Reduced::default();
    // Rows that name an independent degree of freedom; some no longer do.
    let mut used_by: HashMap<u64, Vec<u64>> = HashMap::new();
    for (index, equation) in equations.iter().enumerate() {
        let (sums, constant) = substitute(equation, &reduced.rows);
        let first = equation.terms.first().map(|&(dof, _)| dof);
        let Some(pivot) = choose_pivot(&sums, first, prescribed) else {
            let error = contradiction(&sums, constant, equation, prescribed);
            if error > CONSISTENT {
                reduced.contradiction.get_or_insert((index, error));
            }
            reduced.redundant.push(index);
            continue;
        };
        let at_pivot = sums[&pivot].0;
        let terms: Vec<(u64, f64)> = (sums.iter())
            .filter(|&(&dof, &(sum, part))| dof != pivot && sum.abs() > CANCELED * part)
            .map(|(&dof, &(sum, _))| (dof, -sum / at_pivot))
            .collect();
        let row = Row {
            terms,
            constant: constant / at_pivot,
        };
        for dependent in used_by.remove(&pivot).unwrap_or_default() {
            if let Some(earlier) = reduced.rows.get_mut(&dependent) {
                put_in(earlier, pivot, &row);
                for (dof, _) in &row.terms {
                    used_by.entry(*dof).or_default().push(dependent);
                }
            }
        }
        for (dof, _) in &row.terms {
            used_by.entry(*dof).or_default().push(pivot);
        }
        reduced.rows.insert(pivot, row);
    }
    reduced
}

/// The coefficients and the right-hand side of an equation without dependent degrees of freedom.
fn substitute(equation: &Equation, rows: &BTreeMap<u64, Row>) -> (Sums, f64) {
    let mut sums = Sums::new();
    let mut constant = equation.constant;
    let mut add = |dof: u64, value: f64| {
        let (sum, part) = sums.entry(dof).or_insert((0.0, 0.0));
        *sum += value;
        *part = part.max(value.abs());
    };
    for &(dof, coefficient) in &equation.terms {
        match rows.get(&dof) {
            None => add(dof, coefficient),
            Some(row) => {
                constant -= coefficient * row.constant;
                for &(independent, factor) in &row.terms {
                    add(independent, coefficient * factor);
                }
            }
        }
    }
    (sums, constant)
}

/// The degree of freedom to solve for: `first` where its coefficient is large enough, else that with the largest.
fn choose_pivot(sums: &Sums, first: Option<u64>, prescribed: &BTreeMap<u64, f64>) -> Option<u64> {
    let largest_part = sums.values().map(|&(_, part)| part).fold(0.0, f64::max);
    let mut best: Option<(u64, f64)> = None;
    for (&dof, &(sum, part)) in sums {
        let size = sum.abs();
        let can_be = size > CANCELED * part && size > LEAST_PIVOT * largest_part;
        if can_be && !prescribed.contains_key(&dof) && best.is_none_or(|(_, most)| size > most) {
            best = Some((dof, size));
        }
    }
    let (largest, size) = best?;
    let is_large = |dof: &u64| {
        !prescribed.contains_key(dof)
            && sums
                .get(dof)
                .is_some_and(|(sum, _)| sum.abs() >= PREFERRED * size)
    };
    Some(first.filter(is_large).unwrap_or(largest))
}

/// How far an equation with nothing to solve for is from being fulfilled, relative to its terms.
fn contradiction(
    sums: &Sums,
    constant: f64,
    equation: &Equation,
    prescribed: &BTreeMap<u64, f64>,
) -> f64 {
    let mut left = constant;
    let mut scale = equation.constant.abs();
    for (dof, (sum, part)) in sums {
        if let Some(value) = prescribed.get(dof) {
            left -= sum * value;
            scale = scale.max((part * value).abs());
        }
    }
    if left == 0.0 {
        0.0
    } else {
        left.abs() / scale.max(left.abs() * f64::EPSILON)
    }
}

/// Replaces `pivot` in `row` by what `solved` says it is.
fn put_in(row: &mut Row, pivot: u64, solved: &Row) {
    let Ok(place) = row.terms.binary_search_by_key(&pivot, |(dof, _)| *dof) else {
        return;
    };
    let (_, factor) = row.terms.remove(place);
    row.constant += factor * solved.constant;
    let mut merged = Vec::with_capacity(row.terms.len() + solved.terms.len());
    let mut old = row.terms.iter().peekable();
    for &(dof, coefficient) in &solved.terms {
        while let Some(&&before) = old.peek().filter(|(other, _)| *other < dof) {
            merged.push(before);
            old.next();
        }
        let added = factor * coefficient;
        match old.peek() {
            Some(&&(other, value)) if other == dof => {
                old.next();
                let sum = value + added;
                if sum.abs() > CANCELED * value.abs().max(added.abs()) {
                    merged.push((dof, sum));
                }
            }
            _ => merged.push((dof, added)),
        }
    }
    merged.extend(old);
    row.terms = merged;
}

#[cfg(test)]
mod tests {
    use super::super::{Equation, Row};
    use super::reduce;
    use std::collections::BTreeMap;

    fn equation(terms: &[(u64, f64)], constant: f64) -> Equation {
        Equation {
            terms: terms.to_vec(),
            constant,
            origin: 0,
        }
    }

    fn row(terms: &[(u64, f64)], constant: f64) -> Row {
        Row {
            terms: terms.to_vec(),
            constant,
        }
    }

    #[test]
    fn chains_in_either_order_and_cycles_resolve_themselves() {
        // u0 = u1, u1 = 2 u2 + 1; and the other way round.
        let first = equation(&[(0, 1.0), (1, -1.0)], 0.0);
        let second = equation(&[(1, 1.0), (2, -2.0)], 1.0);
        for equations in [[first.clone(), second.clone()], [second, first]] {
            let found = reduce(&equations, &BTreeMap::new());
            assert_eq!(found.rows[&0], row(&[(2, 2.0)], 1.0));
            assert_eq!(found.rows[&1], row(&[(2, 2.0)], 1.0));
        }
        // u0 = u1, u1 = u2, u2 = u0: the last says nothing new.
        let ring = [[0, 1], [1, 2], [2, 0]].map(|[a, b]| equation(&[(a, 1.0), (b, -1.0)], 0.0));
        let found = reduce(&ring, &BTreeMap::new());
        assert_eq!(found.redundant, [2]);
        assert_eq!((found.rows.len(), found.contradiction), (2, None));
    }

    #[test]
    fn prescribed_values_are_not_solved_for() {
        let prescribed = BTreeMap::from([(0, 0.5), (4, 1.0)]);
        let found = reduce(
            &[equation(&[(0, 2.0), (1, 1.0), (2, -4.0)], 0.0)],
            &prescribed,
        );
        assert_eq!(found.rows[&2], row(&[(0, 0.5), (1, 0.25)], 0.0));
        // 2 u0 - u4 = 0 holds; = 1 does not.
        let redundant = equation(&[(0, 2.0), (4, -1.0)], 0.0);
        let found = reduce(std::slice::from_ref(&redundant), &prescribed);
        assert_eq!((found.redundant, found.contradiction), (vec![0], None));
        let wrong = Equation {
            constant: 1.0,
            ..redundant
        };
        assert_eq!(reduce(&[wrong], &prescribed).contradiction, Some((0, 1.0)));
    }

    #[test]
    fn contradictory_equations_are_found() {
        let [a, b] = [0.0, 0.1].map(|c| equation(&[(0, 1.0), (1, -3.0)], c));
        assert!(
            reduce(&[a.clone(), a.clone()], &BTreeMap::new())
                .contradiction
                .is_none()
        );
        let found = reduce(&[a, b], &BTreeMap::new());
        assert_eq!(found.contradiction.map(|(index, _)| index), Some(1));
    }

    #[test]
    fn rows_fulfill_random_equations() {
        let noise = |k: u64| ((k.wrapping_mul(2_654_435_761) % 2003) as f64 / 1001.0) - 1.0;
        let equations: Vec<Equation> = (0..12)
            .map(|e| {
                let terms = (0..4).map(|t| ((7 * e + 11 * t + e * t) % 30, noise(10 * e + t)));
                let mut once: BTreeMap<u64, f64> = BTreeMap::new();
                terms.for_each(|(dof, c)| *once.entry(dof).or_default() += c);
                equation(&once.into_iter().collect::<Vec<_>>(), noise(e + 500))
            })
            .collect();
        let found = reduce(&equations, &BTreeMap::new());
        assert!(found.contradiction.is_none());
        let mut u: Vec<f64> = (0..30).map(|dof| noise(dof + 77)).collect();
        let free = u.clone();
        for (dof, row) in &found.rows {
            assert!(row.terms.iter().all(|(d, _)| !found.rows.contains_key(d)));
            let sum: f64 = row.terms.iter().map(|&(d, c)| c * free[d as usize]).sum();
            u[*dof as usize] = sum + row.constant;
        }
        let size = u.iter().fold(1.0, |m: f64, v| m.max(v.abs()));
        for equation in &equations {
            let left: f64 = equation.terms.iter().map(|&(d, c)| c * u[d as usize]).sum();
            assert!((left - equation.constant).abs() < 1e-9 * size);
        }
    }
}
