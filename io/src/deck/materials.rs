//! Cards of materials, sections and axes.
//!
//! Invariant: values are those of the deck, not yet judged.

use super::model::{Distribution, ElasticKind, Elements, Material, Orientation, Row, Section};
use super::reader::Reader;
use super::source::Line;
use crate::mesh_file::abaqus::card::DeckCard;
use crate::mesh_file::abaqus::sets::SetKind;
use crate::mesh_file::draft::Place;
use fem_mesh::Result;

/// What *ORIENTATION expects.
const POINTS: &str = "the coordinates of points a and b: six numbers";

/// Points of all elements, and of those with others.
type Distributed = ([[f64; 3]; 2], Vec<(Elements, [[f64; 3]; 2])>);

impl Reader {
    pub(super) fn material(&mut self, card: &DeckCard) -> Result<()> {
        let name = self.parameter(card, "NAME")?.to_owned();
        let is_same = |m: &&Material| m.name.eq_ignore_ascii_case(&name);
        if self.model.materials.iter().find(is_same).is_some() {
            let what = format!("material `{name}` is defined twice");
            return Err(self
                .source
                .error(card.place, what)
                .expected("a different name for each"));
        }
        self.model.materials.push(Material {
            name,
            place: card.place,
            elastic: None,
            density: None,
            expansion: Vec::new(),
            expansion_zero: 0.0,
        });
        Ok(())
    }

    /// The material that a card of properties belongs to.
    fn material_of(&mut self, card: &DeckCard) -> Result<&mut Material> {
        let error = self.source.error(
            card.place,
            format!("*{} without a *MATERIAL before it", card.card.title),
        );
        self.model.materials.last_mut().ok_or(error)
    }

    pub(super) fn elastic(&mut self, card: &DeckCard) -> Result<()> {
        let given = card.card.get("TYPE").unwrap_or("ISO").to_ascii_uppercase();
        let begins = |name: &str| given.len() >= 3 && name.starts_with(&given.replace(' ', ""));
        let (kind, n) = if begins("ISOTROPIC") {
            (ElasticKind::Isotropic, 2)
        } else if begins("ORTHOTROPIC") {
            (ElasticKind::Stiffness, 9)
        } else if begins("ANISOTROPIC") {
            (ElasticKind::Stiffness, 21)
        } else if begins("ENGINEERINGCONSTANTS") {
            (ElasticKind::Engineering, 9)
        } else {
            let what = format!("*ELASTIC, TYPE={given} is not supported");
            let error = self.source.error(card.place, what);
            return Err(error.expected("ISO, ORTHO, ENGINEERING CONSTANTS or ANISO"));
        };
        let rows = self.rows(card, n, "elastic constants")?;
        let material = self.material_of(card)?;
        material.elastic = Some((kind, rows));
        Ok(())
    }

    pub(super) fn expansion(&mut self, card: &DeckCard) -> Result<()> {
        let given = card.card.get("TYPE").unwrap_or("ISO").to_ascii_uppercase();
        let n = match given.as_str() {
            "ISO" | "ISOTROPIC" => 1,
            "ORTHO" | "ORTHOTROPIC" => 3,
            "ANISO" | "ANISOTROPIC" => 6,
            _ => {
                let what = format!("*EXPANSION, TYPE={given} is not supported");
                return Err(self
                    .source
                    .error(card.place, what)
                    .expected("ISO, ORTHO or ANISO"));
            }
        };
        let zero = match card.card.get("ZERO") {
            Some(text) => self
                .source
                .parse_number(text, card.place, "ZERO=temperature")?,
            None => 0.0,
        };
        let rows = self.rows(card, n, "coefficients of expansion")?;
        let material = self.material_of(card)?;
        material.expansion = rows;
        material.expansion_zero = zero;
        Ok(())
    }

    pub(super) fn density(&mut self, card: &DeckCard) -> Result<()> {
        let rows = self.rows(card, 1, "a density")?;
        if rows.len() > 1 {
            let error = self.source.error(
                card.place,
                "a density that depends on temperature is not supported",
            );
            return Err(error.expected("one line"));
        }
        self.material_of(card)?.density = rows.first().map(|row| row.1[0]);
        Ok(())
    }

    /// Rows of `n` numbers, eight a line, each with a temperature behind it or none, by ascending temperature.
    fn rows(&self, card: &DeckCard, n: usize, what: &str) -> Result<Vec<Row>> {
        const PER_LINE: usize = 8;
        let mut rows: Vec<Row> = Vec::new();
        let mut begun: Vec<f64> = Vec::new();
        for data in &card.lines {
            let line = self.source.line(data);
            let here = (n - begun.len()).min(PER_LINE);
            for k in 0..here {
                begun.push(self.source.number(&line, k, &format!("{n} {what}"))?);
            }
            if begun.len() < n {
                continue;
            }
            let temperature = self.source.optional_number(&line, here, "a temperature")?;
            self.at_most(&line, here + 1, &format!("{n} {what} and a temperature"))?;
            rows.push((temperature, std::mem::take(&mut begun)));
        }
        if rows.is_empty() || !begun.is_empty() {
            let error = self
                .source
                .error(card.place, format!("*{} lacks values", card.card.title));
            return Err(error.expected(format!("{n} {what}, eight a line")));
        }
        if let Some(pair) = rows
            .windows(2)
            .find(|p| p[0].0.unwrap_or(0.0) >= p[1].0.unwrap_or(0.0))
        {
            let what = format!(
                "temperature {} follows on {}",
                pair[1].0.unwrap_or(0.0),
                pair[0].0.unwrap_or(0.0)
            );
            let error = self.source.error(card.place, what);
            return Err(error.expected("a temperature in each row, ascending"));
        }
        Ok(rows)
    }

    /// Refuses fields behind the last that has a meaning.
    pub(super) fn at_most(&self, line: &Line<'_>, n: usize, expected: &str) -> Result<()> {
        match (n..line.len()).find_map(|k| line.get(k)) {
            None => Ok(()),
            Some(field) => {
                let what = format!("field `{field}` is one too many");
                Err(self.source.error(line.place, what).expected(expected))
            }
        }
    }

    pub(super) fn section(&mut self, card: &DeckCard) -> Result<()> {
        let material = self.parameter(card, "MATERIAL")?.to_owned();
        let elements = self.parameter(card, "ELSET")?;
        let elements = self.source.set(SetKind::Element, elements, card.place)?;
        self.model.sections.push(Section {
            elements,
            material,
            orientation: card.card.get("ORIENTATION").map(str::to_owned),
            place: card.place,
        });
        Ok(())
    }

    pub(super) fn orientation(&mut self, card: &DeckCard) -> Result<()> {
        let name = self.parameter(card, "NAME")?.to_owned();
        if let Some(other) = card
            .card
            .get("DEFINITION")
            .filter(|d| !d.eq_ignore_ascii_case("COORDINATES"))
        {
            let what = format!("*ORIENTATION, DEFINITION={other} is not supported");
            return Err(self
                .source
                .error(card.place, what)
                .expected("DEFINITION=COORDINATES"));
        }
        let system = card.card.get("SYSTEM").unwrap_or("RECTANGULAR");
        let is_cylindrical = self.is_cylindrical(system, "SYSTEM", card.place)?;
        let Some(first) = card.lines.first() else {
            let error = self
                .source
                .error(card.place, "*ORIENTATION lacks its points");
            return Err(error.expected(POINTS));
        };
        let line = self.source.line(first);
        let is_name = |field: &str| field.starts_with(|c: char| c.is_ascii_alphabetic());
        let (points, others) = match line.get(0).filter(|field| is_name(field)) {
            Some(name) => self.distributed_points(name, line.place)?,
            None => (self.points(&line, 0, !is_cylindrical)?, Vec::new()),
        };
        let rotation = match card.lines.get(1) {
            None => None,
            Some(second) => {
                let line = self.source.line(second);
                let axis = self.source.whole(&line, 0, "an axis, 1 to 3")?;
                let angle = self
                    .source
                    .optional_number(&line, 1, "an angle in degrees")?;
                angle
                    .filter(|&angle| angle != 0.0)
                    .map(|angle| (axis, angle))
            }
        };
        self.model.orientations.push(Orientation {
            name,
            is_cylindrical,
            points,
            others,
            rotation,
            place: card.place,
        });
        Ok(())
    }

    /// Points a and b from field `k` on; a third point behind them is an origin that both are seen from.
    fn points(&self, line: &Line<'_>, k: usize, has_origin: bool) -> Result<[[f64; 3]; 2]> {
        let points = [
            self.source.vector(line, k, POINTS)?,
            self.source.vector(line, k + 3, POINTS)?,
        ];
        let origin = match line.get(k + 6) {
            Some(_) if has_origin => {
                self.source
                    .vector(line, k + 6, "the coordinates of the origin")?
            }
            _ => [0.0; 3],
        };
        Ok(points.map(|point| std::array::from_fn(|i| point[i] - origin[i])))
    }

    fn distributed_points(&self, name: &str, place: Place) -> Result<Distributed> {
        let is_it = |d: &&Distribution| d.name.eq_ignore_ascii_case(name);
        match self.model.distributions.iter().find(is_it) {
            Some(found) => Ok((found.points, found.others.clone())),
            None => {
                let what = format!("distribution `{name}` does not exist");
                Err(self
                    .source
                    .error(place, what)
                    .expected("a *DISTRIBUTION before this line"))
            }
        }
    }

    /// Points of orientations: the first line those of all elements, further ones of single elements and sets.
    pub(super) fn distribution(&mut self, card: &DeckCard) -> Result<()> {
        let name = self.parameter(card, "NAME")?.to_owned();
        let mut all = None;
        let mut others = Vec::new();
        for data in &card.lines {
            let line = self.source.line(data);
            let points = self.points(&line, 1, true)?;
            match line.get(0) {
                None => all = Some(points),
                Some(field) => others.push((self.source.elements(field, line.place)?, points)),
            }
        }
        let Some(points) = all else {
            let error = self
                .source
                .error(card.place, "*DISTRIBUTION without a line for all elements");
            return Err(error.expected("a first line that begins with a comma"));
        };
        self.model.distributions.push(Distribution {
            name,
            points,
            others,
        });
        Ok(())
    }

    /// Whether a system is cylindrical and not rectangular.
    pub(super) fn is_cylindrical(
        &self,
        system: &str,
        parameter: &str,
        place: Place,
    ) -> Result<bool> {
        match system.to_ascii_uppercase().as_bytes() {
            [b'R', ..] => Ok(false),
            [b'C', ..] => Ok(true),
            _ => {
                let what = format!("{parameter}={system} is not supported");
                Err(self
                    .source
                    .error(place, what)
                    .expected("a rectangular or cylindrical system"))
            }
        }
    }
}
