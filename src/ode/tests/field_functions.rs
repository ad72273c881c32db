//! Functions of a `vector_field!` beside `eval`.

use crate::ode::*;
use crate::vector_field;

vector_field! {
    struct Pk<R> { ka: R, volumes: [R; 2], lag: R, power: i32 }
    fn eval(&self, _t, y: &[R; 2]) -> [R; 2] { [-self.ka * y[0], self.ka * y[0] - y[1] / self.volumes[0]] }
    /// The concentration.
    fn concentration(&self, _t, y: &[R; 2]) -> R { y[1] / self.volumes[1] }
    fn dose(&self, _t, y: &[R; 2], amount) -> [R; 2] { [y[0] + amount * self.ka, y[1]] }
    pub(crate) fn empty(&self, t, y: &[R; 2],) -> [R; 2] { [y[0] * 0.0, y[1].powi(self.power) * t] }
    fn late(&self, t) -> R { t + self.lag }
}

#[test]
fn functions_are_called_by_name_and_in_dual_numbers() {
    let pk = Pk { ka: 2.0, volumes: [3.0, 4.0], lag: 0.25, power: 2 };
    assert_eq!(Pk::concentration.eval(&pk, 0.0, &[1.0, 8.0]), 2.0);
    assert_eq!(Pk::dose.eval(&pk, 0.0, &[1.0, 8.0], 5.0), [11.0, 8.0]);
    assert_eq!(Pk::empty.eval(&pk, 0.5, &[1.0, 8.0], f64::NAN), [0.0, 32.0]);
    assert_eq!(Pk::late.eval(&pk, 1.0), 1.25);
    assert_eq!(format!("{:?} {:?} {:?}", Pk::dose, Pk::late, Pk::concentration), "dose late concentration");
    let mut index = 0;
    let dual = pk.map_params(|x| {
        index += 1;
        Dual::variable(x, index - 1)
    });
    let y = [FieldDual::from(1.0), Dual::variable(8.0, 4)];
    let c = (Pk::concentration.dual)(&dual, FieldDual::from(0.0), &y);
    assert_eq!((c.value, c.tangent), (2.0, [0.0, 0.0, -0.5, 0.0, 0.25, 0.0, 0.0, 0.0]));
    assert_eq!((Pk::late.dual)(&dual, FieldDual::from(1.0)).tangent[3], 1.0);
}
