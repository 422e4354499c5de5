//! Words that messages are made of: lists of names and the name that was perhaps meant.
//!
//! Invariant: knows no key of the case file.

use fem_mesh::Error;

/// `"a", "b", "c"`.
pub(crate) fn quoted<S: AsRef<str>>(names: &[S]) -> String {
    names
        .iter()
        .map(|name| format!("\"{}\"", name.as_ref()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Adds "did you mean" if a key of these is near.
pub(crate) fn suggest_key<S: AsRef<str>>(error: Error, typed: &str, keys: &[S]) -> Error {
    match nearest(typed, keys) {
        Some(key) => error.advice(format!("did you mean `{key}`?")),
        None => error,
    }
}

/// Adds "did you mean" if a name (a value in quotes) of these is near.
pub(crate) fn suggest_name<S: AsRef<str>>(error: Error, typed: &str, names: &[S]) -> Error {
    match nearest(typed, names) {
        Some(name) => error.advice(format!("did you mean \"{name}\"?")),
        None => error,
    }
}

/// The name most like `typed`, if any is like it at all.
fn nearest<'n, S: AsRef<str>>(typed: &str, names: &'n [S]) -> Option<&'n str> {
    let typed = typed.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        // Jaro-Winkler misses transposed letters at the start of short names.
        let one_slip = typed.len() > 2 && strsim::osa_distance(&typed, &name) == 1;
        strsim::jaro_winkler(&typed, &name).max(if one_slip { 0.9 } else { 0.0 })
    };
    let scored = names
        .iter()
        .map(|name| (likeness(name.as_ref()), name.as_ref()));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}

/// "`a`, `b`, `c`".
pub(crate) fn ticked<S: AsRef<str>>(names: &[S]) -> String {
    names
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_near() {
        let names = ["young", "poisson", "density", "elements"];
        assert_eq!(nearest("yuong", &names), Some("young"));
        assert_eq!(nearest("Young", &names), Some("young"));
        assert_eq!(nearest("poisson_ratio", &names), Some("poisson"));
        assert_eq!(nearest("element", &names), Some("elements"));
        assert_eq!(nearest("oyung", &names), Some("young"));
        assert_eq!(nearest("viscosity", &names), None);
    }
}
