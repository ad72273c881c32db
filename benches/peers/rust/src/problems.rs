//! The problems with their initial and end values.
//!
//! A problem is a function of slices. If the number of unknowns is small, the compiler knows their length, so every crate gets
//! the same right-hand side for any vector type.
//!
//! End values are in `reference.json`: computed by Gragg-Bulirsch-Stoer extrapolation in 113-bit numbers with tolerance 1e-24
//! (bruss1d 1e-19), rounded to f64.

/// An autonomous initial value problem from t = 0 to `T1`.
pub trait Problem: Copy + Send + Sync + 'static {
    const NAME: &'static str;
    const T1: f64;
    fn y0() -> Vec<f64>;
    fn f(y: &[f64], dy: &mut [f64]);
    /// y(T1), if known.
    fn end() -> Option<Vec<f64>> {
        published(Self::NAME)
    }
}

/// The end value with this name in `reference.json`: an object of arrays of numbers.
fn published(name: &str) -> Option<Vec<f64>> {
    let text = include_str!("../reference.json");
    let (_, from_name) = text.split_once(&format!("\"{name}\": ["))?;
    let (values, _) = from_name.split_once(']')?;
    Some(values.split(',').map(|v| v.trim().parse().expect("the file holds numbers")).collect())
}

/// The Lorenz equations with rho = 28, over 20 units of time: an error of 1e-16 grows to 1e-8.
#[derive(Clone, Copy)]
pub struct Lorenz20;

/// Lorenz 1963 with sigma = 10 and beta = 8/3.
#[inline(always)]
pub fn lorenz(rho: f64, y: &[f64], dy: &mut [f64]) {
    let (y, dy) = (&y[..3], &mut dy[..3]);
    dy[0] = 10.0 * (y[1] - y[0]);
    dy[1] = y[0] * (rho - y[2]) - y[1];
    dy[2] = y[0] * y[1] - 8.0 / 3.0 * y[2];
}

impl Problem for Lorenz20 {
    const NAME: &'static str = "lorenz20";
    const T1: f64 = 20.0;
    fn y0() -> Vec<f64> {
        vec![1.0; 3]
    }
    #[inline(always)]
    fn f(y: &[f64], dy: &mut [f64]) {
        lorenz(28.0, y, dy);
    }
}

/// The Lotka-Volterra equations: prey and predators.
#[derive(Clone, Copy)]
pub struct Lotka;

impl Problem for Lotka {
    const NAME: &'static str = "lotka";
    const T1: f64 = 10.0;
    fn y0() -> Vec<f64> {
        vec![1.0; 2]
    }
    #[inline(always)]
    fn f(y: &[f64], dy: &mut [f64]) {
        let (y, dy) = (&y[..2], &mut dy[..2]);
        dy[0] = 1.5 * y[0] - y[0] * y[1];
        dy[1] = -3.0 * y[1] + y[0] * y[1];
    }
}

/// Seven bodies in a plane, of masses 1 to 7: Hairer, Norsett, Wanner I, section II.10.
#[derive(Clone, Copy)]
pub struct Pleiades;

impl Problem for Pleiades {
    const NAME: &'static str = "pleiades";
    const T1: f64 = 3.0;
    fn y0() -> Vec<f64> {
        let x = [3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0];
        let y = [3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0];
        let vx = [0.0, 0.0, 0.0, 0.0, 0.0, 1.75, -1.5];
        let vy = [0.0, 0.0, 0.0, -1.25, 1.0, 0.0, 0.0];
        [x, y, vx, vy].concat()
    }
    #[inline(always)]
    fn f(y: &[f64], dy: &mut [f64]) {
        let (y, dy) = (&y[..28], &mut dy[..28]);
        dy[..14].copy_from_slice(&y[14..]);
        for i in 0..7 {
            let (mut ax, mut ay) = (0.0, 0.0);
            for j in 0..7 {
                if j != i {
                    let (dx, dy) = (y[j] - y[i], y[7 + j] - y[7 + i]);
                    let r2 = dx * dx + dy * dy;
                    let pull = (j + 1) as f64 / (r2 * r2.sqrt());
                    ax += pull * dx;
                    ay += pull * dy;
                }
            }
            dy[14 + i] = ax;
            dy[21 + i] = ay;
        }
    }
}

/// A closed orbit of the restricted three-body problem: Hairer, Norsett, Wanner I, eq. II.0.1.
#[derive(Clone, Copy)]
pub struct Arenstorf;

impl Problem for Arenstorf {
    const NAME: &'static str = "arenstorf";
    const T1: f64 = 17.0652165601579625588917206249;
    fn y0() -> Vec<f64> {
        vec![0.994, 0.0, 0.0, -2.00158510637908252240537862224]
    }
    #[inline(always)]
    fn f(y: &[f64], dy: &mut [f64]) {
        let (y, dy) = (&y[..4], &mut dy[..4]);
        let mu = 0.012277471;
        let mu1 = 1.0 - mu;
        let a = (y[0] + mu) * (y[0] + mu) + y[1] * y[1];
        let b = (y[0] - mu1) * (y[0] - mu1) + y[1] * y[1];
        let (d1, d2) = (a * a.sqrt(), b * b.sqrt());
        dy[0] = y[2];
        dy[1] = y[3];
        dy[2] = y[0] + 2.0 * y[3] - mu1 * (y[0] + mu) / d1 - mu * (y[0] - mu1) / d2;
        dy[3] = y[1] - 2.0 * y[2] - mu1 * y[1] / d1 - mu * y[1] / d2;
    }
}

/// The Brusselator with diffusion on a line of `POINTS` points: Hairer, Norsett, Wanner I, section II.10.
#[derive(Clone, Copy)]
pub struct Brusselator<const POINTS: usize>;

impl<const POINTS: usize> Problem for Brusselator<POINTS> {
    const NAME: &'static str = if POINTS == 200 { "bruss1d" } else { "bruss1d-small" };
    const T1: f64 = 10.0;
    fn y0() -> Vec<f64> {
        let x = |i: usize| (i + 1) as f64 / (POINTS + 1) as f64;
        let u = (0..POINTS).map(|i| 1.0 + (std::f64::consts::TAU * x(i)).sin());
        u.chain(std::iter::repeat_n(3.0, POINTS)).collect()
    }
    #[inline(always)]
    fn f(y: &[f64], dy: &mut [f64]) {
        let n = POINTS;
        let c = 2e-4 * ((n + 1) * (n + 1)) as f64;
        let (u, v) = y[..2 * n].split_at(n);
        let (du, dv) = dy[..2 * n].split_at_mut(n);
        let rate = |ul: f64, u: f64, ur: f64, vl: f64, v: f64, vr: f64| {
            let uuv = u * u * v;
            (1.0 + uuv - 4.0 * u + c * (ul - 2.0 * u + ur), 3.0 * u - uuv + c * (vl - 2.0 * v + vr))
        };
        (du[0], dv[0]) = rate(1.0, u[0], u[1], 3.0, v[0], v[1]);
        for i in 1..n - 1 {
            (du[i], dv[i]) = rate(u[i - 1], u[i], u[i + 1], v[i - 1], v[i], v[i + 1]);
        }
        (du[n - 1], dv[n - 1]) = rate(u[n - 2], u[n - 1], 1.0, v[n - 2], v[n - 1], 3.0);
    }
}
