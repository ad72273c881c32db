//! Special functions that the standard library does not have, in f64.
//!
//! # References
//! Wichura (1988), Algorithm AS 241: The Percentage Points of the Normal Distribution. Abramowitz, Stegun (1964), 6.1.41,
//! 6.3.18, 6.4.11 (asymptotic expansions), 6.3.5, 6.4.6 (recurrences), 6.3.7 (reflection).

use std::f64::consts::PI;

/// `(num(x) / den(x))` of polynomials by ascending powers.
fn ratio<const N: usize>(x: f64, num: [f64; N], den: [f64; N]) -> f64 {
    let at = |c: [f64; N]| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
    at(num) / at(den)
}

/// The y with `erf(y) = x`; infinite for 1 and -1, NaN beyond.
pub(crate) fn erf_inv(x: f64) -> f64 {
    // The quantile of the normal distribution at (1 + x) / 2 is sqrt(2) erf_inv(x).
    let q = 0.5 * x;
    if q.abs() <= 0.425 {
        return std::f64::consts::FRAC_1_SQRT_2 * q * ratio(0.180625 - q * q, CENTER.0, CENTER.1);
    }
    let r = (-(0.5 * (1.0 - x.abs())).ln()).sqrt();
    let size = if r == f64::INFINITY {
        r
    } else if r <= 5.0 {
        ratio(r - 1.6, MIDDLE.0, MIDDLE.1)
    } else {
        ratio(r - 5.0, TAIL.0, TAIL.1)
    };
    size.copysign(x) * std::f64::consts::FRAC_1_SQRT_2
}

type Ratio = ([f64; 8], [f64; 8]);
const CENTER: Ratio = (
    [
        3.387_132_872_796_366_608,
        1.331_416_678_917_843_774_5e2,
        1.971_590_950_306_551_442_7e3,
        1.373_169_376_550_946_112_5e4,
        4.592_195_393_154_987_145_7e4,
        6.726_577_092_700_870_085_3e4,
        3.343_057_558_358_812_810_5e4,
        2.509_080_928_730_122_672_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091_125_2e1,
        6.871_870_074_920_579_083e2,
        5.394_196_021_424_751_107_7e3,
        2.121_379_430_158_659_586_7e4,
        3.930_789_580_009_271_061e4,
        2.872_908_573_572_194_267_4e4,
        5.226_495_278_852_854_561e3,
    ],
);
const MIDDLE: Ratio = (
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_9,
        5.769_497_221_460_691_405_5,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        2.417_807_251_774_506_117_7e-1,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_4e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_4,
        6.897_673_349_851_000_045_5e-1,
        1.481_039_764_274_800_745_9e-1,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
);
const TAIL: Ratio = (
    [
        6.657_904_643_501_103_777_2,
        5.463_784_911_164_114_369_9,
        1.784_826_539_917_291_335_8,
        2.965_605_718_285_048_912_3e-1,
        2.653_218_952_657_612_309_3e-2,
        1.242_660_947_388_078_438_6e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        5.998_322_065_558_879_376_9e-1,
        1.369_298_809_227_358_053_1e-1,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591e-4,
        1.846_318_317_510_054_681_8e-5,
        1.421_511_758_316_445_888_7e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
);

/// From this number on, the asymptotic expansions have the precision of f64.
const LARGE: f64 = 12.0;

/// `sin(pi x)`, accurate near its zeros.
fn sin_pi(x: f64) -> f64 {
    let near = (x - x.round()) * PI;
    if x.round() % 2.0 == 0.0 { near.sin() } else { -near.sin() }
}

/// `ln |Gamma(x)|`; infinite at 0 and the negative integers.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    if x == f64::INFINITY || (x <= 0.0 && x == x.floor()) {
        return f64::INFINITY;
    }
    if x < 0.5 {
        return (PI / sin_pi(x).abs()).ln() - ln_gamma(1.0 - x);
    }
    let (mut z, mut product) = (x, 1.0);
    while z < LARGE {
        product *= z;
        z += 1.0;
    }
    // B_2k / (2k (2k - 1) z^(2k - 1))
    let terms = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let s = 1.0 / (z * z);
    let tail = terms.iter().rev().fold(0.0, |sum, c| sum * s + c) / z;
    let half_ln_two_pi = 0.918_938_533_204_672_741_8;
    (z - 0.5) * (z.ln() - 1.0) - 0.5 + half_ln_two_pi + tail - f64::ln(product)
}

/// The largest n whose factorial is finite.
const ORDER_MAX: f64 = 170.0;

/// The derivative of order n + 1 of `ln Gamma(x)`; n is a number 0, 1, 2, ..., 170. For n of 2 and more, it is NaN for
/// x <= 0.
pub(crate) fn polygamma(n: f64, x: f64) -> f64 {
    match n {
        0.0 => digamma(x),
        1.0 if x < 0.5 && x.is_finite() => {
            let sin = sin_pi(x);
            (PI / sin) * (PI / sin) - polygamma(1.0, 1.0 - x)
        }
        _ if (1.0..=ORDER_MAX).contains(&n) && n == n.floor() && x > 0.0 => higher(n, x),
        _ => f64::NAN,
    }
}

fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return (-1.0_f64 / x).copysign(-x);
    }
    if x < 0.5 {
        let near = (x - x.round()) * PI;
        return if near == 0.0 || x == f64::NEG_INFINITY {
            f64::NAN
        } else {
            digamma(1.0 - x) - PI / near.tan()
        };
    }
    let (mut z, mut sum) = (x, 0.0);
    while z < LARGE {
        sum += 1.0 / z;
        z += 1.0;
    }
    // B_2k / (2k z^2k)
    let terms =
        [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32_760.0, 1.0 / 12.0];
    let s = 1.0 / (z * z);
    z.ln() - 0.5 / z - s * terms.iter().rev().fold(0.0, |sum, c| sum * s + c) - sum
}

/// `(-1)^(n + 1) n! sum_k (x + k)^-(n + 1)` by the formula of Euler and Maclaurin, for x > 0 and n >= 1.
fn higher(n: f64, x: f64) -> f64 {
    if x == f64::INFINITY {
        return 0.0;
    }
    let (mut z, mut sum, power) = (x, 0.0, n + 1.0);
    while z < LARGE + n {
        sum += z.powf(-power);
        z += 1.0;
    }
    // z^-n / n + z^-(n + 1) / 2 + sum over k of B_2k / (2k)! (n + 1) (n + 2) .. (n + 2k - 1) z^-(n + 2k)
    let mut tail = z.powf(-n) / n + 0.5 * z.powf(-power);
    let bernoulli = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
    ];
    let mut factor = (n + 1.0) * z.powf(-n - 2.0) / 2.0;
    for (k, b) in bernoulli.iter().enumerate() {
        tail += b * factor;
        let k = 2.0 * k as f64 + 2.0;
        factor *= (n + k) * (n + k + 1.0) / ((k + 1.0) * (k + 2.0) * z * z);
    }
    let factorial: f64 = (1..=n as u64).map(|k| k as f64).product();
    let size = factorial * (sum + tail);
    if n % 2.0 == 0.0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of mpmath 1.4 with 50 digits.
    #[test]
    #[allow(clippy::too_many_lines, reason = "a table")]
    fn published_values() {
        let near = |got: f64, want: f64, what: &str| {
            let off = (got - want).abs() / want.abs().max(1.0);
            assert!(off < 1e-14 || got == want, "{what}: {got} for {want}");
        };
        for (x, want) in [
            (-0.999999999999, -5.042031898572696),
            (-0.9, -1.1630871536766743),
            (-0.5, -0.4769362762044699),
            (-1e-300, -8.86226925452758e-301),
            (1e-09, 8.86226925452758e-10),
            (0.3, 0.2724627147267543),
            (0.849, 1.0154111558190084),
            (0.851, 1.0204064737926706),
            (0.99, 1.8213863677184494),
            (0.9999999999, 4.572824958544925),
            (0.9999999999999999, 5.8635847487551676),
        ] {
            near(erf_inv(x), want, &format!("erf_inv of {x}"));
        }
        for (x, want) in [
            (1e-300, 690.7755278982137),
            (1e-05, 11.512919692895826),
            (0.3, 1.0957979948180756),
            (0.5, 0.5723649429247001),
            (1.0, 0.0),
            (1.4616321449683622, -0.12148629053584961),
            (2.0, 0.0),
            (3.7, 1.428072326665388),
            (11.9, 17.25847745059552),
            (30.0, 71.25703896716801),
            (170.5, 704.0044277342047),
            (10000000000.0, 220258509288.81058),
            (1e+305, 7.012884533631839e+307),
            (-0.5, 1.2655121234846454),
            (-1.5, 0.860047015376481),
            (-3.000001, 12.023749832480275),
            (-20.3, -41.887292480135244),
            (-100000.3, -1051301.3191134701),
        ] {
            near(ln_gamma(x), want, &format!("ln_gamma of {x}"));
        }
        for (x, want) in [
            (1e-10, -10000000000.577215),
            (0.001, -1000.5755719318103),
            (0.3, -3.502524222200133),
            (1.0, -0.5772156649015329),
            (1.4616321449683622, -9.241265521729427e-17),
            (2.5, 0.7031566406452432),
            (11.0, 2.351752589066721),
            (50.0, 3.901989673427892),
            (10000000000.0, 23.025850929890456),
            (-0.5, 0.03648997397857652),
            (-1.3, 2.8825405488661673),
            (-7.9, -7.540007224419479),
            (-100.25, 7.754238959208646),
        ] {
            near(polygamma(0.0, x), want, &format!("digamma of {x}"));
        }
        for (x, want) in [
            (0.001, 1000001.6425331958),
            (0.3, 12.245364546107732),
            (1.0, 1.6449340668482264),
            (2.5, 0.49035775610023485),
            (11.0, 0.09516633568168574),
            (50.0, 0.020201333226697125),
            (1000000.0, 1.0000005000001667e-06),
            (-0.5, 8.934802200544679),
            (-7.9, 103.23693140003948),
        ] {
            near(polygamma(1.0, x), want, &format!("trigamma of {x}"));
        }
        for (x, want) in [
            (0.001, -2000000002.3976321),
            (0.3, -75.27253658872604),
            (1.0, -2.4041138063191885),
            (2.5, -0.2362040516417274),
            (11.0, -0.009049834970802067),
            (50.0, -0.0004080799893375969),
            (1000000.0, -1.0000010000005e-12),
        ] {
            near(polygamma(2.0, x), want, &format!("polygamma 2 of {x}"));
        }
        for (x, want) in [
            (0.001, 6000000000006.469),
            (0.3, 743.1417646550498),
            (1.0, 6.493939402266829),
            (2.5, 0.22390584881725206),
            (11.0, 0.0017199013042898683),
            (50.0, 1.6486398720682052e-05),
            (1000000.0, 2.000003000002e-18),
        ] {
            near(polygamma(3.0, x), want, &format!("polygamma 3 of {x}"));
        }
        for (x, want) in [
            (0.001, 5.04e+27),
            (0.3, 76818182.99849322),
            (1.0, 5060.54987523764),
            (2.5, 3.565236352523131),
            (11.0, 5.011111598689363e-05),
            (50.0, 9.878312891032569e-10),
            (1000000.0, 7.2000252000336e-40),
        ] {
            near(polygamma(7.0, x), want, &format!("polygamma 7 of {x}"));
        }
    }
}
