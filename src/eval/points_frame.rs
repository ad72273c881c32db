//! The frame of points: their columns, their units, and the noise on rounded columns.

use super::file_name;
use crate::data::{Points, Rounding, Standardizer, grouped};
use crate::io::{listed, shortened};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The frame of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PointsFrame {
    /// The name of the data.
    pub name: String,
    /// Names of the columns, `[d]`.
    pub columns: Vec<String>,
    /// Center of standardized coordinates, in the units of the data.
    pub mean: Vec<f64>,
    /// Unit of standardized coordinates, in the units of the data.
    #[serde(rename = "sd")]
    pub std: Vec<f64>,
    /// The lower triangular factor of standardized coordinates `[d, d]`, row-major
    /// ([`Standardizer::factor`]). Empty for toy densities, for tables that are nearly singular, and in older runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factor: Vec<f64>,
    /// Entropy of the density in the units of the data, if known.
    pub entropy_nats: Option<f64>,
    /// A hash of the data; the name of a toy density.
    pub fingerprint: String,
    /// The step of each column to which noise of one step is added, 0 for other columns; empty if there is no noise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<f64>,
    /// Number of rows of the table that were left out because a cell is missing; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_dropped: Option<usize>,
    /// The column of labels; `None` for labels in memory, and without classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_column: Option<String>,
    /// The names of the classes; empty without classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class_names: Vec<String>,
}

impl PointsFrame {
    /// The frame of training points.
    pub(crate) fn of(train: &Points, fingerprint: String) -> PointsFrame {
        PointsFrame {
            name: file_name(&train.name),
            columns: train.columns.clone(),
            mean: train.standard.mean.clone(),
            std: train.standard.std.clone(),
            factor: train.standard.factor.clone(),
            entropy_nats: None,
            fingerprint,
            steps: Vec::new(),
            num_dropped: None,
            label_column: Some(train.label_column().to_owned()).filter(|name| !name.is_empty()),
            class_names: train.class_names().to_vec(),
        }
    }

    /// The number of classes, if there are any.
    pub fn classes(&self) -> Option<usize> {
        Some(self.class_names.len()).filter(|&count| count > 0)
    }

    /// The classes as text, if there are any: `3 by species: setosa, versicolor, virginica`.
    pub fn classes_text(&self) -> Option<String> {
        classes_text(&self.class_names, self.label_column.as_deref())
    }

    /// The number of rows that were left out as text, if there are any.
    pub fn dropped_text(&self) -> Option<String> {
        dropped_text(self.num_dropped)
    }

    /// The steps of the noise, if there is any.
    pub fn rounding(&self) -> Option<Rounding> {
        (!self.steps.is_empty()).then(|| Rounding::with_steps(self.steps.clone()))
    }

    /// The columns with noise, and their steps.
    pub fn dequantized(&self) -> BTreeMap<String, f64> {
        let all = self.columns.iter().cloned().zip(self.steps.iter().copied());
        all.filter(|(_, step)| *step > 0.0).collect()
    }

    /// The columns with noise as text, if there are any: `age (step 1), height (step 0.5)`.
    pub fn dequantized_text(&self) -> Option<String> {
        dequantized_text(&self.dequantized())
    }

    /// The transform between the units of the data and standardized coordinates.
    pub fn standard(&self) -> Standardizer {
        Standardizer { mean: self.mean.clone(), std: self.std.clone(), factor: self.factor.clone() }
    }
}

/// Classes as text, if there are any.
pub(crate) fn classes_text(names: &[String], column: Option<&str>) -> Option<String> {
    let by = column.map_or_else(String::new, |name| format!(" by {}", shortened(name)));
    (!names.is_empty()).then(|| format!("{}{by}: {}", names.len(), listed(names, "classes")))
}

/// A number of rows that were left out as text.
pub(crate) fn dropped_text(count: Option<usize>) -> Option<String> {
    let noun = |count| if count == 1 { "row with a missing cell" } else { "rows with missing cells" };
    count.map(|count| format!("{} {}", grouped(count as u64), noun(count)))
}

/// Columns with noise of one step as text, at most the first 12.
pub(crate) fn dequantized_text(columns: &BTreeMap<String, f64>) -> Option<String> {
    let name = |(name, step): (&String, &f64)| format!("{} (step {step})", shortened(name));
    let first: Vec<String> = columns.iter().take(NAMED).map(name).collect();
    let more = columns.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!first.is_empty()).then(|| first.join(", ") + &more)
}

/// The largest number of columns with noise in a text.
const NAMED: usize = 12;
