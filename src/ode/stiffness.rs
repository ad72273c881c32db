//! A test for stiffness that costs next to nothing: is the step as short as stability asks?
//!
//! Of methods whose last two stages both lie at c = 1, their difference tells `|lambda|`, the size of the Jacobian's
//! dominant eigenvalue. Looked at every few hundred steps, and at each step while it looks bad; it must never change
//! a solve, only warn.

use super::steps::Stepper;
use super::{Field, HostState, OdeError, Scheme, State, Warning};

/// Steps between two looks while all is well.
const EVERY: u64 = 250;
/// Looks in a row that make a warning, and good ones that clear the suspicion (DOPRI5 has 15 and 6).
const SUSPICIONS: u32 = 15;
const CLEARED: u32 = 6;
/// Where the stability region of the 5th order pairs ends on the negative real axis, about.
const REGION: f64 = 3.25;

/// The test's memory.
///
/// # References
/// Hairer, Wanner (1996), Solving Ordinary Differential Equations II, section IV.2; the code DOPRI5.
pub(super) struct StiffnessTest {
    /// Whether the method's stages can tell.
    applies: bool,
    steps: u64,
    suspicions: u32,
    good: u32,
    noticed: Option<Warning>,
    /// `e_{s-1} - e_{s-2}`, and the weights of `y1` without those of stage s - 2's argument.
    stages: Vec<f64>,
    arguments: Vec<f64>,
}

impl StiffnessTest {
    pub fn of<S: State>(scheme: &Scheme<S>) -> Self {
        let tableau = scheme.tableau;
        let s = tableau.num_stages();
        let applies = scheme.carries_fsal() && s > 2 && tableau.c[s - 2] == 1.0;
        let (mut stages, mut arguments) = (vec![0.0; s], vec![0.0; s]);
        if applies {
            (stages[s - 1], stages[s - 2]) = (1.0, -1.0);
            for (j, argument) in arguments.iter_mut().enumerate() {
                *argument = tableau.b[j] - tableau.row(s - 2).get(j).copied().unwrap_or(0.0);
            }
        }
        StiffnessTest { applies, steps: 0, suspicions: 0, good: 0, noticed: None, stages, arguments }
    }

    /// Whether the next step will be looked at.
    #[inline(always)]
    pub fn is_due(&self) -> bool {
        self.applies && self.noticed.is_none() && (self.suspicions > 0 || self.steps.is_multiple_of(EVERY))
    }

    /// How many steps until the next is due.
    pub fn steps_to_next(&self) -> u64 {
        EVERY - self.steps % EVERY
    }

    /// Counts steps; looks at the last, the only one, if it was due.
    #[inline]
    pub fn after_steps<Y: HostState, F: Field<Y>>(
        &mut self,
        steps: u64,
        stepper: &mut Stepper<Y>,
        f: &F,
        scheme: &Scheme<Y>,
    ) -> Result<(), OdeError> {
        let due = self.is_due();
        self.steps += steps;
        if due { self.look(stepper, f, scheme) } else { Ok(()) }
    }

    fn look<Y: HostState, F: Field<Y>>(
        &mut self,
        stepper: &mut Stepper<Y>,
        f: &F,
        scheme: &Scheme<Y>,
    ) -> Result<(), OdeError> {
        stepper.complete(f, scheme)?;
        let (stages, arguments) = stepper.sizes(scheme, &self.stages, &self.arguments);
        if stages > REGION * arguments {
            self.good = 0;
            self.suspicions += 1;
            if self.suspicions == SUSPICIONS {
                self.noticed = Some(Warning::Stiff { t: stepper.carry.t });
            }
        } else {
            self.good += 1;
            if self.good == CLEARED {
                self.suspicions = 0;
            }
        }
        Ok(())
    }

    /// What was noticed.
    pub fn warning(&self) -> Option<Warning> {
        self.noticed
    }
}
