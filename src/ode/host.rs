//! The driver for host values: the loop over [`attempt`], and what it keeps.

use super::attempt::attempt_with;
use super::{
    Carry, Drive, Field, FieldFailure, Method, Ode, OdeError, Outcome, Rate, Real, Scheme, Solution, Span,
    State, Stats, Tolerance, attempt, start, status,
};

/// States whose clock runs on the host.
pub trait HostState: Drive<Clock = f64, Solution = Solution<Self>> {}
impl<Y: Drive<Clock = f64, Solution = Solution<Y>>> HostState for Y {}

macro_rules! host_drive {
    ({$($generics:tt)*} $t:ty, $real:ty, $unrolled:literal) => {
        impl<$($generics)*> Drive for $t {
            type Solution = Solution<Self>;
            type Options = ();

            fn default_tolerance(&self) -> Tolerance {
                <$real as Real>::TOLERANCE
            }
            fn drive<F: Field<Self>>(ode: &Ode<Self, F>, t0: f64, t1: f64, y0: Self) -> Result<Solution<Self>, OdeError> {
                solve::<$unrolled, _, _>(ode, t0, t1, y0)
            }
        }
    };
}
host_drive!({} f64, f64, true);
host_drive!({} f32, f32, true);
host_drive!({R: Real<Clock = f64>, const N: usize} [R; N], R, true);
host_drive!({R: Real<Clock = f64>} Vec<R>, R, false);

/// Whether optimised loops are built for each method: not in builds for debugging, where compiling counts more
/// and the plain loop gives the same bits.
pub(super) const UNROLL: bool = !cfg!(debug_assertions);

/// Solves. `UNROLLED`: for each method a loop of its own, compiled for its numbers, which pays for small arrays.
pub(super) fn solve<const UNROLLED: bool, Y: HostState, F: Field<Y>>(
    ode: &Ode<Y, F>,
    t0: f64,
    t1: f64,
    y0: Y,
) -> Result<Solution<Y>, OdeError> {
    let controller = ode.resolved_controller()?;
    let scheme = ode.scheme(&controller, y0.default_tolerance())?;
    scheme.check_span(t0, t1)?;
    check_state(&y0)?;
    let f = &ode.field;
    let span = Span::new(t0, t1);
    let mut ts = vec![t0];
    let mut carry = start(f, &scheme, &span, y0).map_err(|failure| field_error(failure, 0.0))?;
    let (c, saved) = (&mut carry, |carry: &Carry<Y>| ts.push(carry.t));
    if UNROLLED && UNROLL {
        const EULER: usize = Method::Euler as usize;
        const RK4: usize = Method::Rk4 as usize;
        const TSIT5: usize = Method::Tsit5 as usize;
        const DOPRI5: usize = Method::Dopri5 as usize;
        match ode.method {
            Method::Euler => run::<true, Y, F>(f, &scheme.with_known::<EULER>(), &span, c, saved)?,
            Method::Rk4 => run::<true, Y, F>(f, &scheme.with_known::<RK4>(), &span, c, saved)?,
            Method::Tsit5 => run::<true, Y, F>(f, &scheme.with_known::<TSIT5>(), &span, c, saved)?,
            Method::Dopri5 => run::<true, Y, F>(f, &scheme.with_known::<DOPRI5>(), &span, c, saved)?,
        }
    } else {
        run::<false, Y, F>(f, &scheme, &span, c, saved)?;
    }
    let outcome = Outcome::of(&carry).expect("invariant: the loop ends only with an outcome");
    let (stats, tolerance) = (Stats::of(&carry), scheme.tolerance);
    Ok(Solution { t1: carry.t, y1: carry.y, ts, stats, outcome, tolerance })
}

/// Runs to the end; `saved` sees the carry after each accepted step.
#[inline(always)]
fn run<const UNROLLED: bool, Y: HostState, F: Field<Y>>(
    f: &F,
    scheme: &Scheme,
    span: &Span<f64>,
    carry: &mut Carry<Y>,
    mut saved: impl FnMut(&Carry<Y>),
) -> Result<(), OdeError> {
    while carry.status == status::RUNNING {
        attempt_with::<UNROLLED, Y, F>(f, scheme, span, carry)
            .map_err(|failure| field_error(failure, carry.num_steps))?;
        if carry.accepted {
            saved(carry);
        }
    }
    Ok(())
}

fn field_error(failure: FieldFailure<f64>, num_steps: f64) -> OdeError {
    OdeError::Field { t: failure.t, step: num_steps as u64, source: failure.source }
}

fn check_state<Y: State<Clock = f64>>(y0: &Y) -> Result<(), OdeError> {
    let component = y0.first_non_finite(&0.0);
    if component < 0.0 {
        return Ok(());
    }
    Err(OdeError::InitialState { component: component as usize })
}

/// y at each of `ts`, the first of which is where `y0` stands, with every default of [`Ode`].
///
/// The solve steps exactly onto each time, with the step size, the last stage and the controller's history
/// carried across it. So more times cost more steps: it is made for tens of them, not for the points of a curve.
///
/// # Errors
/// Times that are not monotone (equal neighbours are allowed) or not finite, a y0 that is not finite, a field
/// that failed, and [`OdeError::Stopped`] where the solve ended before the last time.
///
/// # Examples
/// ```
/// let ys = flowline::ode::odeint(|_t, y| [y[1], -y[0]], [1.0, 0.0], &[0.0, 1.0, 2.0])?;
/// assert!((ys[2][0] - 2.0_f64.cos()).abs() < 1e-5);
/// # Ok::<(), flowline::ode::OdeError>(())
/// ```
pub fn odeint<Y: HostState, R: Rate<Y>>(
    f: impl Fn(f64, &Y) -> R,
    y0: Y,
    ts: &[f64],
) -> Result<Vec<Y>, OdeError> {
    let ode = Ode::new(f);
    let controller = ode.resolved_controller()?;
    let scheme = ode.scheme(&controller, y0.default_tolerance())?;
    let (Some(&t0), Some(&t1)) = (ts.first(), ts.last()) else {
        return Ok(Vec::new());
    };
    check_times(&scheme, ts, t1 < t0)?;
    check_state(&y0)?;
    let mut ys = vec![y0.clone()];
    let whole = Span::new(t0, t1);
    let mut carry = start(&ode.field, &scheme, &whole, y0).map_err(|failure| field_error(failure, 0.0))?;
    for &t in &ts[1..] {
        land_on(&ode.field, &scheme, &whole, t, &mut carry)?;
        ys.push(carry.y.clone());
    }
    Ok(ys)
}

/// Steps on until t, and leaves the carry ready to go on from there with the step size it had before the cut.
fn land_on<Y: HostState, F: Field<Y>>(
    field: &F,
    scheme: &Scheme,
    whole: &Span<f64>,
    t: f64,
    carry: &mut Carry<Y>,
) -> Result<(), OdeError> {
    if carry.t == t {
        return Ok(());
    }
    let span = Span { t1: t, ..whole.clone() };
    let mut uncut = carry.dt;
    while carry.status == status::RUNNING {
        uncut = carry.dt;
        attempt(field, scheme, &span, carry).map_err(|failure| field_error(failure, carry.num_steps))?;
    }
    match Outcome::of(carry) {
        Some(Outcome::Completed) => {
            carry.status = status::RUNNING;
            if carry.dt.abs() < uncut.abs() {
                carry.dt = uncut;
            }
            Ok(())
        }
        Some(outcome) => Err(OdeError::Stopped { outcome }),
        None => unreachable!("invariant: the loop ends only with an outcome"),
    }
}

fn check_times(scheme: &Scheme, ts: &[f64], backward: bool) -> Result<(), OdeError> {
    for &t in ts {
        scheme.check_span(ts[0], t)?;
    }
    for (index, pair) in ts.windows(2).enumerate() {
        let (previous, next) = (pair[0], pair[1]);
        if if backward { next > previous } else { next < previous } {
            return Err(OdeError::TimesNotMonotone { index, previous, next });
        }
    }
    Ok(())
}
