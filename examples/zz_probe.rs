//! Scratch probe: ms an update of flow matching.
use flowline::nn::*;
use flowline::optim::*;
use flowline::prelude::*;
use std::time::Instant;
tree! { struct S { model: FourierMlp, opt: OptState, update: Tensor } }
fn main() {
    let rows: usize = std::env::args().nth(1).map_or(128, |s| s.parse().unwrap());
    let tile: usize = std::env::args().nth(2).map_or(0, |s| s.parse().unwrap());
    let key = Key::new(0);
    let model = FourierMlp::new(golden_frequencies(16, 2.6), [80, 80, 80], &key);
    println!("weights {}", num_elements(&model));
    let optimiser = chain([clip_global_norm(1.0), adamw(1e-3)]);
    let step = jit(|s: S, key: Key| {
        let [a, b, c] = key.fold_in(&s.update).split();
        let x1 = a.normal([rows, 2]);
        let x0 = b.normal([rows, 2]);
        let t = c.uniform([rows, 1]);
        let loss = |m: &FourierMlp| {
            let f = |r: &[Tensor]| {
                let (x0, x1, t) = (&r[0], &r[1], &r[2]);
                let x = (1.0 - t) * x0 + t * x1;
                (m.eval(t, &x) - (x1 - x0)).square().sum()
            };
            let rs = [x0.clone(), x1.clone(), t.clone()];
            if tile == 0 { f(&rs) } else { map_rows(&rs, tile, |r| (vec![], vec![f(r)])).1[0].clone() }
        };
        let (v, g) = value_and_grad(loss, &s.model);
        let (model, opt) = optimiser.update(&s.model, g, s.opt);
        (S { model, opt, update: s.update + 1 }, v)
    });
    let mut s = S { opt: optimiser.init(&model), model, update: Tensor::from(0) };
    let t = Instant::now();
    let v = step.step(&mut s, key.clone()).unwrap();
    println!("first {:?} loss {}", t.elapsed(), v.item());
    let mut times = vec![];
    for _ in 0..300 {
        let t = Instant::now();
        step.step(&mut s, key.clone()).unwrap();
        times.push(t.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("median {:.3} ms min {:.3}", times[150], times[0]);
    println!("{}", step.plan(&(s, key)).unwrap());
}
