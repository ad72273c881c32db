//! `ButcherTableau`: the numbers of an explicit Runge-Kutta method.
//!
//! Data only: whether a method reuses its last stage (FSAL) or has an error estimate is read off the numbers,
//! never a flag set by hand, so that a table cannot contradict itself. The tables themselves stand in
//! `tableaux/`, one file each, with their published digits; tests check every order condition.

/// An explicit Runge-Kutta method of s stages:
/// `k_i = f(t + c_i h, y + h sum_j a_ij k_j)`, `y1 = y + h sum_i b_i k_i`, error estimate `h sum_i b_err_i k_i`.
///
/// # References
/// Hairer, Norsett, Wanner (1993), Solving Ordinary Differential Equations I, section II.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ButcherTableau {
    /// The name that a command line takes.
    pub name: &'static str,
    /// `a[i - 1]` holds the i weights of stage `i` (counted from 0; stage 0 needs none).
    pub a: &'static [&'static [f64]],
    /// Weights of the solution, s of them.
    pub b: &'static [f64],
    /// `b - b_embedded`, s of them; `None` where the method has no error estimate.
    pub b_err: Option<&'static [f64]>,
    /// The same for a second estimate of lower order that steadies the first; few methods have one.
    pub b_err_low: Option<&'static [f64]>,
    /// Times of the stages, as parts of the step.
    pub c: &'static [f64],
    /// Order of the solution.
    pub order: u32,
    /// k, the power of h that the error estimate goes with: one more than the order of the embedded solution.
    /// Step sizes go with the k-th root. Of no meaning without `b_err`.
    pub error_order: u32,
}

impl ButcherTableau {
    /// s, the number of stages.
    pub const fn num_stages(&self) -> usize {
        self.b.len()
    }

    /// First same as last: the last stage is f(t + h, y1), which is the next step's first.
    pub const fn is_fsal(&self) -> bool {
        let s = self.b.len();
        if s < 2 || self.b[s - 1] != 0.0 || self.c[s - 1] != 1.0 || self.c[0] != 0.0 {
            return false;
        }
        let last = self.a[s - 2];
        let mut i = 0;
        while i < s - 1 {
            if last[i] != self.b[i] {
                return false;
            }
            i += 1;
        }
        true
    }
}
