//! Small decks: what becomes of them as a case, and what is said of those that are wrong.

use super::{Deck, convert, read};
use crate::case::{self, Case, LoadKind};
use std::path::Path;

/// Two bricks in a row along x, a set of the nodes at each end.
const MESH: &str = "*NODE, NSET=Nall
1,0,0,0\n2,1,0,0\n3,1,1,0\n4,0,1,0\n5,0,0,1\n6,1,0,1\n7,1,1,1\n8,0,1,1
9,2,0,0\n10,2,1,0\n11,2,0,1\n12,2,1,1\n99,5,0,0
*ELEMENT, TYPE=C3D8, ELSET=Eall
1, 1,2,3,4,5,6,7,8
2, 2,9,10,3,6,11,12,7
*NSET, NSET=FIX
1,4,5,8
*NSET, NSET=TIP
9,10,11,12
*SURFACE, NAME=END
2, S4
*MATERIAL, NAME=STEEL
*ELASTIC
210000., .3
*DENSITY
7.8D-9
*EXPANSION, ZERO=20.
1.2E-5
*SOLID SECTION, ELSET=Eall, MATERIAL=steel
*BOUNDARY
fix, 1, 3
";

fn read_text(text: &str) -> fem_mesh::Result<Deck> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.inp");
    std::fs::write(&path, text).unwrap();
    read(&path)
}

/// The case of the mesh above with a step of these cards.
fn case_of(cards: &str) -> (Case, Deck) {
    let deck = read_text(&format!(
        "*HEADING\n A  bar \n{MESH}*STEP\n*STATIC\n{cards}*END STEP\n"
    ));
    let deck = deck.unwrap_or_else(|e| panic!("{e}"));
    let case = case::parse(Path::new("model.inp"), &deck.text);
    (case.unwrap_or_else(|e| panic!("{e}\n{}", deck.text)), deck)
}

/// The message about a deck with these cards in its step, from the line of the first of them (line 34) on.
fn message(before: &str, cards: &str) -> String {
    let text = format!("{MESH}{before}*STEP\n*STATIC\n{cards}*END STEP\n");
    let message = match read_text(&text) {
        Err(error) => {
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        }
        Ok(deck) => match case::parse(Path::new("model.inp"), &deck.text) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("no error\n{}", deck.text),
        },
    };
    message
        .rsplit_once("model.inp")
        .map_or(message.clone(), |(_, rest)| rest.to_owned())
}

#[test]
fn a_deck_becomes_a_case() {
    let (case, deck) = case_of(
        "*CLOAD\nTIP, 2, 1.5\n*DLOAD\nEall, GRAV, 9810., 0., 0., -2.\n1, P1, 3.\n*DSLOAD\nEND, P, 4.\n",
    );
    assert_eq!(case.title, "A bar");
    let material = &case.materials[0];
    assert_eq!(
        (material.name.as_str(), &material.elements[..]),
        ("STEEL", &["Eall".to_owned()][..])
    );
    assert_eq!(material.density, Some(7.8e-9));
    assert_eq!(case.constraints[0].on, ["FIX"]);
    assert_eq!(case.constraints[0].displacement, [Some(0.0); 3]);
    let kinds: Vec<_> = case
        .loads
        .iter()
        .map(|l| (l.on[0].as_str(), l.kind.name()))
        .collect();
    assert_eq!(
        kinds[1..],
        [
            ("Eall", "gravity"),
            ("END", "pressure"),
            ("element 1 S1", "pressure")
        ]
    );
    assert_eq!(case.loads[1].kind, LoadKind::Gravity([0.0, 0.0, -9810.0]));
    assert_eq!(deck.mesh.mesh.sets.faces["element 1 S1"].len(), 1);
    assert_eq!(deck.mesh.mesh.sets.nodes["TIP"].len(), 4);
}

#[test]
fn single_nodes_of_equal_values_share_a_set() {
    let (case, deck) = case_of(
        "*BOUNDARY\n9,1,1,.1\n10,1,1,.1\n9,2,3\n10,2,3\n*CLOAD\n11,3,1.\n11,3,2.\n12,1,5.\n",
    );
    let fixed: Vec<_> = case
        .constraints
        .iter()
        .map(|c| (c.on.clone(), c.displacement))
        .collect();
    assert_eq!(fixed[1].1, [Some(0.1), Some(0.0), Some(0.0)]);
    assert_eq!(fixed.len(), 2);
    let set = &deck.mesh.mesh.sets.nodes[&fixed[1].0[0]];
    assert_eq!(set.len(), 2);
    // Loads of one step at one place add up.
    assert_eq!(case.loads[0].on, ["node 11"]);
    assert_eq!(case.loads[0].kind, LoadKind::Force([0.0, 0.0, 3.0]));
    assert_eq!(case.loads[1].kind, LoadKind::Force([5.0, 0.0, 0.0]));
}

#[test]
fn a_later_value_of_the_same_place_counts() {
    let (case, _) = case_of("*BOUNDARY\nFIX,1,1,.2\n");
    assert_eq!(case.constraints.len(), 1);
    assert_eq!(
        case.constraints[0].displacement,
        [Some(0.2), Some(0.0), Some(0.0)]
    );
    let (case, _) = case_of("*BOUNDARY, OP=NEW\nFIX,2,2\n");
    assert_eq!(case.constraints[0].displacement, [None, Some(0.0), None]);
}

#[test]
fn amplitudes_count_at_the_end_of_the_step() {
    let before = "*AMPLITUDE, NAME=A\n0., 0., 1., .5, 3., 2.\n";
    let text =
        format!("{MESH}{before}*STEP\n*STATIC\n.1, 2.\n*CLOAD, AMPLITUDE=a\n9, 1, 8.\n*END STEP\n");
    let deck = read_text(&text).unwrap();
    let case = case::parse(Path::new("model.inp"), &deck.text).unwrap();
    // A step of a length of its own is a table of its own.
    assert_eq!(case.steps[0].time_period, 2.0);
    assert_eq!(
        case.steps[0].loads[0].kind,
        LoadKind::Force([10.0, 0.0, 0.0])
    );
}

#[test]
fn messages_name_the_line_of_the_deck() {
    assert_eq!(
        message("", "*CLOAD\nTIPP,1,1.\n"),
        ":37: node set `TIPP` does not exist; did you mean \"TIP\"?"
    );
    assert_eq!(
        message("", "*CLOAD\n77,1,1.\n"),
        ":37: node 77 does not exist"
    );
    assert!(
        message("", "*CLOAD\n99,1,1.\n")
            .starts_with(":37: a force on node 99, which belongs to no element")
    );
    assert!(message("", "*CLOAD\nTIP,1,x\n").starts_with(":37: not a number: `x`"));
    assert!(message("", "*CLOAD\nTIP,4,1.\n").starts_with(":37: a moment on nodes of solids"));
    assert!(
        message("", "*FREQUENCY\n10\n")
            .starts_with(":36: *FREQUENCY is not supported: the analysis available")
    );
    assert!(
        message("", "*CLOUD\n")
            .starts_with(":36: unknown keyword *CLOUD; did you mean \"*CLOAD\"?")
    );
    assert!(message("*CLOAD\nTIP,1,1.\n", "").starts_with(":34: *CLOAD stands outside a step"));
    assert!(
        message("", "*DLOAD\nEall,P1NU,1.\n").starts_with(":37: load type P1NU is not supported")
    );
    assert!(message("*ORIENTATION, NAME=O\n1.,0.\n", "").starts_with(":35: a value is missing"));
    assert!(
        message("*MATERIAL, NAME=M\n*PLASTIC\n1.,0.\n", "")
            .starts_with(":35: *PLASTIC is not supported")
    );
}

#[test]
fn what_the_case_finds_wrong_is_told_with_the_line_of_the_deck() {
    let text = MESH.replace("210000., .3", "210000., .7");
    let deck = read_text(&format!("{text}*STEP\n*STATIC\n*END STEP\n")).unwrap();
    let error = case::parse(Path::new("model.inp"), &deck.text)
        .unwrap_err()
        .to_string();
    let (place, what) = error
        .rsplit_once("model.inp")
        .unwrap()
        .1
        .split_once(": ")
        .unwrap();
    assert_eq!(place, ":24");
    assert!(what.contains("poisson"), "{what}");
}

#[test]
fn elements_that_are_no_solids_are_refused_by_name() {
    let text =
        format!("{MESH}*ELEMENT, TYPE=S4R, ELSET=SKIN\n50, 1,2,3,4\n*STEP\n*STATIC\n*END STEP\n");
    let error = read_text(&text).unwrap_err().to_string();
    assert!(
        error.contains("model.inp:34: elements of type S4R are not supported"),
        "{error}"
    );
}

#[test]
fn decks_without_an_end_are_refused() {
    for (text, what) in [
        (format!("{MESH}*STEP\n*STATIC\n"), "the step does not end"),
        (MESH.to_owned(), "the deck has no step"),
        (
            format!("{MESH}*STEP\n*END STEP\n"),
            "does not say what it computes",
        ),
        (
            format!("{MESH}*STEP, NLGEOM\n*STATIC\n*END STEP\n"),
            "*STEP, NLGEOM is not supported",
        ),
        (
            format!(
                "{MESH}*COUPLING, REF NODE=99, SURFACE=END, CONSTRAINT NAME=C\n*STEP\n*STATIC\n*END STEP\n"
            ),
            "*COUPLING without a kind",
        ),
    ] {
        let error = read_text(&text).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_deck_is_written_as_a_case() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.inp");
    std::fs::write(
        &path,
        format!("{MESH}*STEP\n*STATIC\n*CLOAD\nTIP,1,1.\n*DLOAD\nEall,P1,2.\n*END STEP\n"),
    )
    .unwrap();
    let folder = directory.path().join("case");
    convert(&path, &folder).unwrap();
    let text = std::fs::read_to_string(folder.join("case.toml")).unwrap();
    assert!(
        text.starts_with("# Made from the deck model.inp.\n")
            && text.contains("# Line 37 of the deck."),
        "{text}"
    );
    let case = case::parse(&folder.join("case.toml"), &text).unwrap();
    let of_deck = read(&path).unwrap();
    let from_deck = case::parse(&path, &of_deck.text).unwrap();
    let kinds = |case: &Case| {
        case.loads
            .iter()
            .map(|l| (l.on.clone(), l.kind.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&case), kinds(&from_deck));
    let mesh = crate::mesh_file::read(&folder.join("mesh.inp"))
        .unwrap()
        .mesh;
    assert_eq!(mesh.sets.faces, of_deck.mesh.mesh.sets.faces);
    assert_eq!(mesh.node_ids, of_deck.mesh.mesh.node_ids);
    assert!(
        convert(&path, &folder)
            .unwrap_err()
            .to_string()
            .contains("there is a case file already")
    );
}

/// Decks cut and changed anywhere are read or refused, never a panic.
#[test]
fn damaged_decks_do_not_panic() {
    let whole = format!(
        "*HEADING\nx\n{MESH}*AMPLITUDE,NAME=A\n0.,0.,1.,1.\n*ORIENTATION,NAME=O\n1.,0.,0.,0.,1.,0.\n3,30.\n*EQUATION\n2\n9,1,1.,10,1,-1.\n\
         *MPC\nBEAM,1,2\n*TIE,NAME=T\nEND,END\n*TRANSFORM,NSET=TIP\n1.,0.,0.,0.,1.,0.\n*COUPLING,REF NODE=99,SURFACE=END,CONSTRAINT NAME=C\n\
         *KINEMATIC\n1,3\n*INITIAL CONDITIONS,TYPE=TEMPERATURE\nNall,20.\n*STEP\n*STATIC\n1.,1.\n*CLOAD,AMPLITUDE=A\nTIP,1,1.\n\
         *DLOAD\nEall,CENTRIF,1.,0.,0.,0.,0.,0.,1.\n*TEMPERATURE\nNall,30.\n*NODE PRINT,NSET=Nall,TOTALS=YES\nU,RF\n*EL FILE\nS,E\n*END STEP\n"
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.inp");
    for k in (0..whole.len()).step_by(5) {
        let mut texts = vec![whole[..k].to_owned()];
        let at = k..k + 1;
        for put in ["", ",", "-", "\n", "9", "*"] {
            let mut text = whole.clone();
            text.replace_range(at.clone(), put);
            texts.push(text);
        }
        for text in texts {
            std::fs::write(&path, text).unwrap();
            if let Ok(deck) = read(&path) {
                let _ = case::parse(&path, &deck.text);
            }
        }
    }
}

/// As FreeCAD and others write pressures: one line for each face.
#[test]
fn faces_of_equal_pressures_share_a_set() {
    let (case, deck) = case_of("*DLOAD\n1,P1,3.\n2,P1,3.\n2,P2,4.\n*DLOAD\n1,P1,3.\n");
    let loads: Vec<_> = case
        .loads
        .iter()
        .map(|l| (l.on[0].as_str(), &l.kind))
        .collect();
    assert_eq!(loads.len(), 3);
    assert_eq!(deck.mesh.mesh.sets.faces[loads[0].0].len(), 2);
    assert_eq!(loads[1], ("element 2 S2", &LoadKind::Pressure(4.0)));
    assert_eq!(loads[2], ("element 1 S1", &LoadKind::Pressure(3.0)));
}

/// A deck as Abaqus writes it: one part, its instance, an assembly.
#[test]
fn parts_with_one_instance() {
    let (mesh, rest) = MESH.split_once("*MATERIAL").unwrap();
    let rest = rest
        .replace("*SOLID SECTION, ELSET=Eall, MATERIAL=steel\n", "")
        .replace("fix, 1, 3", "Part-1-1.fix, PINNED");
    let text = format!(
        "*Part, name=Part-1\n{mesh}*Solid Section, elset=Eall, material=STEEL\n,\n*End Part\n*Assembly, name=Assembly\n\
         *Instance, name=Part-1-1, part=Part-1\n*End Instance\n*Nset, nset=Load, instance=Part-1-1\n9, 10\n*End Assembly\n\
         *MATERIAL{rest}*Step, name=Step-1, nlgeom=NO\n*Static\n1., 1., 1e-05, 1.\n*Cload\nLoad, 1, 2.\nPart-1-1.11, 2, 1.\n\
         *Restart, write, frequency=0\n*Output, field, variable=PRESELECT\n*Output, history\n*End Step\n"
    );
    let deck = read_text(&text).unwrap_or_else(|e| panic!("{e}"));
    let case = case::parse(Path::new("model.inp"), &deck.text)
        .unwrap_or_else(|e| panic!("{e}\n{}", deck.text));
    assert_eq!(case.constraints[0].displacement, [Some(0.0); 3]);
    assert_eq!(case.loads.len(), 2);
    assert!(
        deck.mesh
            .warnings
            .iter()
            .any(|w| w.starts_with("*RESTART is passed over")),
        "{:?}",
        deck.mesh.warnings
    );
}
