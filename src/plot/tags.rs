//! Names beside curves, placed so that they cover nothing.
use super::{
    clip::{self, Bounds},
    sheet::LABEL,
    text,
};

/// Font size, and line height.
pub(super) const SIZE: u32 = LABEL - 2;
const LINE: f64 = 38.0;
/// Space between a curve's end and its name.
const GAP: f64 = 16.0;

/// A name, and points of its curve on the screen beside which it may be placed, best first.
#[derive(Debug, Clone)]
pub(super) struct Tag {
    pub name: String,
    pub ends: Vec<[f64; 2]>,
    pub color: [u8; 3],
}

impl Tag {
    fn width(&self) -> f64 {
        f64::from(text::width(&self.name, SIZE))
    }
}

/// Width of the names right of the axes.
pub(super) fn room(names: impl Iterator<Item = String>) -> u32 {
    GAP as u32 + names.map(|name| text::width(&name, SIZE) as u32).max().unwrap_or(0)
}

/// Vertical positions of names right of the axes, each as near to its curve's end as the other names allow.
pub(super) fn stacked(ends: &[f64], [top, bottom]: [f64; 2]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|&a, &b| ends[a].total_cmp(&ends[b]).then(a.cmp(&b)));
    // Names that touch form a group, which is centered at the mean of their curves' ends. A group is this mean and the
    // number of its names.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    let first = |&(mean, count): &(f64, usize)| {
        let half = 0.5 * LINE * (count - 1) as f64;
        mean.clamp(top + half, (bottom - half).max(top + half)) - half
    };
    for &i in &order {
        let mut group = (ends[i], 1);
        while let Some(before) = groups.last() {
            if first(before) + LINE * before.1 as f64 <= first(&group) {
                break;
            }
            let count = before.1 + group.1;
            let mean = (before.0 * before.1 as f64 + group.0 * group.1 as f64) / count as f64;
            group = (mean, count);
            groups.pop();
        }
        groups.push(group);
    }
    let places = groups.iter().flat_map(|group| (0..group.1).map(move |k| first(group) + LINE * k as f64));
    let mut found = vec![0.0; ends.len()];
    order.iter().zip(places).for_each(|(&i, place)| found[i] = place);
    found
}

/// Positions of names inside the axes: the left end of the center line of each name. A name is beside a point of its
/// curve and covers no curve and no other name. `None` if a name does not fit.
pub(super) fn placed(tags: &[Tag], curves: &[Vec<[f64; 2]>], bounds: Bounds) -> Option<Vec<[f64; 2]>> {
    let mut taken: Vec<Bounds> = Vec::new();
    let mut places = Vec::new();
    for tag in tags {
        let width = tag.width();
        let box_at = |[x, y]: [f64; 2]| [x, y - 0.5 * LINE, x + width, y + 0.5 * LINE];
        let is_free = |place: &[f64; 2]| {
            let wanted = box_at(*place);
            let inside =
                clip::holds(bounds, [wanted[0], wanted[1]]) && clip::holds(bounds, [wanted[2], wanted[3]]);
            inside
                && taken.iter().all(|other| !overlap(wanted, *other))
                && curves.iter().all(|curve| !covers(wanted, curve))
        };
        let beside = |&[x, y]: &[f64; 2]| {
            [
                [x + GAP, y],
                [x - GAP - width, y],
                [x - 0.5 * width, y - 34.0],
                [x - 0.5 * width, y + 34.0],
                [x + 6.0, y - 34.0],
                [x + 6.0, y + 34.0],
            ]
        };
        let place = tag.ends.iter().flat_map(beside).find(is_free)?;
        taken.push(box_at(place));
        places.push(place);
    }
    Some(places)
}

fn overlap(a: Bounds, b: Bounds) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

fn covers(bounds: Bounds, curve: &[[f64; 2]]) -> bool {
    match curve {
        [point] => clip::holds(bounds, *point),
        _ => curve.windows(2).any(|ends| clip::touches([ends[0], ends[1]], bounds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_touch_are_separated_and_stay_between_the_ends() {
        assert_eq!(stacked(&[100.0, 300.0], [0.0, 500.0]), [100.0, 300.0]);
        let near = stacked(&[200.0, 190.0, 210.0], [0.0, 500.0]);
        assert_eq!(near, [200.0, 200.0 - LINE, 200.0 + LINE]);
        let low = stacked(&[499.0, 500.0], [0.0, 500.0]);
        assert_eq!(low, [500.0 - LINE, 500.0]);
    }

    #[test]
    fn a_name_covers_no_curve() {
        let tag = |ends: Vec<[f64; 2]>| Tag { name: "a".into(), ends, color: [0; 3] };
        let bounds = [0.0, 0.0, 300.0, 300.0];
        let curve = vec![[10.0, 150.0], [200.0, 150.0]];
        let found = placed(&[tag(vec![[200.0, 150.0]])], std::slice::from_ref(&curve), bounds).unwrap();
        assert_eq!(found, [[200.0 + GAP, 150.0]]);
        // Right of the end there is another curve.
        let wall = vec![[220.0, 0.0], [220.0, 300.0]];
        let found = placed(&[tag(vec![[200.0, 150.0]])], &[curve.clone(), wall], bounds).unwrap();
        assert!(found[0][1] != 150.0, "{found:?}");
        assert_eq!(placed(&vec![tag(vec![[200.0, 150.0]]); 12], &[curve], bounds), None);
    }
}
