//! The kinds of state on the heap, and the ways in which their shapes can be changed.

#[cfg(any(feature = "nalgebra", feature = "ndarray"))]
use super::attack;
use crate::ode::*;
use crate::state;

state! {
    /// A struct with two lists and a number.
    pub struct Lists { left: Vec<f64>, at: f64, right: Vec<f64> }
}

/// A state on the heap whose shape can be changed.
pub trait Changeable: PlainState {
    /// A state of a shape of the given size.
    fn of_size(n: usize) -> Self;
    /// Its shape: for each part its name in messages and its axes.
    fn shape(&self) -> Vec<(&'static str, Vec<usize>)>;
    /// Changes the shape in the n-th way; false if there are fewer.
    fn change(&mut self, way: usize) -> bool;
}

/// Changes a list in the n-th way; false if there are fewer.
fn change_list<R: Copy + From<f32>>(list: &mut Vec<R>, way: usize) -> bool {
    match way {
        0 => drop(list.pop()),
        1 => list.push(0.25.into()),
        2 => list.clear(),
        3 => list.extend(vec![R::from(1.0); 40]),
        4 => *list = Vec::new(),
        _ => return false,
    }
    true
}

macro_rules! lists {
    ($($t:ty: $number:expr;)*) => { $(
        impl Changeable for Vec<$t> {
            fn of_size(n: usize) -> Self {
                vec![$number; n]
            }
            fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
                vec![("", vec![self.len()])]
            }
            fn change(&mut self, way: usize) -> bool {
                change_list(self, way)
            }
        }
    )* };
}
lists!(f64: 0.5; f32: 0.5;);

impl Changeable for Vec<FieldDual> {
    fn of_size(n: usize) -> Self {
        (0..n).map(|j| Dual::variable(0.5, j)).collect()
    }
    fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
        vec![("", vec![self.len()])]
    }
    fn change(&mut self, way: usize) -> bool {
        match way {
            0 => drop(self.pop()),
            1 => self.push(Dual::from(0.25)),
            2 => self.clear(),
            _ => return false,
        }
        true
    }
}

/// Changes two lists in the n-th way: first each alone, then by moving a component from one to the other, which
/// keeps the total.
fn change_two(left: &mut Vec<f64>, right: &mut Vec<f64>, way: usize) -> bool {
    match way {
        0..5 => return change_list(left, way),
        5..10 => return change_list(right, way - 5),
        10 => right.extend(left.pop()),
        11 => left.extend(right.pop()),
        12 => std::mem::swap(left, right),
        13 => left.append(right),
        _ => return false,
    }
    true
}

impl Changeable for (Vec<f64>, Vec<f64>) {
    fn of_size(n: usize) -> Self {
        (vec![0.5; n], vec![0.25; n / 2 + 1])
    }
    fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
        vec![("part 0 ", vec![self.0.len()]), ("part 1 ", vec![self.1.len()])]
    }
    fn change(&mut self, way: usize) -> bool {
        change_two(&mut self.0, &mut self.1, way)
    }
}

impl Changeable for ((f64, Vec<f64>), [f64; 2], Lists) {
    fn of_size(n: usize) -> Self {
        ((0.5, vec![0.5; n]), [0.5; 2], Lists { left: vec![0.5; 2], at: 0.5, right: vec![0.5; n + 1] })
    }
    fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
        let within = [
            ("part 0: part 1 ", &self.0.1),
            ("part 2: part left ", &self.2.left),
            ("part 2: part right ", &self.2.right),
        ];
        within.map(|(name, list)| (name, vec![list.len()])).to_vec()
    }
    fn change(&mut self, way: usize) -> bool {
        match way {
            0..14 => change_two(&mut self.0.1, &mut self.2.right, way),
            _ => change_two(&mut self.2.left, &mut self.2.right, way - 14),
        }
    }
}

impl Changeable for Lists {
    fn of_size(n: usize) -> Self {
        Lists { left: vec![0.5; n], at: 0.5, right: vec![0.25; 2] }
    }
    fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
        vec![("part left ", vec![self.left.len()]), ("part right ", vec![self.right.len()])]
    }
    fn change(&mut self, way: usize) -> bool {
        change_two(&mut self.left, &mut self.right, way)
    }
}

#[cfg(feature = "nalgebra")]
mod nalgebra_states {
    use super::*;
    use ::nalgebra::{DMatrix, DVector, Matrix2xX};

    impl Changeable for DVector<f64> {
        fn of_size(n: usize) -> Self {
            DVector::from_element(n, 0.5)
        }
        fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
            vec![("", vec![self.len()])]
        }
        fn change(&mut self, way: usize) -> bool {
            *self = match way {
                0 => self.clone().insert_row(0, 1.0),
                1 => DVector::zeros(0),
                2 if !self.is_empty() => self.clone().remove_row(0),
                2 => return true,
                _ => return false,
            };
            true
        }
    }

    impl Changeable for DMatrix<f64> {
        fn of_size(n: usize) -> Self {
            DMatrix::from_fn(n, 2, |i, j| 0.1 * (i + 2 * j) as f64)
        }
        fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
            // A matrix of one column is described as a vector.
            let axes = if self.ncols() == 1 { vec![self.nrows()] } else { vec![self.nrows(), self.ncols()] };
            vec![("", axes)]
        }
        fn change(&mut self, way: usize) -> bool {
            *self = match way {
                0 => self.transpose(),
                1 => self.clone().insert_row(0, 1.0),
                2 => self.clone().remove_column(0),
                3 => DMatrix::zeros(0, 0),
                4 => DMatrix::from_element(self.len(), 1, 0.5),
                _ => return false,
            };
            true
        }
    }

    impl Changeable for Matrix2xX<f64> {
        fn of_size(n: usize) -> Self {
            Matrix2xX::from_element(n, 0.5)
        }
        fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
            let axes = if self.ncols() == 1 { vec![2] } else { vec![2, self.ncols()] };
            vec![("", axes)]
        }
        fn change(&mut self, way: usize) -> bool {
            *self = match way {
                0 => self.clone().insert_column(0, 1.0),
                1 => Matrix2xX::zeros(0),
                _ => return false,
            };
            true
        }
    }

    #[test]
    fn shapes_of_nalgebra_are_kept() {
        attack::<DVector<f64>>("DVector");
        attack::<DMatrix<f64>>("DMatrix");
        attack::<Matrix2xX<f64>>("Matrix2xX");
    }
}

#[cfg(feature = "ndarray")]
mod ndarray_states {
    use super::*;
    use ::ndarray::{Array1, Array2, ArrayD, IxDyn};

    impl Changeable for Array1<f64> {
        fn of_size(n: usize) -> Self {
            Array1::from_elem(n, 0.5)
        }
        fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
            vec![("", vec![self.len()])]
        }
        fn change(&mut self, way: usize) -> bool {
            *self = match way {
                0 => Array1::zeros(self.len() + 1),
                1 => Array1::zeros(0),
                _ => return false,
            };
            true
        }
    }

    impl Changeable for Array2<f64> {
        fn of_size(n: usize) -> Self {
            Array2::from_shape_fn((n, 2), |(i, j)| 0.1 * (i + 2 * j) as f64)
        }
        fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
            vec![("", vec![self.nrows(), self.ncols()])]
        }
        fn change(&mut self, way: usize) -> bool {
            *self = match way {
                0 => self.t().to_owned(),
                1 => self.clone().reversed_axes(),
                2 => Array2::zeros((self.len(), 1)),
                3 => Array2::zeros((0, 0)),
                _ => return false,
            };
            true
        }
    }

    impl Changeable for ArrayD<f64> {
        fn of_size(n: usize) -> Self {
            ArrayD::from_elem(IxDyn(&[1, n, 2]), 0.5)
        }
        fn shape(&self) -> Vec<(&'static str, Vec<usize>)> {
            vec![("", ArrayD::shape(self).to_vec())]
        }
        fn change(&mut self, way: usize) -> bool {
            let n = self.len();
            *self = match way {
                0 => ArrayD::from_elem(IxDyn(&[n]), 0.5),
                1 => ArrayD::from_elem(IxDyn(&[1, 1, n, 1]), 0.5),
                2 => ArrayD::from_elem(IxDyn(&[]), 0.5),
                3 => self.clone().reversed_axes(),
                4 => self.clone().reversed_axes().as_standard_layout().into_owned().reversed_axes(),
                _ => return false,
            };
            true
        }
    }

    #[test]
    fn shapes_of_ndarray_are_kept() {
        attack::<Array1<f64>>("Array1");
        attack::<Array2<f64>>("Array2");
        attack::<ArrayD<f64>>("ArrayD");
    }
}
