//! What becomes of each keyword of a deck, and of each of its parameters: the one table that decides.
//!
//! Nothing of a deck is passed over in silence that could change the answer: a keyword or a parameter is followed, or
//! it makes no difference to the numbers, or it is refused by name. Sources: CalculiX CrunchiX user's manual; Abaqus
//! Keywords Reference Guide.
//!
//! Invariant: a table and the look-up in it; reads no data line.

use crate::case::words::{quoted, suggest_name};
use crate::mesh_file::abaqus::card::Card;
use fem_mesh::{Error, Result};

/// A keyword without blanks, and what becomes of it.
#[derive(Debug)]
pub(super) struct Keyword {
    /// As it is written, in capitals.
    pub(super) name: &'static str,
    pub(super) fate: Fate,
}

/// What becomes of a card.
#[derive(Debug)]
pub(super) enum Fate {
    /// Followed; with the parameters that are followed, and those that make no difference.
    Followed(&'static [&'static str], &'static [&'static str]),
    /// Of no account for the numbers: passed over in silence.
    Silent,
    /// Of no account for the numbers, but the user may miss what it asks for: said once, completing "is passed over:".
    Noted(&'static str),
    /// Would change the answer: refused, with the reason.
    Refused(&'static str),
}

const fn follow(
    name: &'static str,
    followed: &'static [&'static str],
    harmless: &'static [&'static str],
) -> Keyword {
    let fate = Fate::Followed(followed, harmless);
    Keyword { name, fate }
}

const fn silent(name: &'static str) -> Keyword {
    let fate = Fate::Silent;
    Keyword { name, fate }
}

const fn noted(name: &'static str, why: &'static str) -> Keyword {
    let fate = Fate::Noted(why);
    Keyword { name, fate }
}

const fn refuse(name: &'static str, why: &'static str) -> Keyword {
    let fate = Fate::Refused(why);
    Keyword { name, fate }
}

const STATIC_ONLY: &str = "the analysis available is the linear static one (*STATIC)";
const THERMAL: &str = "there is no thermal analysis";
const CONTACT: &str = "there is no contact, which is not linear";
const NONLINEAR: &str = "materials are linear elastic";
const SECTION: &str = "elements are solids: there are no shells, beams, membranes or springs";
const FLOW: &str = "there are no fluids and networks";
const DESIGN: &str = "there is no sensitivity analysis or optimization";
const SUPERELEMENT: &str = "there are no substructures and no user elements";
const OUTPUT: &str = "results go to results.vtkhdf and, by *NODE PRINT, *EL PRINT and *SECTION PRINT, to a .dat file";
const CHANGES: &str = "the model stays the same in all steps";
const FAILURE: &str = "there is no damage and no crack growth";

/// The table, by name.
pub(super) const KEYWORDS: &[Keyword] = &[
    follow(
        "AMPLITUDE",
        &["NAME", "TIME", "SHIFTX", "SHIFTY", "DEFINITION", "VALUE"],
        &["SMOOTH"],
    ),
    follow("ASSEMBLY", &["NAME"], &[]),
    refuse("BASE MOTION", STATIC_ONLY),
    refuse("BEAM GENERAL SECTION", SECTION),
    refuse("BEAM SECTION", SECTION),
    follow("BOUNDARY", &["OP", "AMPLITUDE", "FIXED"], &["LOADCASE"]),
    refuse("BUCKLE", STATIC_ONLY),
    refuse("CFD", FLOW),
    refuse("CFLUX", THERMAL),
    refuse("CHANGE CONTACT TYPE", CONTACT),
    refuse("CHANGE FRICTION", CONTACT),
    refuse("CHANGE MATERIAL", CHANGES),
    refuse("CHANGE PLASTIC", NONLINEAR),
    refuse("CHANGE SOLID SECTION", CHANGES),
    refuse("CHANGE SURFACE BEHAVIOR", CONTACT),
    refuse("CLEARANCE", CONTACT),
    follow("CLOAD", &["OP", "AMPLITUDE"], &["LOADCASE"]),
    refuse("COHESIVE SECTION", SECTION),
    refuse("COMPLEX FREQUENCY", STATIC_ONLY),
    silent("CONDUCTIVITY"),
    refuse("CONNECTOR SECTION", SECTION),
    refuse("CONSTRAINT", DESIGN),
    refuse("CONTACT", CONTACT),
    refuse("CONTACT DAMPING", CONTACT),
    noted("CONTACT FILE", "there is no contact"),
    refuse("CONTACT PAIR", CONTACT),
    noted("CONTACT PRINT", "there is no contact"),
    noted("CONTACT OUTPUT", "there is no contact"),
    noted(
        "CONTROLS",
        "a linear step needs no increments and no iterations of Newton's method",
    ),
    refuse("CORRELATION LENGTH", DESIGN),
    follow(
        "COUPLING",
        &["REFNODE", "SURFACE", "CONSTRAINTNAME", "ORIENTATION"],
        &[],
    ),
    refuse("COUPLED TEMPERATURE-DISPLACEMENT", THERMAL),
    refuse("CRACK PROPAGATION", FAILURE),
    refuse("CREEP", NONLINEAR),
    refuse("CYCLIC HARDENING", NONLINEAR),
    follow(
        "CYCLIC SYMMETRY MODEL",
        &["N", "TIE"],
        &["NGRAPH", "ELSET", "MATRIX"],
    ),
    refuse("DAMAGE INITIATION", FAILURE),
    noted("DAMPING", "it has no part in statics"),
    refuse("DASHPOT", SECTION),
    refuse("DEFORMATION PLASTICITY", NONLINEAR),
    follow("DENSITY", &[], &[]),
    refuse("DEPVAR", NONLINEAR),
    refuse("DESIGN RESPONSE", DESIGN),
    refuse("DESIGN VARIABLES", DESIGN),
    refuse("DFLUX", THERMAL),
    follow("DISTRIBUTING", &[], &["COUPLING"]),
    refuse(
        "DISTRIBUTING COUPLING",
        "*COUPLING with *DISTRIBUTING says the same",
    ),
    follow("DISTRIBUTION", &["NAME"], &[]),
    follow("DLOAD", &["OP", "AMPLITUDE"], &["LOADCASE"]),
    follow("DSLOAD", &["OP", "AMPLITUDE"], &["LOADCASE"]),
    refuse("DYNAMIC", STATIC_ONLY),
    follow(
        "EL FILE",
        &[],
        &[
            "FREQUENCY",
            "NSET",
            "ELSET",
            "OUTPUT",
            "POSITION",
            "GLOBAL",
            "LASTITERATIONS",
            "TIMEPOINTS",
            "FREQUENCYF",
        ],
    ),
    follow(
        "EL PRINT",
        &["ELSET", "GLOBAL", "TOTALS", "FREQUENCY"],
        &["FREQUENCYF", "TIMEPOINTS", "POSITION", "SUMMARY"],
    ),
    follow("ELASTIC", &["TYPE"], &["DEPENDENCIES"]),
    refuse("ELECTRICAL CONDUCTIVITY", FLOW),
    refuse("ELECTROMAGNETICS", FLOW),
    follow("ELEMENT", &["TYPE", "ELSET", "INPUT"], &[]),
    follow(
        "ELEMENT OUTPUT",
        &[],
        &[
            "FREQUENCY",
            "NSET",
            "ELSET",
            "OUTPUT",
            "POSITION",
            "GLOBAL",
            "DIRECTIONS",
            "EXTERIOR",
            "VARIABLE",
            "TIMEPOINTS",
        ],
    ),
    follow(
        "ELSET",
        &["ELSET", "GENERATE", "INSTANCE", "INPUT"],
        &["INTERNAL", "UNSORTED"],
    ),
    refuse(
        "EMBEDDED ELEMENT",
        "elements are joined by nodes or by *TIE",
    ),
    follow("END ASSEMBLY", &[], &[]),
    follow("END INSTANCE", &[], &[]),
    follow("END PART", &[], &[]),
    follow("END STEP", &[], &[]),
    noted("ENERGY OUTPUT", OUTPUT),
    noted("ENERGY PRINT", OUTPUT),
    noted("ENERGY FILE", OUTPUT),
    follow("EQUATION", &[], &[]),
    follow("EXPANSION", &["TYPE", "ZERO"], &[]),
    refuse("FEASIBLE DIRECTION", DESIGN),
    refuse("FIELD", "properties depend on temperature only"),
    refuse("FILM", THERMAL),
    refuse("FILTER", DESIGN),
    refuse("FLUID CONSTANTS", FLOW),
    refuse("FLUID SECTION", FLOW),
    refuse("FOUNDATION", "there are no elastic foundations"),
    refuse("FREQUENCY", STATIC_ONLY),
    refuse("FRICTION", CONTACT),
    refuse("GAP", CONTACT),
    refuse("GAP CONDUCTANCE", CONTACT),
    refuse("GAP HEAT GENERATION", CONTACT),
    refuse("GEOMETRIC TOLERANCES", DESIGN),
    refuse("GREEN", SUPERELEMENT),
    refuse("HCF", FAILURE),
    follow("HEADING", &[], &[]),
    refuse("HEAT TRANSFER", THERMAL),
    refuse("HYPERELASTIC", NONLINEAR),
    refuse("HYPERFOAM", NONLINEAR),
    follow("INCLUDE", &["INPUT"], &[]),
    follow("INITIAL CONDITIONS", &["TYPE", "USER"], &[]),
    refuse("INITIAL STRAIN INCREASE", CHANGES),
    follow("INSTANCE", &["NAME", "PART"], &[]),
    follow("KINEMATIC", &[], &[]),
    refuse(
        "KINEMATIC COUPLING",
        "*COUPLING with *KINEMATIC says the same",
    ),
    refuse("MAGNETIC PERMEABILITY", FLOW),
    refuse("MASS", SECTION),
    refuse("MASS FLOW", FLOW),
    follow("MATERIAL", &["NAME"], &[]),
    refuse("MATRIX ASSEMBLE", SUPERELEMENT),
    refuse("MEMBRANE SECTION", SECTION),
    refuse("MODAL DAMPING", STATIC_ONLY),
    refuse("MODAL DYNAMIC", STATIC_ONLY),
    refuse("MODEL CHANGE", CHANGES),
    refuse("MOHR COULOMB", NONLINEAR),
    refuse("MOHR COULOMB HARDENING", NONLINEAR),
    follow("MPC", &[], &[]),
    refuse("NETWORK MPC", FLOW),
    noted(
        "NO ANALYSIS",
        "use `fem-solve check` to look at a deck without solving it",
    ),
    refuse("NODAL THICKNESS", SECTION),
    follow("NODE", &["NSET", "SYSTEM", "INPUT"], &[]),
    follow(
        "NODE FILE",
        &[],
        &[
            "FREQUENCY",
            "NSET",
            "OUTPUT",
            "GLOBAL",
            "LASTITERATIONS",
            "TIMEPOINTS",
            "FREQUENCYF",
            "CONTACTELEMENTS",
        ],
    ),
    follow(
        "NODE OUTPUT",
        &[],
        &[
            "FREQUENCY",
            "NSET",
            "OUTPUT",
            "GLOBAL",
            "EXTERIOR",
            "VARIABLE",
            "TIMEPOINTS",
        ],
    ),
    follow(
        "NODE PRINT",
        &["NSET", "GLOBAL", "TOTALS", "FREQUENCY"],
        &["FREQUENCYF", "TIMEPOINTS", "SUMMARY"],
    ),
    refuse("NORMAL", SECTION),
    follow(
        "NSET",
        &["NSET", "GENERATE", "INSTANCE", "INPUT", "ELSET"],
        &["INTERNAL", "UNSORTED"],
    ),
    refuse("OBJECTIVE", DESIGN),
    follow(
        "ORIENTATION",
        &["NAME", "SYSTEM", "DEFINITION"],
        &["LOCALDIRECTIONS"],
    ),
    silent("OUTPUT"),
    follow("PART", &["NAME"], &[]),
    noted("PERMEABILITY", "it has no part in statics"),
    silent("PHYSICAL CONSTANTS"),
    refuse("PLASTIC", NONLINEAR),
    silent("PREPRINT"),
    follow("PRE-TENSION SECTION", &["SURFACE", "NODE", "ELEMENT"], &[]),
    noted("PRINT", OUTPUT),
    refuse("RADIATE", THERMAL),
    refuse("RANDOM FIELD", DESIGN),
    refuse("RATE DEPENDENT", NONLINEAR),
    refuse("REFINE MESH", "the mesh is not refined"),
    noted("RESTART", "a linear step is computed as a whole"),
    refuse("RETAINED NODAL DOFS", SUPERELEMENT),
    follow(
        "RIGID BODY",
        &["NSET", "ELSET", "REFNODE", "ROTNODE", "PINNSET", "TIENSET"],
        &[],
    ),
    refuse("ROBUST DESIGN", DESIGN),
    follow(
        "SECTION PRINT",
        &["SURFACE", "NAME", "FREQUENCY"],
        &["FREQUENCYF", "TIMEPOINTS"],
    ),
    refuse("SELECT CYCLIC SYMMETRY MODES", STATIC_ONLY),
    refuse("SENSITIVITY", DESIGN),
    refuse("SHELL GENERAL SECTION", SECTION),
    refuse("SHELL SECTION", SECTION),
    follow(
        "SOLID SECTION",
        &["ELSET", "MATERIAL", "ORIENTATION"],
        &["CONTROLS", "REFNODE"],
    ),
    noted(
        "SECTION CONTROLS",
        "hourglass control of reduced elements is fixed",
    ),
    silent("SPECIFIC GAS CONSTANT"),
    silent("SPECIFIC HEAT"),
    refuse("SPRING", SECTION),
    follow(
        "STATIC",
        &[],
        &[
            "SOLVER",
            "DIRECT",
            "STABILIZE",
            "CONTINUE",
            "ALLSDTOL",
            "TIMERESET",
            "EXPLICIT",
        ],
    ),
    refuse("STEADY STATE DYNAMICS", STATIC_ONLY),
    follow(
        "STEP",
        &["NLGEOM", "PERTURBATION", "NAME"],
        &[
            "INC",
            "INCF",
            "AMPLITUDE",
            "UNSYMM",
            "CONVERTSDI",
            "SOLVER",
            "EXTRAPOLATION",
        ],
    ),
    refuse("SUBMODEL", "boundary values are not read from another run"),
    refuse("SUBSTRUCTURE GENERATE", SUPERELEMENT),
    refuse("SUBSTRUCTURE MATRIX OUTPUT", SUPERELEMENT),
    follow("SURFACE", &["NAME", "TYPE"], &["INTERNAL"]),
    refuse("SURFACE BEHAVIOR", CONTACT),
    refuse("SURFACE INTERACTION", CONTACT),
    refuse("SURFACE SECTION", SECTION),
    follow("TEMPERATURE", &["OP", "AMPLITUDE"], &[]),
    follow(
        "TIE",
        &["NAME", "POSITIONTOLERANCE", "ADJUST", "CYCLICSYMMETRY"],
        &["TYPE", "CONSTRAINTRATIO"],
    ),
    noted("TIME POINTS", "a linear step has one result, at its end"),
    follow("TRANSFORM", &["NSET", "TYPE"], &[]),
    refuse("UNCOUPLED TEMPERATURE-DISPLACEMENT", THERMAL),
    refuse("USER ELEMENT", SUPERELEMENT),
    refuse("USER MATERIAL", NONLINEAR),
    refuse("USER SECTION", SECTION),
    silent("USE REFINED MESH"),
    refuse("VALUES AT INFINITY", FLOW),
    refuse("VIEWFACTOR", THERMAL),
    refuse("VISCO", STATIC_ONLY),
    refuse("VISCOELASTIC", NONLINEAR),
];

/// The shortest abbreviation of a keyword.
const SHORTEST: usize = 4;

fn without_blanks(name: &str) -> String {
    name.replace(' ', "")
}

/// The keyword that a card has: as written, or the one that it is a beginning of.
///
/// # Errors
/// An unknown keyword, or an abbreviation of several; without a place.
pub(super) fn find(card: &Card) -> Result<&'static Keyword> {
    let is_exact = |k: &&Keyword| without_blanks(k.name) == card.keyword;
    if let Some(found) = KEYWORDS.iter().find(is_exact) {
        return Ok(found);
    }
    let begins = |k: &&Keyword| {
        card.keyword.len() >= SHORTEST && without_blanks(k.name).starts_with(&card.keyword)
    };
    let found: Vec<&Keyword> = KEYWORDS.iter().filter(begins).collect();
    if let [only] = found[..] {
        return Ok(only);
    }
    let error = Error::input(format!("unknown keyword *{}", card.title));
    if found.is_empty() {
        let names: Vec<String> = KEYWORDS.iter().map(|k| format!("*{}", k.name)).collect();
        let advice = "correct it, or take the card out if it is not needed";
        let near = suggest_name(error.clone(), &format!("*{}", card.title), &names);
        return Err(if near == error {
            error.advice(advice)
        } else {
            near
        });
    }
    let names: Vec<String> = found.iter().map(|k| format!("*{}", k.name)).collect();
    Err(error.expected(format!("one of {}", quoted(&names))))
}

/// Checks keyword and parameters; what to tell the user about a card that is passed over.
///
/// # Errors
/// A card that is refused, or a parameter that is not known or not followed; without a place.
pub(super) fn admit(card: &Card, keyword: &Keyword) -> Result<Option<String>> {
    match keyword.fate {
        Fate::Silent => Ok(None),
        Fate::Noted(why) => Ok(Some(format!("*{} is passed over: {why}", keyword.name))),
        Fate::Refused(why) => {
            let error = Error::input(format!("*{} is not supported: {why}", keyword.name));
            Err(error
                .advice("take it out if the question allows, or use another program for this deck"))
        }
        Fate::Followed(followed, harmless) => {
            let known: Vec<&str> = followed.iter().chain(harmless).copied().collect();
            let is_known = |name: &str| {
                known.contains(&name)
                    || (name.len() >= 3 && known.iter().any(|k| k.starts_with(name)))
            };
            match card.parameters.iter().find(|(name, _)| !is_known(name)) {
                None => Ok(None),
                Some((name, _)) => {
                    let what = format!("*{}: parameter {name} is not supported", keyword.name);
                    let error = Error::input(what).expected(match known[..] {
                        [] => "no parameter".to_owned(),
                        _ => format!("some of {}", known.join(", ")),
                    });
                    Err(suggest_name(error, name, &known))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KEYWORDS, admit, find};
    use crate::mesh_file::abaqus::card::Card;

    fn outcome(line: &str) -> Result<Option<String>, String> {
        let card = Card::parse(line.as_bytes());
        let keyword = find(&card).map_err(|e| e.to_string())?;
        admit(&card, keyword).map_err(|e| e.to_string())
    }

    #[test]
    fn each_keyword_has_one_fate() {
        for (k, keyword) in KEYWORDS.iter().enumerate() {
            assert!(
                KEYWORDS[..k].iter().all(|other| other.name != keyword.name),
                "{}",
                keyword.name
            );
        }
    }

    #[test]
    fn cards_are_followed_passed_over_or_refused() {
        assert_eq!(outcome("Mate, name=STEEL"), Ok(None));
        assert_eq!(outcome("STATIC, SOLVER=SPOOLES"), Ok(None));
        assert!(
            outcome("damping, alpha=1")
                .unwrap()
                .unwrap()
                .contains("no part in statics")
        );
        let error = outcome("Contact Pair, INTERACTION=I").unwrap_err();
        assert!(
            error.starts_with("*CONTACT PAIR is not supported: there is no contact"),
            "{error}"
        );
        let error = outcome("BONDARY").unwrap_err();
        assert_eq!(
            error,
            "unknown keyword *BONDARY; did you mean \"*BOUNDARY\"?"
        );
        let error = outcome("CLOAD, AMPLITUD=A, SECTOR=3").unwrap_err();
        assert_eq!(
            error,
            "*CLOAD: parameter SECTOR is not supported; expected some of OP, AMPLITUDE, LOADCASE"
        );
        assert!(outcome("BOUN").is_ok());
        assert!(outcome("EL P, ELSET=A").is_err());
    }

    #[test]
    fn the_documentation_names_every_keyword() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/decks.md");
        let text = std::fs::read_to_string(page).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for keyword in KEYWORDS {
            assert!(
                text.contains(&format!("`*{}`", keyword.name)),
                "{}",
                keyword.name
            );
        }
    }

    /// The keywords that decks in practice use, where their list is at hand.
    #[test]
    fn every_keyword_in_use_is_decided() {
        let list = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../shared/decks/KEYWORDS.csv");
        let Ok(text) = std::fs::read_to_string(&list) else {
            eprintln!("skipped: no file {}", list.display());
            return;
        };
        for line in text.lines().skip(1) {
            let name = line.split(',').next().unwrap_or_default();
            let card = Card::parse(name.trim_start_matches('*').as_bytes());
            let is_blank = card.title.is_empty();
            assert!(is_blank || find(&card).is_ok(), "{name}");
        }
    }
}
