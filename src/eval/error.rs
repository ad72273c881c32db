//! What a learned density can be asked wrongly. Each message names what was asked, its value and the remedy.

use crate::ode::Outcome;

/// Why a question to a learned density has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// A class that a run does not have was asked for, or none of a run that has some.
    #[error("{}", class_asked(*asked, *classes))]
    Class {
        /// The class asked for.
        asked: Option<usize>,
        /// How many the run has.
        classes: Option<usize>,
    },
    /// What only images have was asked of a run on other data.
    #[error("{what} is only available for runs trained on a set of images; this run was trained on {name}")]
    NoImages {
        /// What was asked for.
        what: &'static str,
        /// What it learned.
        name: String,
    },
    /// Bits of images by the mean over no draw.
    #[error("--draws=0: must be a whole number from 1")]
    NoDraws,
    /// What only a figure of the plane has was asked of points of another number of coordinates.
    #[error(
        "{what} needs two coordinates, and this run's points have {dim}; draw points with `sample` and plot pairs of columns"
    )]
    NoPlane {
        /// What was asked for.
        what: &'static str,
        /// Coordinates of the points.
        dim: usize,
    },
    /// A sample is no number in the units of the data.
    #[error(
        "sample {row} is {value} in the units of the data, beyond the range of 64-bit numbers (1.8e308); scale the columns down and train again"
    )]
    Overflow {
        /// Which, from 1.
        row: usize,
        /// The sample.
        value: String,
    },
    /// A point where no density is evaluated.
    #[error("{place} is {value}: {reason}")]
    Point {
        /// Which: `point 3`, counted from 1, or a line of a file.
        place: String,
        /// Which, from 0.
        row: usize,
        /// The point, in pixels.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A margin that reaches farther than densities are evaluated.
    #[error(
        "--margin={margin}: the corners would lie {reach:.0} standard deviations from the image's center of mass, and densities are evaluated within {far}; give at most {most:.0} pixels"
    )]
    Margin {
        /// The margin in pixels.
        margin: f64,
        /// Where the farthest corner would lie.
        reach: f64,
        /// Where it may lie.
        far: f64,
        /// The largest margin.
        most: f64,
    },
    /// The solve of some points ended early.
    #[error(
        "{place} (farthest from the data: {value}): {}; loosen --rtol and --atol, or remove far points",
        stopped(outcome)
    )]
    Unsolved {
        /// Which: `points 1 to 64` or `point 1`, counted from 1, or lines of a file.
        place: String,
        /// The first and the last, from 0.
        rows: [usize; 2],
        /// The one farthest from the image's center of mass, in pixels.
        value: String,
        /// Why, with t and step.
        outcome: Outcome,
    },
}

fn class_asked(asked: Option<usize>, classes: Option<usize>) -> String {
    match (asked, classes) {
        (Some(asked), None) => {
            format!("--label={asked}: this run was trained without classes; leave --label out")
        }
        (None, Some(classes)) => {
            format!("this run has {classes} classes; choose one with --label K, K from 0")
        }
        (asked, classes) => {
            let (asked, most) = (asked.unwrap_or(0), classes.unwrap_or(1).saturating_sub(1));
            format!("--label={asked}: this run has classes 0 to {most}")
        }
    }
}

/// Why a solve ended, without the remedies of who calls the solver himself.
pub(crate) fn stopped(outcome: &Outcome) -> String {
    match outcome {
        Outcome::MaxSteps { t, step } => format!("no solution after {step} steps, at t={t}"),
        outcome => outcome.to_string(),
    }
}
