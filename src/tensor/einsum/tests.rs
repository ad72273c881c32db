//! Tests of einsum: against loops over all indices, contraction orders, derivatives.

use super::super::tests::numbers;
use super::super::{Tensor, grad, jit, jvp};
use super::{einsum, einsum_path, order::MAX_EXACT};
use crate::array::{DType, refusal};
use crate::graph::tests::arbitrary::Draws;
use crate::ode::tests::draw::{Draw, num_cases};

/// The sum of products by loops over all values of all indices.
fn naive(spec: &str, operands: &[Tensor]) -> (Vec<usize>, Vec<f64>) {
    let (left, right) = spec.split_once("->").unwrap();
    let terms: Vec<&[u8]> = left.split(',').map(str::as_bytes).collect();
    let mut letters: Vec<(u8, usize)> = Vec::new();
    for (t, x) in terms.iter().zip(operands) {
        for (&c, &len) in t.iter().zip(x.shape().iter()) {
            if !letters.iter().any(|l| l.0 == c) {
                letters.push((c, len));
            }
        }
    }
    let len = |c: u8| letters.iter().find(|l| l.0 == c).unwrap().1;
    let shape: Vec<usize> = right.bytes().map(len).collect();
    let values: Vec<Vec<f64>> = operands.iter().map(Tensor::to_vec).collect();
    let mut out = vec![0.0; shape.iter().product()];
    for mut i in 0..letters.iter().map(|l| l.1).product() {
        let mut at = [0; 128];
        for &(c, len) in &letters {
            (at[c as usize], i) = (i % len, i / len);
        }
        let offset = |term: &[u8]| term.iter().fold(0, |p, &c| p * len(c) + at[c as usize]);
        out[offset(right.as_bytes())] +=
            terms.iter().zip(&values).map(|(t, v)| v[offset(t)]).product::<f64>();
    }
    (shape, out)
}

fn array(dims: &[usize], seed: usize) -> Tensor {
    let len: usize = dims.iter().product();
    Tensor::from_vec(dims.to_vec(), numbers(len + seed).split_off(seed))
}

/// Operands for a specification: index a has length 2, b 3, c 4, d 2, and so on.
fn operands(left: &str) -> Vec<Tensor> {
    let len = |c: u8| 2 + usize::from(c - b'a') % 3;
    let of = |(k, t): (usize, &str)| array(&t.bytes().map(len).collect::<Vec<_>>(), 5 * k);
    left.split(',').enumerate().map(of).collect()
}

#[track_caller]
fn check(spec: &str, x: &[Tensor]) {
    let (shape, want) = naive(spec, x);
    let y = einsum(spec, &x.iter().collect::<Vec<_>>());
    assert_eq!(y.shape().to_vec(), shape, "{spec}");
    for (got, want) in y.to_vec().iter().zip(&want) {
        assert!((got - want).abs() < 1e-12 * want.abs().max(1.0), "{spec}: {got} is not {want}");
    }
}

#[test]
fn sums_of_products_equal_loops_over_all_indices() {
    for spec in [
        "a->a",
        "ab->ba",
        "ab->a",
        "ab->",
        "abc->cab",
        "abc->ca",
        "aa->a",
        "aa->",
        "aba->ab",
        "aba->b",
        "abab->ba",
        "aaa->a",
        "aab->b",
        "ab,bc->ac",
        "ab,cb->ac",
        "ba,cb->ca",
        "ab,ab->ab",
        "ab,ab->",
        "ab,ba->",
        "a,b->ab",
        "a,b->ba",
        "a,b->",
        "ab,b->a",
        "b,ab->a",
        "a,ab,b->",
        ",a->a",
        ",->",
        "abc,abd->acd",
        "abcd,abed->abce",
        "abcd,aecd->ace",
        "abc,bd,ce->ade",
        "ab,bc,cd,de->ae",
        "ab,ac,ad->bcd",
        "ab,ab,ab->a",
        "aab,bcc->ac",
        "ab,bc,ca->",
        "abc,cbd,da->b",
        "abcd,bd->ca",
        "ab,c->c",
    ] {
        check(spec, &operands(spec.split_once("->").unwrap().0));
    }
    check("ii->i", &[array(&[1, 1], 0)]);
    check("bii->bi", &[array(&[2, 0, 0], 0)]);
    check("ij,jk->ik", &[array(&[3, 0], 0), array(&[0, 2], 0)]);
    check("bij,bjk->bik", &[array(&[1, 3, 2], 0), array(&[1, 2, 4], 1)]);
}

#[test]
fn a_result_that_is_not_written_has_the_indices_that_occur_once() {
    let x = operands("ba,bc");
    let y = einsum(" ba , bc ", &[&x[0], &x[1]]);
    assert_eq!(y.to_vec(), einsum("ba,bc->ac", &[&x[0], &x[1]]).to_vec());
    assert_eq!(einsum("ba", &[&x[0]]).to_vec(), x[0].transpose().to_vec());
    assert_eq!(einsum("bb", &[&array(&[3, 3], 0)]).rank(), 0);
}

/// A random specification of one to four operands with up to three axes each, and the lengths of the axes a to
/// e.
fn random(draws: &mut Draws) -> (String, Vec<usize>) {
    let terms: Vec<Vec<usize>> =
        (0..=draws.below(4)).map(|_| (0..draws.below(4)).map(|_| draws.below(5)).collect()).collect();
    let all = terms.concat();
    let mut result: Vec<usize> = Vec::new();
    for _ in 0..if all.is_empty() { 0 } else { draws.below(4) } {
        let i = all[draws.below(all.len())];
        if !result.contains(&i) {
            result.push(i);
        }
    }
    let text = |term: &Vec<usize>| term.iter().map(|&i| char::from(b'a' + i as u8)).collect::<String>();
    let left: Vec<String> = terms.iter().map(text).collect();
    (format!("{}->{}", left.join(","), text(&result)), (0..5).map(|_| 1 + draws.below(3)).collect())
}

#[test]
fn random_sums_of_products_equal_loops() {
    for seed in 0..150 {
        let (spec, lens) = random(&mut Draws::new(seed));
        let left = spec.split_once("->").unwrap().0;
        let dims = |t: &str| t.bytes().map(|c| lens[usize::from(c - b'a')]).collect::<Vec<_>>();
        let x: Vec<Tensor> = left.split(',').enumerate().map(|(k, t)| array(&dims(t), 5 * k)).collect();
        check(&spec, &x);
    }
}

#[test]
fn derivatives_are_sums_of_products_too() {
    let x = operands("aab,bc,cd");
    let weight = array(&[2, 2], 3);
    let f = |a: &Tensor, b: &Tensor| (einsum("aab,bc,cd->ad", &[a, b, &x[2]]) * &weight).sum();
    let by_b = grad(|b: &Tensor| f(&x[0], b), &x[1]);
    let want = einsum("aab,ad,cd->bc", &[&x[0], &weight, &x[2]]);
    let close = |a: &Tensor, b: &Tensor| {
        assert_eq!(a.shape(), b.shape());
        a.to_vec().iter().zip(b.to_vec()).all(|(a, b)| (a - b).abs() < 1e-13)
    };
    assert!(close(&by_b, &want));
    let by_a = grad(|a: &Tensor| f(a, &x[1]), &x[0]);
    let eye = Tensor::from([[1.0, 0.0], [0.0, 1.0]]);
    let want = einsum("ae,bc,cd,ad->aeb", &[&eye, &x[1], &x[2], &weight]);
    assert!(close(&by_a, &want));
    // The result is linear in each operand, so the derivative along b itself equals the value.
    let (value, tangent) = jvp(|b: &Tensor| f(&x[0], b), &x[1], &x[1]);
    assert!((value.item() - tangent.item()).abs() < 1e-13);
    // The cube has degree 3, so its derivative along q is 3 times its value (Euler); checks second
    // derivatives.
    let q = array(&[3, 3], 1);
    let cube = |q: &Tensor| einsum("ij,jk,ki->", &[q, q, q]);
    let along = |q: &Tensor| (grad(cube, q) * q).sum();
    let got = grad(along, &q);
    let want = grad(|q: &Tensor| cube(q) * 3, &q);
    assert!(close(&got, &want), "{got} {want}");
}

#[test]
fn memory_decides_and_then_work() {
    let plan = einsum_path("ij,jk,kl->il", &[&[1000, 2], &[2, 1000], &[1000, 2]]);
    assert_eq!((plan.steps[0].operands, plan.steps[1].operands), ([1, 2], [0, 3]));
    // The intermediate array has 2 x 2 elements, the result 2000. From left to right, the intermediate array
    // would have a million.
    assert_eq!((plan.largest, plan.flops), (2000, 2 * 2 * 1000 * 2 + 2 * 1000 * 2 * 2));
    assert_eq!(
        plan.to_string(),
        "%3 = %1, %2: jk,kl->jl (4 elements, 8000 flops)\n\
         %4 = %0, %3: ij,jl->il (2000 elements, 8000 flops)\nlargest: 2000 elements; 16000 flops"
    );
    // A 10 x 10 intermediate array and 12,400 flops are chosen; a 60 x 2 array would take 4,800 flops.
    let plan = einsum_path("ij,jk,kl->il", &[&[10, 60], &[60, 10], &[10, 2]]);
    assert_eq!((plan.steps[0].operands, plan.largest, plan.flops), ([0, 1], 100, 12_400));
    // No intermediate array of either order exceeds the result's 64 elements, so the cheaper order is chosen.
    let plan = einsum_path("ab,bc,cd->ad", &[&[8, 2], &[2, 4], &[4, 8]]);
    assert_eq!((plan.steps[0].spec.as_str(), plan.largest), ("bc,cd->bd", 64));
    let other = einsum_path("ab,bc,cd->ad", &[&[8, 4], &[4, 2], &[2, 8]]);
    assert!(other.flops == 2 * (8 * 4 * 2 + 8 * 2 * 8) && plan.flops == 2 * (2 * 4 * 8 + 8 * 2 * 8));
    assert_eq!(einsum_path("ab->ba", &[&[2, 3]]).steps.len(), 0);
}

/// The size of the largest array in the order for which it is smallest, by trying all orders.
fn least(arrays: &[(Vec<u8>, usize)], result: &[u8], len: &dyn Fn(u8) -> usize) -> usize {
    let mut best = usize::MAX;
    for j in 1..arrays.len() {
        for i in 0..j {
            let mut rest = arrays.to_vec();
            let (b, a) = (rest.remove(j), rest.remove(i));
            let wanted = |c: &u8| result.contains(c) || rest.iter().any(|t| t.0.contains(c));
            let mut made: Vec<u8> = [a.0, b.0].concat().into_iter().filter(wanted).collect();
            made.sort_unstable();
            made.dedup();
            let size = made.iter().map(|&c| len(c)).product();
            rest.push((made, size));
            best = best.min(size.max(least(&rest, result, len)));
        }
    }
    if arrays.len() < 2 { 0 } else { best }
}

#[test]
fn the_order_is_the_best_of_all_for_five_operands_and_good_beyond() {
    for spec in ["ab,bc,cd,de,ef->af", "abc,cd,bde,ef,fa->d", "ab,ac,ad,ae,af->bf", "ab,cd,ef,ac,ce->bdf"] {
        let (left, result) = spec.split_once("->").unwrap();
        for shift in 0..6 {
            let len = move |c: u8| [2, 7, 3, 11, 5, 4][(usize::from(c - b'a') + shift) % 6];
            let terms: Vec<Vec<u8>> = left.split(',').map(|t| t.as_bytes().to_vec()).collect();
            let shapes: Vec<Vec<usize>> = terms.iter().map(|t| t.iter().map(|&c| len(c)).collect()).collect();
            let plan = einsum_path(spec, &shapes.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let arrays: Vec<(Vec<u8>, usize)> = terms.into_iter().map(|t| (t, 0)).collect();
            assert_eq!(plan.largest, least(&arrays, result.as_bytes(), &len), "{spec} {shift}\n{plan}");
        }
    }
    // A chain of nine matrices and a vector, too long for the exact search.
    let spec = "ab,bc,cd,de,ef,fg,gh,hi,ij,j->a";
    let shapes: Vec<&[usize]> = [&[50, 50][..]; 9].into_iter().chain([&[50][..]]).collect();
    assert!(shapes.len() > MAX_EXACT);
    let plan = einsum_path(spec, &shapes);
    assert_eq!((plan.largest, plan.steps.len()), (50, 9), "{plan}");
    let (small, spec) = (operands("ab,bc,cd,de,ef,fg,gh,hi,ij,j"), "ab,bc,cd,de,ef,fg,gh,hi,ij,j->a");
    check(spec, &small);
}

#[test]
fn a_program_needs_the_memory_of_its_contraction_order() {
    if crate::backend::oracle_lacks("memory plan") {
        return;
    }
    let x = [array(&[400, 3], 0), array(&[3, 400], 1), array(&[400, 3], 2)];
    let chain = jit(|a: Tensor, b: Tensor, c: Tensor| einsum("ij,jk,kl->il", &[&a, &b, &c]));
    let straight = jit(|a: Tensor, b: Tensor, c: Tensor| a.matmul(&b).matmul(&c));
    let [a, b, c] = x;
    let args = (a, b, c);
    let (lean, wide) = (chain.plan(&args).unwrap(), straight.plan(&args).unwrap());
    let bytes = 8 * 400 * 400;
    // The arena holds 3 x 3 numbers between two products, plus alignment.
    assert!(lean.arena_bytes <= 256 && wide.arena_bytes >= bytes, "{lean} {wide}");
    assert_eq!((lean.flops, wide.flops), (2 * (3 * 400 * 3 + 400 * 3 * 3), 2 * 2 * 400 * 3 * 400));
    // Attention scores: the only copy is the transposed keys.
    let scores = jit(|q: Tensor, k: Tensor| einsum("bqhd,bkhd->bhqk", &[&q, &k]));
    let args = (Tensor::zeros([2, 50, 4, 16]), Tensor::zeros([2, 50, 4, 16]));
    let plan = scores.plan(&args).unwrap();
    assert!(plan.kernels == 2 && plan.arena_bytes <= 4 * 2 * 50 * 4 * 16 + 256, "{plan}");
}

/// Ranges: one to three operands of up to three of the letters i, j, k (lengths 0 to 3) and up to three axes of an ellipsis in
/// any place, of which some have length 1 and broadcast; results with an ellipsis in any place, and none given.
#[test]
fn axes_of_an_ellipsis_broadcast_in_front_of_each_other() {
    let (mut draw, mut seen) = (Draw(441), [0; 4]);
    for case in 0..num_cases(80) {
        let lengths: Vec<usize> = (0..6).map(|_| draw.one(&[0, 1, 2, 2, 3])).collect();
        let (mut written, mut full, mut x, mut wide) = (vec![], vec![], vec![], vec![]);
        for k in 0..=draw.below(3) {
            let letters: String = "ijk".chars().filter(|_| draw.coin()).collect();
            let at = draw.below(letters.len() + 1);
            let depth = draw.below(4);
            let len = |c: char| lengths[c as usize - 'i' as usize];
            let (before, after) = letters.split_at(at);
            let ones: Vec<usize> =
                (3..6).map(|i| if i >= 6 - depth && draw.below(3) > 0 { lengths[i] } else { 1 }).collect();
            let dims = |middle: &[usize]| -> Vec<usize> {
                before.chars().map(len).chain(middle.iter().copied()).chain(after.chars().map(len)).collect()
            };
            let of = array(&dims(&ones[3 - depth..]), 5 * k);
            seen[0] += usize::from(depth > 0 && ones != lengths[3..]);
            seen[1] += usize::from(of.size() == 0);
            wide.push((of.reshape(dims(&ones)), at, ones));
            x.push(of);
            written.push(format!("{before}...{after}"));
            full.push(format!("{before}XYZ{after}"));
        }
        // The lengths to which the ellipses broadcast.
        let common: Vec<usize> = (0..3)
            .map(|i| wide.iter().map(|(_, _, ones)| ones[i]).find(|len| *len != 1).unwrap_or(1))
            .collect();
        let wide: Vec<Tensor> = wide
            .into_iter()
            .map(|(x, at, _)| {
                let mut dims = x.shape().to_vec();
                dims[at..at + 3].copy_from_slice(&common);
                x.broadcast_to(dims)
            })
            .collect();
        let letters: String =
            "ijk".chars().filter(|c| full.iter().any(|f| f.contains(*c)) && draw.coin()).collect();
        let (before, after) = letters.split_at(draw.below(letters.len() + 1));
        let (shape, want) = naive(&format!("{}->{before}XYZ{after}", full.join(",")), &wide);
        let refs: Vec<&Tensor> = x.iter().collect();
        let spec = format!("{} -> {before}...{after}", written.join(", "));
        let y = einsum(&spec, &refs);
        let deepest = x.iter().zip(&written).map(|(x, w)| x.rank() + 3 - w.len()).max().unwrap();
        let shape: Vec<usize> = [&shape[..before.len()], &shape[before.len() + 3 - deepest..]].concat();
        assert_eq!(y.shape().to_vec(), shape, "case {case}: {spec}");
        for (got, want) in y.to_vec().iter().zip(&want) {
            assert!((got - want).abs() < 1e-12 * want.abs().max(1.0), "case {case}: {spec}: {got} {want}");
        }
        let count = |c: char| written.iter().filter(|w| w.contains(c)).count();
        let once: String = "ijk".chars().filter(|&c| count(c) == 1).collect();
        let implied = einsum(&written.join(","), &refs);
        let given = einsum(&format!("{}->...{once}", written.join(",")), &refs);
        assert_eq!(
            (implied.shape(), implied.to_vec()),
            (given.shape(), given.to_vec()),
            "case {case}: {spec}"
        );
        seen[2] += usize::from(deepest == 0);
        seen[3] += usize::from(!before.is_empty());
    }
    assert!(seen.iter().all(|&n| n > 2), "broadcast, empty, no axes, letters before: {seen:?}");
    let gradient = grad(
        |x: &Tensor| einsum("...ij,...j->...i", &[x, &Tensor::ones([2, 1, 3])]).sum(),
        &Tensor::ones([4, 5, 3]),
    );
    assert_eq!(gradient.to_vec(), [2.0; 60]);
}

#[track_caller]
fn refused(spec: &str, operands: &[Tensor]) -> String {
    let refs: Vec<&Tensor> = operands.iter().collect();
    refusal(|| einsum(spec, &refs))
}

#[test]
fn faults_name_the_index_the_lengths_and_the_operand() {
    let of = |dims: &[usize]| Tensor::zeros(dims.to_vec());
    let (a, b) = (of(&[3, 5]), of(&[4, 2]));
    assert_eq!(
        refused("ik,kj->ij", &[a.clone(), b.clone()]),
        "einsum \"ik,kj->ij\": index k is 5 in operand 0 (ik: [3, 5]) but 4 in operand 1 (kj: [4, 2])"
    );
    let why = refused("ii->i", std::slice::from_ref(&a));
    assert!(why.ends_with("index i is 3 in operand 0 (ii: [3, 5]) but 5 in operand 0 (ii: [3, 5])"), "{why}");
    let why = refused("ij,ijk", &[a.clone(), b.clone()]);
    assert!(why.ends_with("operand 1 (ijk: [4, 2]) has 3 indices for 2 axes"), "{why}");
    let ends = |spec: &str, end: &str| {
        let why = refused(spec, std::slice::from_ref(&a));
        assert!(why.ends_with(end), "{why}");
    };
    ends("ij,jk", "it has 2 operands, but the call has 1");
    ends("ij->ik", "index k of the result is in no operand");
    ends("ij->jj", "index j occurs twice in the result");
    ends("i1->i", "'1' is not an index: indices are letters");
    ends("ij->i->j", "'-' is not an index: indices are letters");
    ends("...i->i", "the result must have the ellipsis `...` of the operands");
    ends("i..j->i", "an ellipsis is `...`, at most one per operand");
    ends("i...j...->i", "an ellipsis is `...`, at most one per operand");
    ends("ijk...->i", "operand 0 (ijk: [3, 5]) has 3 indices for 2 axes");
    let why = refused("...,...", &[a.clone(), b.clone()]);
    assert!(why.ends_with("the axes [[3, 5], [4, 2]] of the ellipses do not broadcast"), "{why}");
    let why = refused("ij,ij", &[a.clone(), a.cast(DType::F64)]);
    assert!(why.ends_with("operand 1 is f64[3,5]: operands must be floats of equal type"), "{why}");
    assert!(
        refused("ij", &[a.cast(DType::I32)])
            .ends_with("operand 0 is i32[3,5]: operands must be floats of equal type")
    );
}
