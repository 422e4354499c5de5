//! Names of sets and surfaces in a deck: equal without regard to case, kept as first written.
//!
//! Invariant: knows names and where they were defined, not members.

use std::collections::HashMap;

/// What a name is given to; each kind has its own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SetKind {
    Node,
    Element,
    Surface,
}

impl SetKind {
    /// For messages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            SetKind::Node => "node set",
            SetKind::Element => "element set",
            SetKind::Surface => "surface",
        }
    }
}

/// The names in use.
#[derive(Debug, Default)]
pub(crate) struct SetNames {
    /// By kind and capitals: the name as first written, and whether the assembly (not a part) gave it.
    written: HashMap<(SetKind, String), (String, bool)>,
}

/// The name under which a set is kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Defined {
    /// New, or continued.
    As(String),
    /// The assembly gives a name that the part uses for another set: that one must be renamed.
    Instead { name: String, of_part: String },
}

impl SetNames {
    /// Name under which the set is kept, if it is defined.
    pub(crate) fn find(&self, kind: SetKind, name: &str) -> Option<&str> {
        let found = self.written.get(&(kind, name.to_ascii_uppercase()));
        found.map(|(written, _)| written.as_str())
    }

    /// Defines a set or continues one.
    pub(super) fn define(&mut self, kind: SetKind, name: &str, in_assembly: bool) -> Defined {
        let key = (kind, name.to_ascii_uppercase());
        match self.written.get_mut(&key) {
            Some((written, by_assembly)) if in_assembly && !*by_assembly => {
                let of_part = std::mem::replace(written, name.to_owned());
                *by_assembly = true;
                Defined::Instead {
                    name: name.to_owned(),
                    of_part,
                }
            }
            Some((written, _)) => Defined::As(written.clone()),
            None => {
                self.written.insert(key, (name.to_owned(), in_assembly));
                Defined::As(name.to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Defined, SetKind, SetNames};

    #[test]
    fn names_compare_without_case_and_keep_their_first_form() {
        let mut names = SetNames::default();
        assert_eq!(
            names.define(SetKind::Node, "Fix", false),
            Defined::As("Fix".into())
        );
        assert_eq!(
            names.define(SetKind::Node, "FIX", false),
            Defined::As("Fix".into())
        );
        assert_eq!(names.find(SetKind::Node, "fix"), Some("Fix"));
        assert_eq!(names.find(SetKind::Element, "fix"), None);
    }

    #[test]
    fn the_assembly_wins_over_the_part() {
        let mut names = SetNames::default();
        names.define(SetKind::Node, "Set-1", false);
        let instead = Defined::Instead {
            name: "SET-1".into(),
            of_part: "Set-1".into(),
        };
        assert_eq!(names.define(SetKind::Node, "SET-1", true), instead);
        assert_eq!(
            names.define(SetKind::Node, "set-1", true),
            Defined::As("SET-1".into())
        );
    }
}
