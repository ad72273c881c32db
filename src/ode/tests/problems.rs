//! Published problems and their end values, as data for the accuracy tests.
//!
//! Classes A, B and D: DETEST (Hull, Enright, Fellen, Sedgwick 1972), with the end values of Enright and
//! Pryce (1987), Two FORTRAN packages for assessing initial value methods, ACM TOMS 13, 1-27 (its code,
//! algorithm 648). The end values of A1, A2, A5, B3 and B4 are from a run in 80-bit arithmetic, which differs
//! from the published values by 2e-14 to 3e-13. Arenstorf's orbit and the Pleiades: Hairer, Norsett, Wanner
//! I, sections II.0 and II.10; the end value of the Pleiades is from the Bari test set for IVP solvers
//! (plei.f). The Brusselator: the same book, eq. I.16.12 with A = 1, B = 3, its end value to 32 digits by
//! Mathematica. The end values of Lorenz are from a run in 80-bit arithmetic.

/// y' = f(t, y) from y0 at t = 0 to `end` at t1.
pub struct Problem<const N: usize> {
    pub name: &'static str,
    pub f: fn(f64, &[f64; N]) -> [f64; N],
    pub y0: [f64; N],
    pub t1: f64,
    pub end: [f64; N],
}

/// Single equations.
pub const DETEST_A: [Problem<1>; 5] = [
    Problem { name: "A1", f: |_, y| [-y[0]], y0: [1.0], t1: 20.0, end: [2.06115362243855795e-9] },
    Problem {
        name: "A2",
        f: |_, y| [-y[0] * y[0] * y[0] / 2.0],
        y0: [1.0],
        t1: 20.0,
        end: [0.218217890235992382],
    },
    Problem { name: "A3", f: |t, y| [y[0] * t.cos()], y0: [1.0], t1: 20.0, end: [2.491650271850414] },
    Problem {
        name: "A4",
        f: |_, y| [y[0] / 4.0 * (1.0 - y[0] / 20.0)],
        y0: [1.0],
        t1: 20.0,
        end: [17.73016648131483],
    },
    Problem {
        name: "A5",
        f: |t, y| [(y[0] - t) / (y[0] + t)],
        y0: [4.0],
        t1: 20.0,
        end: [-0.788782668896401208],
    },
];

/// Predator and prey populations.
pub const B1: Problem<2> = Problem {
    name: "B1",
    f: |_, y| [2.0 * (y[0] - y[0] * y[1]), -(y[1] - y[0] * y[1])],
    y0: [1.0, 3.0],
    t1: 20.0,
    end: [0.6761876008576667, 0.1860816099640036],
};

/// Small systems.
pub const DETEST_B: [Problem<3>; 4] = [
    Problem {
        name: "B2",
        f: |_, y| [-y[0] + y[1], y[0] - 2.0 * y[1] + y[2], y[1] - y[2]],
        y0: [2.0, 0.0, 1.0],
        t1: 20.0,
        end: [1.000000001030576, 1.0, 0.9999999989694235],
    },
    Problem {
        name: "B3",
        f: |_, y| [-y[0], y[0] - y[1] * y[1], y[1] * y[1]],
        y0: [1.0, 0.0, 0.0],
        t1: 20.0,
        end: [2.06115362243855797e-9, 0.0525722802204851265, 0.947427717718361237],
    },
    Problem {
        name: "B4",
        f: |_, y| {
            let r = (y[0] * y[0] + y[1] * y[1]).sqrt();
            [-y[1] - y[0] * y[2] / r, y[0] - y[1] * y[2] / r, y[0] / r]
        },
        y0: [3.0, 0.0, 0.0],
        t1: 20.0,
        end: [0.982695092800653317, 2.19844708169493009, 0.912945250727627621],
    },
    Problem {
        name: "B5",
        f: |_, y| [y[1] * y[2], -y[0] * y[2], -0.51 * y[0] * y[1]],
        y0: [0.0, 1.0, 1.0],
        t1: 20.0,
        end: [-0.9396570798729192, -0.3421177754000779, 0.7414126596199957],
    },
];

const fn orbit(name: &'static str, eccentricity: f64, speed: f64, end: [f64; 4]) -> Problem<4> {
    let f = |_: f64, y: &[f64; 4]| {
        let r2 = y[0] * y[0] + y[1] * y[1];
        let r3 = r2 * r2.sqrt();
        [y[2], y[3], -y[0] / r3, -y[1] / r3]
    };
    Problem { name, f, y0: [1.0 - eccentricity, 0.0, 0.0, speed], t1: 20.0, end }
}

/// Two bodies on orbits of eccentricity e = 0.1 to 0.9; the speed at the start is sqrt((1 + e) / (1 - e)).
pub const DETEST_D: [Problem<4>; 5] = [
    orbit(
        "D1",
        0.1,
        1.1055415967851332,
        [0.2198835352008397, 0.9427076846341813, -0.9787659841058176, 0.3287977990962036],
    ),
    orbit(
        "D2",
        0.3,
        1.3627702877384937,
        [-0.1777027357140412, 0.9467784719905892, -1.030294163192969, 0.1211074890053952],
    ),
    orbit(
        "D3",
        0.5,
        1.7320508075688772,
        [-0.5780432953035362, 0.8633840009194192, -0.9595083730380727, -0.0650491512671209],
    ),
    orbit(
        "D4",
        0.7,
        2.3804761428476166,
        [-0.9538990293416394, 0.6907409024219432, -0.8212674270877433, -0.1539574259125825],
    ),
    orbit(
        "D5",
        0.9,
        4.3588989435406735,
        [-1.295266250987574, 0.4003938963792321, -0.6775390924707566, -0.1270838154278686],
    ),
];

/// A closed orbit around earth and moon. At t1 a change of x(0) is 2.2 million times as large.
pub const ARENSTORF: Problem<4> = Problem {
    name: "Arenstorf",
    f: |_, y| {
        let mu = 0.012277471;
        let mu1 = 1.0 - mu;
        let cube = |x: f64| {
            let r2 = x * x + y[1] * y[1];
            r2 * r2.sqrt()
        };
        let (d1, d2) = (cube(y[0] + mu), cube(y[0] - mu1));
        [
            y[2],
            y[3],
            y[0] + 2.0 * y[3] - mu1 * (y[0] + mu) / d1 - mu * (y[0] - mu1) / d2,
            y[1] - 2.0 * y[2] - mu1 * y[1] / d1 - mu * y[1] / d2,
        ]
    },
    y0: [0.994, 0.0, 0.0, -2.00158510637908252240537862224],
    t1: 17.0652165601579625588917206249,
    end: [0.994, 0.0, 0.0, -2.00158510637908252240537862224],
};

/// Seven bodies of masses 1 to 7 that come close to each other: x, y, x', y'.
pub const PLEIADES: Problem<28> = Problem {
    name: "Pleiades",
    f: |_, y| {
        let mut dy = [0.0; 28];
        dy[..14].copy_from_slice(&y[14..]);
        for i in 0..7 {
            for j in (0..7).filter(|j| *j != i) {
                let (rx, ry) = (y[j] - y[i], y[7 + j] - y[7 + i]);
                let r2 = rx * rx + ry * ry;
                let pull = (j + 1) as f64 / (r2 * r2.sqrt());
                dy[14 + i] += pull * rx;
                dy[21 + i] += pull * ry;
            }
        }
        dy
    },
    y0: [
        3.0, 3.0, -1.0, -3.0, 2.0, -2.0, 2.0, 3.0, -3.0, 2.0, 0.0, 0.0, -4.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        1.75, -1.5, 0.0, 0.0, 0.0, -1.25, 1.0, 0.0, 0.0,
    ],
    t1: 3.0,
    end: [
        0.3706139143970502,
        3.237284092057233,
        -3.222559032418324,
        0.659709145577531,
        0.3425581707156584,
        1.562172101400631,
        -0.7003092922212495,
        -3.943437585517392,
        -3.27138097397255,
        5.225081843456543,
        -2.59061243497747,
        1.198213693392275,
        -0.2429682344935824,
        1.09144924042898,
        3.417003806314313,
        1.354584501625501,
        -2.590065597810775,
        2.025053734714242,
        -1.155815100160448,
        -0.8072988170223021,
        0.595239635420871,
        -3.74124496123401,
        0.377345968575063,
        0.9386858869551074,
        0.3667922227200571,
        -0.347404635380849,
        2.344915448180937,
        -1.947020434263292,
    ],
};

/// A chemical oscillator.
pub const BRUSSELATOR: Problem<2> = Problem {
    name: "Brusselator",
    f: |_, y| {
        let yyz = y[0] * y[0] * y[1];
        [1.0 - 4.0 * y[0] + yyz, 3.0 * y[0] - yyz]
    },
    y0: [1.5, 3.0],
    t1: 20.0,
    end: [0.4986370712683478291402859646476, 4.596780349452011024598321237263],
};

const fn lorenz(name: &'static str, t1: f64, end: [f64; 3]) -> Problem<3> {
    let f = |_: f64, y: &[f64; 3]| {
        [10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8.0 / 3.0 * y[2]]
    };
    Problem { name, f, y0: [1.0; 3], t1, end }
}

/// The Lorenz equations with rho = 28.
pub const LORENZ: [Problem<3>; 3] = [
    lorenz("Lorenz to 1", 1.0, [-9.37857001092506180, -8.35703378842664392, 29.3623253373634275]),
    lorenz("Lorenz to 5", 5.0, [-6.51211369941959865, -6.97404278841707586, 23.9241295721033699]),
    lorenz("Lorenz to 10", 10.0, [-4.90268754113464478, -3.74387292180291261, 24.6908581027905636]),
];
