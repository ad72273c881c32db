//! Errors of evaluation. Each message names the request, its value and, if there is one, the remedy.

use crate::ode::{Outcome, shown};

/// Why a learned density cannot be evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The class does not exist in this run, or the run has classes and none is given.
    #[error("{}", class_asked(*asked, *classes))]
    Class {
        /// The class given.
        asked: Option<usize>,
        /// The number of classes in the run.
        classes: Option<usize>,
    },
    /// The request is only defined for runs on image sets.
    #[error("{what} are only available for runs trained on a set of images; this run was trained on {name}")]
    NoImages {
        /// The request.
        what: &'static str,
        /// The data of the run.
        name: String,
    },
    /// The request is not defined for runs on image sets.
    #[error("{what} are not available for runs trained on a set of images: {reason}")]
    NotForImages {
        /// The request.
        what: &'static str,
        /// The reason.
        reason: &'static str,
    },
    /// Bits/dim, means over noise and anomaly scores need at least one draw.
    #[error("0 draws: must be at least 1")]
    NoDraws,
    /// A sample needs at least one step.
    #[error("0 steps: a sample needs at least 1")]
    NoSteps,
    /// Samples in a fixed number of steps have no exact log-density.
    #[error(
        "{what} need as many steps as their tolerance requires, but the steps are fixed to {steps}; leave `steps` out"
    )]
    FixedSteps {
        /// The results.
        what: &'static str,
        /// The number of steps.
        steps: usize,
    },
    /// A row with given coordinates has none, has no others, or has an infinite one.
    #[error(
        "the row {row} gives {num_given} of {dim} coordinates; give finite numbers for some, and NaN for those to be sampled"
    )]
    Given {
        /// The row.
        row: String,
        /// The number of coordinates that are not NaN.
        num_given: usize,
        /// The number of coordinates.
        dim: usize,
    },
    /// A number in a row of an image is not a pixel value.
    #[error("row {row}: pixel {pixel} is {value}; pixel values are whole numbers from 0 to 255")]
    Pixel {
        /// The number of the row, from 1.
        row: usize,
        /// The number of the pixel value, from 0.
        pixel: usize,
        /// The value.
        value: f64,
    },
    /// The request is only defined for an image or points in the plane.
    #[error(
        "{what} needs two coordinates, but the data of this run have {dim}; use `sample` instead, and for points plot pairs of columns"
    )]
    NoPlane {
        /// The request.
        what: &'static str,
        /// Number of coordinates of the data.
        dim: usize,
    },
    /// The density of a run with classes is not shown over the plane.
    #[error("{what} is not available for a table with classes; sample each class, and plot its rows")]
    NoPlaneOfClasses {
        /// The request.
        what: &'static str,
    },
    /// The label of a row is no class of the run.
    #[error("{place}: \"{class}\" is no class of this run; its classes are {classes}")]
    NoSuchClass {
        /// The row, in words.
        place: String,
        /// The index of the row, from 0.
        row: usize,
        /// Its label.
        class: String,
        /// The classes of the run.
        classes: String,
    },
    /// A sample is not finite in the units of the data.
    #[error(
        "sample {row} is {value} in the units of the data, beyond the range of 64-bit numbers (1.8e308); scale the columns down and train again"
    )]
    Overflow {
        /// The number of the sample, from 1.
        row: usize,
        /// The coordinates of the sample.
        value: String,
    },
    /// The density cannot be evaluated at this point.
    #[error("{place} is {value}: {reason}")]
    Point {
        /// The place of the point: `point 3`, counted from 1, or a line of a file.
        place: String,
        /// The index of the point, from 0.
        row: usize,
        /// The coordinates of the point, in pixels or in the units of the data.
        value: String,
        /// The reason.
        reason: String,
    },
    /// With this margin, the corners of the grid are so far from the data that densities are not evaluated
    /// there.
    #[error(
        "`margin`={margin}: the corners of the grid would be {reach:.0} standard deviations from the mean of the data, but densities are evaluated only within {far} standard deviations; give at most {most:.0} pixels"
    )]
    Margin {
        /// The margin in pixels.
        margin: f64,
        /// Distance of the farthest corner, in standard deviations.
        reach: f64,
        /// The limit, in standard deviations.
        far: f64,
        /// The largest possible margin, in whole pixels.
        most: f64,
    },
    /// The solve of some points ended early.
    #[error(
        "{place} (farthest from the data: {value}): {}; loosen the tolerances `rtol` and `atol`, or remove far points",
        stopped(outcome)
    )]
    Unsolved {
        /// The place of the points: `points 1 to 64` or `point 1`, counted from 1, or lines of a file.
        place: String,
        /// The first and the last index, from 0.
        rows: [usize; 2],
        /// The point farthest from the mean of the data, in pixels or in the units of the data.
        value: String,
        /// Why the solve ended, with t and the number of steps.
        outcome: Outcome,
    },
}

fn class_asked(asked: Option<usize>, classes: Option<usize>) -> String {
    match (asked, classes) {
        (Some(asked), None) => {
            format!("`class`={asked}: this run was trained without classes; leave `class` out")
        }
        (None, Some(classes)) => {
            format!("this run has {classes} classes; choose one with `class`; the first class is 0")
        }
        (asked, classes) => {
            let (asked, most) = (asked.unwrap_or(0), classes.unwrap_or(1).saturating_sub(1));
            format!("`class`={asked}: this run has classes 0 to {most}; choose one of them")
        }
    }
}

/// Why a solve ended, without remedies that only callers of the solver can apply.
pub fn stopped(outcome: &Outcome) -> String {
    match outcome {
        Outcome::MaxSteps { t, step } => format!("no solution after {step} steps, at t={}", shown(*t)),
        outcome => outcome.to_string(),
    }
}
