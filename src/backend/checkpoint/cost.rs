//! Closed forms for the minimum number of steps that deliver states in reverse order from a few stored states.
//!
//! Binomial coefficients saturate at `u64::MAX`. No result depends on a saturated coefficient: r is the
//! smallest number with C(k + r, k) >= m, so every coefficient that is used is at most r m. A table by
//! dynamic programming would cost O(c N^2) and need N in advance. The closed forms cost O(r).

use super::StoredState;

/// C(n, k), saturating at `u64::MAX`.
pub fn binomial(n: u64, k: u64) -> u64 {
    if k > n {
        return 0;
    }
    let k = k.min(n - k);
    let mut c: u128 = 1;
    for i in 1..=k {
        c = c * u128::from(n - k + i) / u128::from(i);
        if c > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    c as u64
}

/// The smallest r >= 0 with C(k + r, k) >= m: the maximum number of times that a step is run.
///
/// # References
/// A. Griewank and A. Walther, Algorithm 799: revolve, ACM TOMS 26 (2000), section 2, where r is called the
/// repetition number.
fn repetitions(k: u64, m: u64) -> u64 {
    if m <= 1 {
        return 0;
    }
    if m - 1 <= k {
        return 1;
    }
    match k {
        1 => m - 1,
        2 => {
            // The smallest r with (r + 1)(r + 2) / 2 >= m, from the root of the quadratic.
            let r = ((8 * m - 7).isqrt() - 1) / 2;
            r - u64::from(r > 0 && r * (r + 1) / 2 >= m) + u64::from((r + 1) * (r + 2) / 2 < m)
        }
        _ => {
            let (mut r, mut c) = (1, u128::from(k) + 1);
            while c < u128::from(m) {
                r += 1;
                c = c * u128::from(k + r) / u128::from(r);
            }
            r
        }
    }
}

/// T(k, m): the minimum number of steps that deliver the m states p+m-1, ..., p from the stored state p with k
/// slots, including the slot of p.
///
/// T(k, m) = r m - C(k + r, k + 1) with r the smallest integer >= 0 for which C(k + r, k) >= m.
///
/// # References
/// Griewank and Walther (2000), equation 5, with the delivering step counted separately.
pub fn steps_to_deliver(k: usize, m: usize) -> u64 {
    let (k, m) = (k as u64, m as u64);
    match repetitions(k, m) {
        0 => 0,
        1 => m - 1,
        _ if k == 1 => m * (m - 1) / 2,
        r => r * m - binomial(k + r, k + 1),
    }
}

/// E(n, c) = T(c, n + 1) - n: the minimum number of extra steps of a backward sweep over n steps with c
/// slots, attained when n is known in advance.
///
/// Extra steps are recomputed forward steps. They include neither the n steps of the forward sweep nor the
/// stages that the adjoint of a step evaluates itself.
pub fn fewest_extra(n: usize, c: usize) -> u64 {
    steps_to_deliver(c, n + 1) - n as u64
}

/// W(p, n) = sum over j of T(c - j, p_{j+1} - p_j): the extra steps of a backward sweep over n steps from the
/// stored states p_0 = 0 < p_1 < ..., with c slots; the last p_{j+1} is n. States from y_n on are ignored.
pub fn extra_steps(kept: &[StoredState], n: usize, c: usize) -> u64 {
    let used = kept.partition_point(|p| p.index < n);
    let end = |j: usize| if j + 1 < used { kept[j + 1].index } else { n };
    (0..used).map(|j| steps_to_deliver(c - j, end(j) - kept[j].index)).sum()
}

/// The distance from a stored state to the next one to store, for m states and k >= 2 slots: the largest
/// optimal distance, min(C(k + r - 1, k), m - C(k + r - 2, k - 1)).
///
/// The smallest optimal distance is max(C(k + r - 2, k), m - C(k + r - 1, k - 1)). All distances between the
/// two are optimal. The largest stores the fewest states.
///
/// # Panics
/// Unless k >= 2 and m >= 2.
pub fn next_distance(k: usize, m: usize) -> usize {
    assert!(
        k >= 2 && m >= 2,
        "invariant: next_distance needs at least 2 slots and 2 states, got {k} and {m}"
    );
    let (k, m) = (k as u64, m as u64);
    match repetitions(k, m) {
        1 => 1,
        r => binomial(k + r - 1, k).min(m - binomial(k + r - 2, k - 1)) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T(k, m) by its recurrence: run s steps, store the state, deliver the states after it, then the states
    /// before it.
    fn table(k_max: usize, m_max: usize) -> Vec<Vec<u64>> {
        let mut d: Vec<Vec<u64>> = vec![vec![0; m_max + 1]; k_max + 1];
        for k in 1..=k_max {
            for m in 2..=m_max {
                let run_on = (m * (m - 1) / 2) as u64;
                let split = |s: usize| s as u64 + d[k - 1][m - s] + d[k][s];
                d[k][m] = if k == 1 { run_on } else { (1..m).map(split).min().expect("m >= 2") };
            }
        }
        d
    }

    #[test]
    fn the_closed_form_is_the_dynamic_program() {
        let d = table(8, 200);
        for k in 1..=8 {
            for m in 0..=200 {
                assert_eq!(steps_to_deliver(k, m), d[k][m], "T({k}, {m})");
            }
        }
    }

    #[test]
    fn the_next_distance_is_the_largest_optimal_one() {
        let d = table(8, 200);
        for k in 2..=8 {
            for m in 2..=200 {
                let optimal = |s: &usize| *s as u64 + d[k - 1][m - s] + d[k][*s] == d[k][m];
                assert_eq!(Some(next_distance(k, m)), (1..m).rfind(optimal), "k = {k}, m = {m}");
            }
        }
    }

    /// The smallest r by its definition.
    fn searched(k: u64, m: u64) -> u64 {
        let mut r = 0;
        while binomial(k + r, k) < m {
            r += 1;
        }
        r
    }

    #[test]
    fn repetitions_by_a_root_are_those_by_search() {
        for m in (2..20_000u64).chain([1 << 40, (1 << 40) + 1]) {
            assert_eq!(repetitions(2, m), searched(2, m), "m = {m}");
        }
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        assert_eq!(binomial(200, 100), u64::MAX);
        assert_eq!(steps_to_deliver(usize::MAX, 1 << 40), (1 << 40) - 1);
        let (m, r) = (u64::from(u32::MAX), searched(128, u64::from(u32::MAX)));
        assert_eq!(steps_to_deliver(128, m as usize), r * m - binomial(128 + r, 129));
        assert_eq!(fewest_extra(10_000, 1), 10_000 * 9_999 / 2);
    }
}
