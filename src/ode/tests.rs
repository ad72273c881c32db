use super::*;
#[test]
fn smoke() {
    let s = Ode::new(|_t, y: &[f64; 2]| [y[1], -y[0]]).solve(0.0, 2.0, [1.0, 0.0]).unwrap();
    println!("{s} {:?}", s.y1);
    let s = Ode::new(|_t, y: &f64| -y).method(Method::Rk4).dt0(0.1).solve(0.0, 1.0, 1.0).unwrap();
    println!("{s} {:?} {:?}", s.y1, s.ts);
    let ys = odeint(|_t, y| [y[1], -y[0]], [1.0, 0.0], &[0.0, 1.0, 2.0]).unwrap();
    println!("{ys:?}");
    let heat = Ode::in_place(|_t, u: &[f64], du: &mut [f64]| du[0] = -u[0]);
    println!("{}", heat.solve(0.0, 1.0, vec![1.0]).unwrap());
    let decay = Ode::new(|t, y: &[f32; 1]| if t > 3.0 { Err("the table ends at t=3") } else { Ok([-y[0]]) });
    println!("{}", decay.solve(0.0, 4.0, [1.0]).unwrap_err());
}
