//! Steps and amplitudes, and the state of the case in each frame: what is prescribed and what acts at a moment.
//!
//! Constraints, loads and temperatures of the top of the case act in every step. A step adds its own: with `op = "mod"`
//! to those of the steps before, with `op = "new"` in their place. What a step gives takes the place of an earlier
//! constraint of the same degree of freedom, of an earlier load of the same kind on the same sets, of an earlier
//! temperature of the same node.
//!
//! Within a step, at the share s of its time, a quantity without amplitude goes in a straight line from its value at the
//! end of the step before (0 for what is new) to its own; so do loads that end with a step. One with an amplitude has the
//! factor of its table. A later step that keeps a load with an amplitude in step time keeps the factor at the end of the
//! step that gave it.
//!
//! Invariant: the state of a frame is a case again; plain data, no mesh.

use super::{Case, ConstraintInput, LinearField, LoadInput, LoadKind, Place, TemperatureInput};

/// `[[step]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct StepInput {
    /// Unique name; `step k`, counted from 1, by default.
    pub name: String,
    /// Length of the step, > 0; 1 by default.
    pub time_period: f64,
    /// Frames of the step, evenly spread over its time, the last at its end; 1 by default.
    pub increments: usize,
    /// What becomes of earlier steps' tables.
    pub op: StepOp,
    /// What the step prescribes.
    pub constraints: Vec<ConstraintInput>,
    /// Its loads.
    pub loads: Vec<LoadInput>,
    /// Temperatures of its end.
    pub temperatures: Vec<TemperatureInput>,
    /// Place of the table.
    pub place: Place,
}

/// What becomes of what earlier steps gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepOp {
    /// It stays, unless the step gives it anew.
    #[default]
    Mod,
    /// It ends.
    New,
}

impl StepOp {
    /// Every choice with its name in case files.
    pub const NAMES: [(&'static str, StepOp); 2] = [("mod", StepOp::Mod), ("new", StepOp::New)];
}

/// `[[amplitude]]`: a factor as a function of time.
#[derive(Clone, Debug, PartialEq)]
pub struct AmplitudeInput {
    /// Unique name.
    pub name: String,
    /// Time and factor, times ascending; linear between, constant before and after.
    pub table: Vec<[f64; 2]>,
    /// Which time.
    pub time: AmplitudeTime,
    /// Place of `name`.
    pub place: Place,
}

/// The time that an amplitude counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AmplitudeTime {
    /// From the start of the step.
    #[default]
    Step,
    /// From the start of the first step.
    Total,
}

impl AmplitudeTime {
    /// Every choice with its name in case files.
    pub const NAMES: [(&'static str, AmplitudeTime); 2] = [
        ("step", AmplitudeTime::Step),
        ("total", AmplitudeTime::Total),
    ];
}

impl AmplitudeInput {
    /// The factor at a time.
    pub fn at(&self, time: f64) -> f64 {
        let after = self.table.iter().position(|point| point[0] > time);
        match after {
            Some(0) => self.table[0][1],
            None => self.table.last().map_or(1.0, |point| point[1]),
            Some(k) => {
                let ([t0, a0], [t1, a1]) = (self.table[k - 1], self.table[k]);
                a0 + (a1 - a0) * (time - t0) / (t1 - t0)
            }
        }
    }
}

/// One moment of the analysis whose results are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Index of its step; 0 for a case without steps.
    pub step: usize,
    /// Name of the step.
    pub name: String,
    /// Frame of the step, from 1.
    pub increment: usize,
    /// Frames of the step.
    pub n_increments: usize,
    /// Time since the start of the first step.
    pub time: f64,
}

impl Frame {
    /// Whether it is the end of its step.
    pub fn is_end(&self) -> bool {
        self.increment == self.n_increments
    }
}

/// A load with its factor.
struct Acting<'a> {
    load: &'a LoadInput,
    factor: f64,
    /// The amplitude that the factor still follows.
    amplitude: Option<&'a AmplitudeInput>,
}

impl Case {
    /// The frames, in order of time; at least one. A case without steps has one, at time 0.
    pub fn frames(&self) -> Vec<Frame> {
        if self.steps.is_empty() {
            return vec![Frame {
                step: 0,
                name: "step 1".to_owned(),
                increment: 1,
                n_increments: 1,
                time: 0.0,
            }];
        }
        let mut frames = Vec::new();
        let mut start = 0.0;
        for (step, input) in self.steps.iter().enumerate() {
            let n = input.increments;
            frames.extend((1..=n).map(|k| Frame {
                step,
                name: input.name.clone(),
                increment: k,
                n_increments: n,
                time: start + input.time_period * (k as f64 / n as f64),
            }));
            start += input.time_period;
        }
        frames
    }

    /// The case as it is in a frame: constraints, loads and temperatures are those of its moment, without amplitudes.
    /// Of constraints for one degree of freedom and of temperatures for one node the last is meant
    /// ([`ConstraintInput::layer`]).
    #[must_use]
    pub fn at_frame(&self, frame: &Frame) -> Case {
        let mut state = self.clone();
        if self.steps.is_empty() {
            return state;
        }
        let share = frame.increment as f64 / frame.n_increments as f64;
        state.steps.clear();
        state.loads = self.loads_at(frame.step, share);
        state.constraints = self.constraints_at(frame.step, share);
        state.temperatures = self.temperatures_at(frame.step, share);
        state
    }

    fn amplitude(&self, name: &Option<String>) -> Option<&AmplitudeInput> {
        let name = name.as_ref()?;
        self.amplitudes.iter().find(|a| a.name == *name)
    }

    fn start_of(&self, step: usize) -> f64 {
        self.steps[..step].iter().map(|s| s.time_period).sum()
    }

    /// The factor of an amplitude at a share of a step.
    fn factor(&self, amplitude: &AmplitudeInput, step: usize, share: f64) -> f64 {
        let in_step = self.steps[step].time_period * share;
        amplitude.at(match amplitude.time {
            AmplitudeTime::Step => in_step,
            AmplitudeTime::Total => self.start_of(step) + in_step,
        })
    }

    /// The loads at the end of a step.
    fn acting(&self, step: usize) -> Vec<Acting<'_>> {
        let input = &self.steps[step];
        let mut acting = match (step.checked_sub(1), input.op) {
            (Some(before), StepOp::Mod) => self.acting(before),
            _ => self
                .loads
                .iter()
                .map(|load| self.new_acting(load))
                .collect(),
        };
        acting.retain(|a| !input.loads.iter().any(|load| acts_alike(load, a.load)));
        acting.extend(input.loads.iter().map(|load| self.new_acting(load)));
        for a in &mut acting {
            if let Some(amplitude) = a.amplitude {
                a.factor = self.factor(amplitude, step, 1.0);
                let is_own = input.loads.iter().any(|load| std::ptr::eq(load, a.load));
                let is_of_top = self.loads.iter().any(|load| std::ptr::eq(load, a.load));
                if amplitude.time == AmplitudeTime::Step && is_own && !is_of_top {
                    // Later steps keep what it is at the end.
                    a.amplitude = None;
                }
            }
        }
        acting
    }

    fn new_acting<'a>(&'a self, load: &'a LoadInput) -> Acting<'a> {
        Acting {
            load,
            factor: 1.0,
            amplitude: self.amplitude(&load.amplitude),
        }
    }

    fn loads_at(&self, step: usize, share: f64) -> Vec<LoadInput> {
        let now = self.acting(step);
        let before = step
            .checked_sub(1)
            .map_or_else(Vec::new, |k| self.acting(k));
        let factor_before = |load: &LoadInput| {
            let same = before.iter().find(|b| std::ptr::eq(b.load, load));
            same.map(|b| b.factor)
        };
        let mut loads = Vec::new();
        for a in &now {
            let follows = self.amplitude(&a.load.amplitude).filter(|_| {
                // Its amplitude still runs in this step.
                a.amplitude.is_some() || factor_before(a.load).is_none()
            });
            let factor = match follows {
                Some(amplitude) => self.factor(amplitude, step, share),
                None => {
                    let start = factor_before(a.load).unwrap_or(0.0);
                    start + (a.factor - start) * share
                }
            };
            loads.push(scaled_load(a.load, factor));
        }
        if share < 1.0 {
            let ended = before
                .iter()
                .filter(|b| !now.iter().any(|a| std::ptr::eq(a.load, b.load)));
            loads.extend(ended.map(|b| scaled_load(b.load, b.factor * (1.0 - share))));
        }
        loads
    }

    /// The first step whose tables still count in a step.
    fn first_counted(&self, step: usize) -> usize {
        let mut first = step;
        while first > 0 && self.steps[first].op == StepOp::Mod {
            first -= 1;
        }
        first
    }

    fn constraints_at(&self, step: usize, share: f64) -> Vec<ConstraintInput> {
        let mut all = Vec::new();
        let mut add = |input: &ConstraintInput, of: usize, layer: usize, is_top: bool| {
            let mut constraint = input.clone();
            constraint.layer = layer;
            constraint.amplitude = None;
            let is_own = of == step && (!is_top || step == 0);
            let factor = match self.amplitude(&input.amplitude) {
                Some(amplitude) if is_own || is_top || amplitude.time == AmplitudeTime::Total => {
                    self.factor(amplitude, step, share)
                }
                Some(amplitude) => self.factor(amplitude, of, 1.0),
                None => {
                    constraint.share = if is_own { share } else { 1.0 };
                    1.0
                }
            };
            let scale = |values: [Option<f64>; 3]| values.map(|v| v.map(|v| v * factor));
            constraint.displacement = scale(input.displacement);
            constraint.rotation = scale(input.rotation);
            all.push(constraint);
        };
        self.constraints.iter().for_each(|c| add(c, 0, 0, true));
        for k in self.first_counted(step)..=step {
            self.steps[k]
                .constraints
                .iter()
                .for_each(|c| add(c, k, k + 1, false));
        }
        all
    }

    fn temperatures_at(&self, step: usize, share: f64) -> Vec<TemperatureInput> {
        let is_initial = |t: &&TemperatureInput| t.initial;
        let mut all: Vec<TemperatureInput> = Vec::new();
        all.extend(self.temperatures.iter().filter(is_initial).cloned());
        let of_top = self.temperatures.iter().filter(|t| !t.initial);
        all.extend(of_top.map(|t| TemperatureInput {
            share: if step == 0 { share } else { 1.0 },
            ..t.clone()
        }));
        // What ends with this step goes back in a straight line.
        let before = step.checked_sub(1).map_or(0, |k| self.first_counted(k));
        for k in before..self.first_counted(step) {
            if share < 1.0 {
                all.extend(self.steps[k].temperatures.iter().map(|t| TemperatureInput {
                    share: 1.0 - share,
                    ..t.clone()
                }));
            }
        }
        for k in self.first_counted(step)..=step {
            all.extend(self.steps[k].temperatures.iter().map(|t| TemperatureInput {
                share: if k == step { share } else { 1.0 },
                ..t.clone()
            }));
        }
        all
    }
}

/// Whether a load takes the place of an earlier one.
fn acts_alike(load: &LoadInput, earlier: &LoadInput) -> bool {
    load.on == earlier.on && load.kind.name() == earlier.kind.name()
}

fn scaled_load(load: &LoadInput, factor: f64) -> LoadInput {
    LoadInput {
        kind: if factor == 1.0 {
            load.kind.clone()
        } else {
            load.kind.scaled(factor)
        },
        amplitude: None,
        ..load.clone()
    }
}

impl LoadKind {
    /// The load times a factor: force or strain for force or strain. A rotation takes the square root, and none for a
    /// negative factor.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> LoadKind {
        let three = |v: &[f64; 3]| v.map(|v| v * factor);
        let six = |v: &[f64; 6]| v.map(|v| v * factor);
        match self {
            LoadKind::Traction(v) => LoadKind::Traction(three(v)),
            LoadKind::Pressure(p) => LoadKind::Pressure(p * factor),
            LoadKind::PressureField(field) => LoadKind::PressureField(LinearField {
                value: field.value * factor,
                gradient: three(&field.gradient),
                ..*field
            }),
            LoadKind::Force(v) => LoadKind::Force(three(v)),
            LoadKind::Moment(v) => LoadKind::Moment(three(v)),
            LoadKind::NodalForce(v) => LoadKind::NodalForce(three(v)),
            LoadKind::BodyForce(v) => LoadKind::BodyForce(three(v)),
            LoadKind::Gravity(v) => LoadKind::Gravity(three(v)),
            LoadKind::Centrifugal {
                origin,
                axis,
                omega,
            } => LoadKind::Centrifugal {
                origin: *origin,
                axis: *axis,
                omega: omega * factor.max(0.0).sqrt(),
            },
            LoadKind::TemperatureChange(t) => LoadKind::TemperatureChange(t * factor),
            LoadKind::InitialStress(v) => LoadKind::InitialStress(six(v)),
            LoadKind::InitialStrain(v) => LoadKind::InitialStrain(six(v)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Case, LoadKind, parse};
    use std::path::Path;

    const MODEL: &str = "[mesh]\nbox = { size = [1, 1, 1], cells = [1, 1, 1] }\n[[material]]\nname = \"m\"\n\
        elements = \"all\"\nyoung = 1.0\npoisson = 0.3\n";

    fn case(text: &str) -> Case {
        parse(Path::new("case.toml"), &format!("{MODEL}{text}")).unwrap()
    }

    /// Pressures of each frame.
    fn pressures(case: &Case) -> Vec<Vec<f64>> {
        let of_frame = |state: Case| {
            let loads = state.loads.into_iter().filter_map(|load| match load.kind {
                LoadKind::Pressure(p) => Some(p),
                _ => None,
            });
            loads.filter(|p| *p != 0.0).collect()
        };
        let frames = case.frames();
        frames
            .iter()
            .map(|frame| of_frame(case.at_frame(frame)))
            .collect()
    }

    fn pressure(table: &str, on: &str, value: f64, more: &str) -> String {
        format!("[[{table}]]\non = \"{on}\"\npressure = {value}\n{more}\n")
    }

    #[test]
    fn a_case_without_steps_is_one_frame_and_stays_as_it_is() {
        let case = case(&pressure("load", "xmax", 2.0, ""));
        let frames = case.frames();
        assert_eq!((frames.len(), frames[0].time), (1, 0.0));
        assert!(frames[0].is_end());
        assert_eq!(case.at_frame(&frames[0]), case);
    }

    #[test]
    fn mod_keeps_and_replaces_and_new_ends_what_steps_gave() {
        let of_step = |op: &str, loads: &str| format!("[[step]]\nop = \"{op}\"\n{loads}");
        let text = [
            pressure("load", "zmax", 1.0, ""),
            of_step("mod", &pressure("step.load", "xmax", 2.0, "")),
            of_step("mod", &pressure("step.load", "ymax", 4.0, "")),
            of_step("mod", &pressure("step.load", "xmax", 8.0, "")),
            of_step("new", &pressure("step.load", "ymin", 16.0, "")),
            of_step("mod", &pressure("step.load", "zmax", 32.0, "")),
        ];
        let case = case(&text.concat());
        let expected: [&[f64]; 5] = [
            &[1.0, 2.0],
            &[1.0, 2.0, 4.0],
            &[1.0, 4.0, 8.0],
            &[1.0, 16.0],
            &[16.0, 32.0],
        ];
        assert_eq!(pressures(&case), expected);
        let times: Vec<f64> = case.frames().iter().map(|f| f.time).collect();
        assert_eq!(times, [1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn increments_go_in_a_straight_line_from_step_to_step() {
        let text = [
            "[[step]]\ntime_period = 2.0\nincrements = 2\n".to_owned(),
            pressure("step.load", "xmax", 2.0, ""),
            "[[step]]\nincrements = 4\nop = \"new\"\n".to_owned(),
            pressure("step.load", "ymax", 4.0, ""),
        ];
        let case = case(&text.concat());
        let expected: [&[f64]; 6] = [
            &[1.0],
            &[2.0],
            &[1.0, 1.5],
            &[2.0, 1.0],
            &[3.0, 0.5],
            &[4.0],
        ];
        assert_eq!(pressures(&case), expected);
        let times: Vec<f64> = case.frames().iter().map(|f| f.time).collect();
        assert_eq!(times, [1.0, 2.0, 2.25, 2.5, 2.75, 3.0]);
    }

    #[test]
    fn amplitudes_count_step_time_or_total_time() {
        let text = [
            "[[amplitude]]\nname = \"a\"\ntable = [[0.0, 1.0], [1.0, 3.0]]\n".to_owned(),
            "[[amplitude]]\nname = \"b\"\ntable = [[0.0, 0.0], [4.0, 4.0]]\ntime = \"total\"\n"
                .to_owned(),
            "[[step]]\nincrements = 2\n".to_owned(),
            pressure("step.load", "xmax", 10.0, "amplitude = \"a\""),
            pressure("step.load", "ymax", 100.0, "amplitude = \"b\""),
            "[[step]]\nincrements = 2\n".to_owned(),
        ];
        let expected: [&[f64]; 4] = [
            &[20.0, 50.0],
            &[30.0, 100.0],
            &[30.0, 150.0],
            &[30.0, 200.0],
        ];
        assert_eq!(pressures(&case(&text.concat())), expected);
    }

    #[test]
    fn constraints_come_in_layers_with_their_share() {
        let text = "[[constraint]]\non = \"xmin\"\ndisplacement = [0, 0, 0]\n[[step]]\nincrements = 2\n[[step.constraint]]\non = \"xmax\"\n\
            displacement = [1, \"free\", \"free\"]\n[[step]]\nincrements = 2\n[[step.constraint]]\non = \"xmax\"\ndisplacement = [3, \"free\", \"free\"]\n";
        let case = case(text);
        let frames = case.frames();
        let layers = |k: usize| -> Vec<(usize, f64)> {
            let state = case.at_frame(&frames[k]);
            state
                .constraints
                .iter()
                .map(|c| (c.layer, c.share))
                .collect()
        };
        assert_eq!(layers(0), [(0, 0.5), (1, 0.5)]);
        assert_eq!(layers(2), [(0, 1.0), (1, 1.0), (2, 0.5)]);
    }
}
