//! Warnings about the data of a run: scores that say less than they seem to.

use super::{Given, Parts, PointsFrame, TrainingData};
use crate::data::{Points, subset};
use crate::io::shortened;
use std::collections::HashSet;

/// Rows of a column that are compared.
const ROWS: usize = 10_000;
/// Columns are not judged from fewer rows.
const LEAST: usize = 20;
/// A standard deviation below this fraction of the mean is that of the last digits of a double.
const DIGITS: f64 = 1e6 * f64::EPSILON;
/// Share of the rows of a validation or test file that may also be training rows.
const SHARED: f64 = 0.05;
/// A standard error from fewer rows is rough.
const FEW: usize = 30;
/// The largest number of columns named in a message.
const NAMED: usize = 6;

/// Warnings for the data of a run and the sizes of its parts. `frame` is that of points that are dequantized.
pub(super) fn warnings(data: &TrainingData, parts: Parts, frame: Option<&PointsFrame>) -> Vec<String> {
    let mut found = match data {
        TrainingData::Points(points, given) => {
            let of_columns = frame.map(dequantized).into_iter().chain(repeated(points, frame));
            of_columns.chain(constant(points)).chain(shared(points, given)).collect()
        }
        TrainingData::Images(images, given) => {
            let is_same = |other: &crate::data::ImageSet| match (images.fingerprint(), other.fingerprint()) {
                (Ok(a), Ok(b)) => a == b,
                _ => false,
            };
            let given = [("validation", &given.validation), ("test", &given.test)];
            let same = given.into_iter().filter(|(_, set)| set.as_ref().is_some_and(|set| is_same(set)));
            same.map(|(option, _)| known(option, "all images")).collect()
        }
        TrainingData::Image(_) | TrainingData::Toy(_) => Vec::new(),
    };
    if !matches!(data, TrainingData::Image(_) | TrainingData::Toy(_)) {
        found.extend(few("validation", parts.validation));
        found.extend(few("test", parts.test));
    }
    found
}

/// A note about the columns that get noise.
fn dequantized(frame: &PointsFrame) -> String {
    match frame.dequantized_text() {
        Some(columns) => format!(
            "dequantized columns: {columns}; scores are densities of values with uniform noise of one step"
        ),
        None => "note: `dequantize` adds no noise: no column is rounded to a step".to_owned(),
    }
}

/// A warning about columns in which most values occur several times and that get no noise.
fn repeated(points: &Points, dequantized: Option<&PointsFrame>) -> Option<String> {
    let all: Vec<usize> = (0..points.len()).collect();
    let (rows, d) = (subset(&all, None, ROWS, 0), points.dim());
    let distinct = |a: usize| {
        let mut column: Vec<f64> = rows.iter().map(|&row| points.values()[row * d + a]).collect();
        column.sort_by(f64::total_cmp);
        column.dedup();
        column.len()
    };
    let is_repeated = |&(_, values): &(usize, usize)| rows.len() >= LEAST && 2 * values < rows.len();
    let has_noise =
        |a: &usize| dequantized.and_then(|frame| frame.steps.get(*a)).is_some_and(|&step| step > 0.0);
    let found: Vec<_> =
        (0..d).filter(|a| !has_noise(a)).map(|a| (a, distinct(a))).filter(is_repeated).collect();
    let name = |&(a, values): &(usize, usize)| {
        format!("{} ({values} different values)", shortened(&points.columns[a]))
    };
    let mut names: Vec<String> = found.iter().take(NAMED).map(name).collect();
    if found.len() > NAMED {
        names.push(format!("and {} more", found.len() - NAMED));
    }
    let (noun, n) = (if found.len() == 1 { "column" } else { "columns" }, rows.len());
    let remedy = match dequantized {
        None => {
            "add noise of the size of the rounding with `dequantize`, or leave such columns out with `columns`"
        }
        Some(_) => {
            "`dequantize` found no step to which they are rounded; leave such columns out with `columns`"
        }
    };
    (!found.is_empty()).then(|| {
        format!(
            "warning: {noun} {} in {n} rows: a density can be arbitrarily large at values that repeat, so the NLL has no lower bound; {remedy}",
            names.join(", ")
        )
    })
}

/// Warnings about columns that vary only in the last digits.
fn constant(points: &Points) -> impl Iterator<Item = String> {
    let (mean, std) = (&points.standard.mean, &points.standard.std);
    let is_constant = |&a: &usize| std[a] < DIGITS * mean[a].abs();
    (0..points.dim()).filter(is_constant).take(NAMED).map(|a| {
        format!(
            "warning: column {} varies by {:.1e} around {}: its values differ only in the last digits of a double; leave it out with `columns`",
            shortened(&points.columns[a]), std[a], mean[a]
        )
    })
}

/// Warnings about validation and test files that hold training rows.
fn shared(points: &Points, given: &Given<Points>) -> Vec<String> {
    let given = [("validation", &given.validation), ("test", &given.test)];
    if given.iter().all(|(_, other)| other.is_none()) {
        return Vec::new();
    }
    // Adding 0 makes 0 of -0.
    let bits = |row: &[f64]| row.iter().map(|x| (x + 0.0).to_bits()).collect::<Vec<u64>>();
    let rows: HashSet<Vec<u64>> = points.values().chunks_exact(points.dim()).map(bits).collect();
    let warning = |(option, other): (&'static str, &Option<Points>)| {
        let other = other.as_ref()?;
        let count = other.values().chunks_exact(other.dim()).filter(|row| rows.contains(&bits(row))).count();
        let is_shared = count > 0 && count as f64 >= SHARED * other.len() as f64;
        is_shared.then(|| known(option, &format!("{count} of {} rows", other.len())))
    };
    given.into_iter().filter_map(warning).collect()
}

fn known(option: &str, what: &str) -> String {
    let effect = match option {
        "test" => "the test score is not that of new data",
        _ => "validation does not show whether the flow overfits",
    };
    format!("warning: {what} of `{option}` are also in DATA: {effect}")
}

/// A warning about a part with few rows.
fn few(part: &str, rows: usize) -> Option<String> {
    match rows {
        1 => Some(format!("warning: the {part} part has 1 row, so its score has no standard error (± ?)")),
        2..FEW => Some(format!(
            "warning: the {part} part has {rows} rows, so the standard error of its score is rough"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rounding;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};
    use rand_distr::StandardNormal;

    /// What a column is made of.
    const KINDS: [&str; 6] = ["normal", "far", "two", "integer", "rounded", "constant"];

    fn column(kind: &str, n: usize, rng: &mut SmallRng) -> Vec<f64> {
        let of = |rng: &mut SmallRng| -> f64 { rng.sample(StandardNormal) };
        let one = |rng: &mut SmallRng, i: usize| match kind {
            "normal" => of(rng),
            "far" => 1e9 + of(rng),
            "two" => f64::from(i.is_multiple_of(3)),
            "integer" => (4.0 * of(rng)).round(),
            "rounded" => (10.0 * of(rng)).round() / 10.0,
            _ => 3.0 + 1e-14 * of(rng),
        };
        (0..n).map(|i| one(rng, i)).collect()
    }

    fn table(kinds: &[&str], n: usize, rng: &mut SmallRng) -> Points {
        let columns: Vec<Vec<f64>> = kinds.iter().map(|kind| column(kind, n, rng)).collect();
        let rows: Vec<Vec<f64>> = (0..n).map(|i| columns.iter().map(|column| column[i]).collect()).collect();
        let mut points = Points::from_rows(rows).unwrap();
        points.columns = (0..kinds.len()).map(|a| format!("c{a}")).collect();
        points
    }

    /// Tables of 1 to 5 columns of six kinds and 300 to 1,000 rows, files with 0 to 100 % training rows, and parts of 1
    /// to 60 rows.
    #[test]
    fn warnings_name_the_columns_files_and_parts_that_they_are_about() {
        let mut rng = SmallRng::seed_from_u64(1);
        let (mut drawn, mut shares) = ([0; KINDS.len()], [0; 3]);
        for _ in 0..150 {
            let which: Vec<usize> =
                (0..rng.random_range(1..6)).map(|_| rng.random_range(0..KINDS.len())).collect();
            let kinds: Vec<&str> = which.iter().map(|&kind| KINDS[kind]).collect();
            let points = table(&kinds, rng.random_range(300..1_000), &mut rng);
            which.iter().for_each(|&kind| drawn[kind] += 1);
            let text = repeated(&points, None).unwrap_or_default();
            // With noise on the rounded columns, only columns without a step remain.
            let mut frame = PointsFrame::of(&points, String::new());
            frame.steps = Rounding::of(&points).steps().to_vec();
            let with_noise = repeated(&points, Some(&frame)).unwrap_or_default();
            let told = dequantized(&frame);
            let near: Vec<String> = constant(&points).collect();
            for (a, &kind) in kinds.iter().enumerate() {
                let repeats = text.contains(&format!("c{a} ("));
                // Values around 3 with a spread of 1e-14 are multiples of 4.4e-16 and repeat.
                let is_known = kind == "constant" || repeats == ["two", "integer", "rounded"].contains(&kind);
                assert!(is_known, "{kind}: {text}");
                let has_step = ["two", "integer", "rounded"].contains(&kind);
                assert!(kind == "constant" || !with_noise.contains(&format!("c{a} (")), "{with_noise}");
                assert!(kind == "constant" || told.contains(&format!("c{a} (step")) == has_step, "{told}");
                let is_near = near.iter().any(|text| text.contains(&format!("column c{a} varies")));
                assert_eq!(is_near, kind == "constant", "{near:?}");
            }
            // A file of new rows and a share of training rows.
            let (n, share) = (rng.random_range(1..60), [0.0, 0.5, 1.0][rng.random_range(0..3)]);
            let kinds: Vec<&str> = kinds.iter().map(|_| "normal").collect();
            let (points, new) = (table(&kinds, 300, &mut rng), table(&kinds, 60, &mut rng));
            let known = (share * f64::from(n)).ceil() as usize;
            let rows = points.values().chunks_exact(kinds.len()).take(known);
            let rows = rows.chain(new.values().chunks_exact(kinds.len())).take((n as usize).max(2));
            let other = Points::from_rows(rows.map(<[f64]>::to_vec).collect::<Vec<_>>()).unwrap();
            shares[usize::from(known > 0) + usize::from(share == 1.0)] += 1;
            let is_test = rng.random::<bool>();
            let given =
                Given { validation: (!is_test).then(|| other.clone()), test: is_test.then(|| other.clone()) };
            let text = shared(&points, &given).join(" ");
            assert_eq!(text.contains(&format!("{known} of {} rows", other.len())), known > 0, "{text}");
            assert_eq!(text.contains("test"), known > 0 && is_test, "{text}");
            let text = few("test", n as usize).unwrap_or_default();
            assert_eq!((text.contains("± ?"), text.contains("rough")), (n == 1, (2..30).contains(&n)));
        }
        assert!(drawn.iter().chain(&shares).all(|&count| count > 10), "{drawn:?} {shares:?}");
    }
}
