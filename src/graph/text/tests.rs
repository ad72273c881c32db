//! Functions are printed, parsed and printed again; texts that do not parse are errors.

use crate::array::{Array, DType, Data};
use crate::graph::{Builder, FloatFn, Func, Literal, Op, ScalarFn, Type, UnaryOp};
use std::sync::Arc;

/// Every kind of operation without a body except observers, and every kind of constant.
const PLAIN: &str = "\
func(%0: f32[2,3], %1: f32[3], %4: u32[2], %2: i32[4]) {
  %3 = const{[true, false, true]} : bool[3]
  %5 = const{7} : u32[]
  %6 = const{-0.0} : f32[2,3]
  %7 = const{nan(0x7ff8000000000001)} : f32[2,3]
  %8 = const{[1.5, -inf, nan(0x7fc00001)]} : f32[3]
  %9 = const{[0.1, 1e-300, nan(0xfff8000000000000)]} : f64[3]
  %10 = const{[-1, 2]} : i32[2]
  %11 = const{true} : bool[3]
  %12 = const{0.10000000149011612} : f64[3]
  %13 = iota{axis=1} : i32[2,3]
  %14 = powf{p=2.5} %0 : f32[2,3]
  %15 = broadcast{dims=[1]} %1 : f32[2,3]
  %16 = add %14, %15 : f32[2,3]
  %17 = max %16, %6 : f32[2,3]
  %18 = lt %17, %7 : bool[2,3]
  %19 = select %18, %16, %17 : f32[2,3]
  %20 = lincomb{coeffs=[1.0, -0.3333333333333333]} %19, %0 : f32[2,3]
  %21 = cast %20 : f64[2,3]
  %22 = stop_gradient %21 : f64[2,3]
  %23 = reshape %22 : f64[3,2]
  %24 = transpose{perm=[1, 0]} %23 : f64[2,3]
  %25 = slice{start=[0, 1], limit=[2, 3]} %24 : f64[2,2]
  %26 = pad{lo=[0, 1], hi=[1, 0]} %25 : f64[3,3]
  %27 = concat{axis=0} %26, %24, %26 : f64[8,3]
  %28 = reduce_sum{axes=[0, 1]} %26 : f64[]
  %29 = reduce_max{axes=[]} %26 : f64[3,3]
  %30 = reduce_min{axes=[1]} %26 : f64[3]
  %31 = gather %26, %2 : f64[4,3]
  %32 = scatter_add %26, %2, %31 : f64[3,3]
  %33 = dot %26, %32 : f64[3,3]
  %34 = dot{ta} %33, %32 : f64[3,3]
  %35 = dot{ta, tb} %34, %32 : f64[3,3]
  %36 = random_bits{stream=3} %4, %5 : u32[10]
  %37 = is_finite %35 : bool[3,3]
  %38 = reshape %27 : f64[2,4,3]
  %39 = dot{tb} %38, %38 : f64[2,4,4]
  %40 = dot{ta, tb} %38, %39 : f64[2,3,4]
  %41 = reshape %0 : f32[1,2,3,1]
  %42 = reshape %1 : f32[1,1,1,3]
  %43 = conv{lo=[0, 0], hi=[0, 0]} %41, %42 : f32[1,2,3,3]
  %44 = conv{lo=[0, 0], hi=[0, 0], turned} %43, %42 : f32[1,2,3,1]
  %45 = conv_kernel{lo=[1, 0], hi=[0, 1]} %44, %43 : f32[2,2,1,3]
  return %37, %36, %40, %0, %45
}";

const LOOPS: &str = "\
func(%0: u32[], %1: f64[], %2: f32[3], %3: f32[8,3]) {
  %4 = solve{num_carry=1, num_ext=0, policy=count(4)} %0, %1, %2 : (f32[3], schedule, tape) {
    attempt: func(%0: f64[], %1: f32[3]) {
      %2 = const{false} : bool[]
      return %2, %2, %2, %0, %1
    }
    step: func(%0: bool[], %1: bool[], %2: f64[], %3: f64[], %4: f32[3]) {
      return %4
    }
  }
  %5 = proj{k=1} %4 : schedule
  %6 = replay{num_carry=1, policy=direct} %5, %2, %1 : (f32[3], tape, sequence(f32[3])) {
    body: func(%0: bool[], %1: bool[], %2: f64[], %3: f64[], %4: f32[3], %5: f64[]) {
      %6 = neg %4 : f32[3]
      return %6
    }
  }
  %7 = proj{k=1} %6 : tape
  %8 = replay{reversed, num_carry=1, num_states=1, num_sums=1, policy=direct} %5, %7, %2, %2, %1 : (f32[3], tape, sequence(f32[3]), f64[]) {
    body: func(%0: bool[], %1: bool[], %2: f64[], %3: f64[], %4: f32[3], %5: f32[3], %6: f64[]) {
      %7 = neg %4 : f32[3]
      return %7, %6
    }
    step: func(%0: bool[], %1: bool[], %2: f64[], %3: f64[], %4: f32[3], %5: f64[]) {
      %6 = neg %4 : f32[3]
      return %6
    }
  }
  %9 = tiles{rows=8, tile=5, num_rowed=1, outs=[rows, sum]} %3, %2 : (f32[8,3], f32[3]) {
    body: func(%0: u32[], %1: f32[5,3], %2: f32[3]) {
      return %1, %2
    }
    tail: func(%0: u32[], %1: f32[3,3], %2: f32[3]) {
      return %1, %2
    }
  }
  %10 = proj{k=1} %9 : f32[3]
  return %5, %7, %10
}";

const TAPPED: &str = "\
func(%0: u32[], %1: f64[], %2: f64[5], %3: f32[3]) {
  %4 = solve{num_carry=1, num_ext=0, num_times=5, policy=direct} %0, %1, %2, %3 : (f32[3], schedule, tape, f64[5], f32[5,3]) {
    attempt: func(%0: f64[], %1: f32[3]) {
      %2 = const{false} : bool[]
      return %2, %2, %2, %0, %1, %0, %1
    }
    step: func(%0: bool[], %1: bool[], %2: f64[], %3: f64[], %4: f32[3]) {
      return %4, %2, %4
    }
  }
  %5 = proj{k=4} %4 : f32[5,3]
  %6 = proj{k=1} %4 : schedule
  %7 = replay{num_carry=1, num_tap_rows=5, policy=direct} %6, %3 : (f32[3], tape, sequence(f32[3]), f32[5,3]) {
    body: func(%0: bool[], %1: bool[], %2: f64[], %3: f64[], %4: f32[3]) {
      return %4, %4
    }
  }
  %8 = proj{k=1} %7 : tape
  %9 = replay{reversed, num_carry=1, num_states=1, num_rows=1, num_tap_rows=5, policy=direct} %6, %8, %3, %3, %5 : (f32[3], tape, sequence(f32[3])) {
    body: func(%0: bool[], %1: bool[], %2: f64[], %3: f64[], %4: f32[3], %5: f32[3], %6: f32[3]) {
      %7 = add %4, %6 : f32[3]
      return %7
    }
    step: func(%0: bool[], %1: bool[], %2: f64[], %3: f64[], %4: f32[3], %5: f32[3]) {
      return %4
    }
  }
  %10 = proj{k=0} %9 : f32[3]
  return %10
}";

#[test]
fn rows_of_every_kind_are_printed_and_read_back() {
    let rows = ", num_times=5, every=2, num_groups=3, last";
    let text = TAPPED.replace(", num_times=5", rows).replace("f64[5], f32[5,3])", "f64[9], f32[9,3])");
    let text = text
        .replace("num_tap_rows=5", "num_tap_rows=9")
        .replace("sequence(f32[3]), f32[5,3])", "sequence(f32[3]), f32[9,3])")
        .replace(" : f32[5,3]", " : f32[9,3]");
    assert_eq!((text.matches(rows).count(), text.matches("num_tap_rows=9").count()), (1, 2));
    assert_eq!(Func::parse(&text).unwrap().to_string(), text);
}

#[test]
fn printed_text_equals_the_parsed_text() {
    for text in [PLAIN, LOOPS, TAPPED] {
        assert_eq!(Func::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn a_function_without_array_constants_reads_back_equal() {
    let f = Func::parse(LOOPS).unwrap();
    assert_eq!(Func::parse(&f.to_string()).unwrap(), f);
    let (b, x) = Builder::with_inputs(&[]);
    let empty = b.finish(&x);
    assert_eq!(empty.to_string(), "func() {\n  return\n}");
    assert_eq!(Func::parse("func() { return }").unwrap(), empty);
}

#[test]
fn every_unary_binary_and_compare_reads_back() {
    let functions = FloatFn::ALL.iter().map(|f| f.op().name()).collect::<Vec<_>>().join(" ");
    let scalars =
        ScalarFn::ALL.iter().filter(|f| f.arity() == 1).map(|f| f.name()).collect::<Vec<_>>().join(" ");
    for (names, ty, out) in [
        ("neg abs sign", "f32[2]", "f32[2]"),
        (&functions, "f32[2]", "f32[2]"),
        (&scalars, "f32[2]", "f32[2]"),
        ("is_finite", "f32[2]", "bool[2]"),
        ("not", "bool[2]", "bool[2]"),
    ] {
        for name in names.split(' ') {
            let text = format!("func(%0: {ty}) {{\n  %1 = {name} %0 : {out}\n  return %1\n}}");
            assert_eq!(Func::parse(&text).unwrap().to_string(), text);
        }
    }
    for (names, ty, out) in [
        ("add sub mul div max min pow rem atan2 hypot polygamma", "f32[2]", "f32[2]"),
        ("and or", "bool[2]", "bool[2]"),
        ("eq ne lt le", "f32[2]", "bool[2]"),
    ] {
        for name in names.split(' ') {
            let text = format!("func(%0: {ty}) {{\n  %1 = {name} %0, %0 : {out}\n  return %1\n}}");
            assert_eq!(Func::parse(&text).unwrap().to_string(), text);
        }
    }
}

#[test]
fn numbers_keep_their_bits() {
    let doubles =
        [0.1, -0.0, f64::MIN_POSITIVE / 2.0, f64::MAX, f64::INFINITY, f64::from_bits(0x7ff0_0000_0000_0001)];
    for x in doubles {
        let (mut b, args) = Builder::with_inputs(&[Type::array(DType::F64, [1])]);
        let c = b.splat(DType::F64, [1], x);
        let y = b.unary(UnaryOp::Powf(x.to_bits()), args[0]);
        let l = b.push(Op::Lincomb { coeffs: vec![x.to_bits(); 2] }, &[c, y], None);
        let f = b.finish(&[l]);
        assert_eq!(Func::parse(&f.to_string()).unwrap(), f, "{x:?}");
    }
    let data = Data::F32(vec![0.1, -0.0, f32::MIN_POSITIVE / 2.0, f32::from_bits(0xffc0_1234)]);
    let f = constant(Array::new([2, 2], data.clone()));
    let read = Func::parse(&f.to_string()).unwrap();
    let Op::Const(Literal::Array(a)) = &read.nodes()[0].op else { panic!("a constant") };
    let bits = |d: &Data| -> Vec<u32> {
        let Data::F32(v) = d else { panic!("f32") };
        v.iter().map(|x| x.to_bits()).collect()
    };
    assert_eq!(bits(a.data()), bits(&data));
}

fn constant(a: Array) -> Func {
    let ty = Type::array(a.dtype(), a.shape().clone());
    let mut b = Builder::new();
    let c = b.push(Op::Const(Literal::Array(Arc::new(a))), &[], Some(&ty));
    b.finish(&[c])
}

#[test]
fn a_large_constant_is_a_digest_that_does_not_read() {
    let of = |n: usize, x: f32| constant(Array::from_vec([n], vec![x; n])).to_string();
    assert!(of(64, 1.0).contains("1.0, 1.0") && Func::parse(&of(64, 1.0)).is_ok());
    let text = of(65, 1.0);
    assert!(text.starts_with("func() {\n  %0 = const{digest=0x") && text != of(65, 2.0), "{text}");
    let e = Func::parse(&text).unwrap_err().to_string();
    let want = "line 2 of the graph does not parse: the constant's 65 elements are not in the text, \
                which has only their digest";
    assert_eq!(e, want);
}

/// The error of `PLAIN` or `LOOPS` with one part replaced.
fn spoilt(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    Func::parse(&text.replace(from, to)).unwrap_err().to_string()
}

#[test]
fn faults_are_reported_with_their_lines() {
    let cases = [
        ("%16 = add", "%16 = plus", "line 14", "unknown operation `plus`"),
        ("%16 = add %14, %15", "%16 = add %14, %1", "line 14", "the operands must have equal types"),
        (
            "%16 = add %14, %15",
            "%16 = add %14, %16",
            "line 14",
            "add: its operand %16 does not come before it",
        ),
        ("%16 = add", "%17 = add", "line 14", "%17 is out of order: the next node is %16"),
        ("%4: u32[2]", "%99: u32[2]", "line 3", "%5 is out of order: the next node is %4"),
        ("%2: i32[4]", "%1: i32[4]", "line 1", "%1 is listed twice"),
        ("%15 : f32[2,3]", "%15 : f33[2,3]", "line 14", "unknown type `f33`"),
        ("{axis=1}", "", "line 11", "iota needs attribute `axis`"),
        ("{axis=1}", "{axis=1, axes=2}", "line 11", "iota has an unknown or repeated attribute `axes`"),
        ("{axis=1}", "{axis=[1]}", "line 11", "`axis` of iota must be one value, not a list"),
        ("{perm=[1, 0]}", "{perm=1}", "line 22", "`perm` of transpose must be a list in brackets"),
        ("{perm=[1, 0]}", "{perm=[1, x]}", "line 22", "`x` is not a valid index"),
        ("{p=2.5}", "{p=2.5.1}", "line 12", "`2.5.1` is not a valid number"),
        ("nan(0x7fc00001)", "nan(0x1)", "line 6", "`nan(0x1)` is not a valid number"),
        ("[-1, 2]", "[-1, 2, 3]", "line 8", "the constant has 3 elements, but its type has 2"),
        ("[-1, 2]", "[-1, 2.5]", "line 8", "`2.5` is not a valid i32"),
        ("return %37", "return %46", "line 44", "%46 is returned but not defined"),
        ("%45\n}", "%45\n} func", "line 45", "`func` follows the function"),
        ("%45\n}", "%45\n", "line 44", "expected `}`, found the end of the text"),
        ("i32[4]) {", "i32[4] {", "line 1", "expected `,` or `)`, found `{`"),
        ("is_finite %35", "is_finite é", "line 35", "unexpected character 'é'"),
        ("is_finite %35", "is_finite %x", "line 35", "`%x` is not a valid node"),
        ("u32[10]", "u32[-1]", "line 34", "`-1` is not a valid length"),
        ("u32[10]", "u32[9999999999,9999999999]", "line 34", "has more elements than memory can address"),
        ("u32[10]", "u32[1553255926290448382]", "line 34", "has more elements than memory can address"),
    ];
    for (from, to, line, why) in cases {
        let text = spoilt(PLAIN, from, to);
        assert!(text.starts_with(&format!("{line} of the graph does not parse: ")), "{text} for {to}");
        assert!(text.contains(why), "{text} for {to}");
    }
}

#[test]
fn faults_of_loops_are_reported_with_their_lines() {
    let cases = [
        (
            "count(4)",
            "count",
            "line 2",
            "unknown policy `count`: expected direct, forward, reversible, auto, count(n), bytes(n)",
        ),
        ("num_ext=0, ", "", "line 2", "solve needs attribute `num_ext`"),
        ("return %4", "return %3", "line 2", "its step's carry 0 is f64[], not f32[3]"),
        ("%2, %2, %2, %0, %1", "%2, %2, %2, %0", "line 2", "its attempt has 4 outputs, not 5"),
        ("attempt: func", "trial: func", "line 2", "solve needs a body `attempt`"),
        (
            "    body: func(%0: bool[], %1: bool[], %2: f64[], %3: f64[], %4: f32[3], %5: f32[3]",
            "    back: func(%0: bool[], %1: bool[], %2: f64[], %3: f64[], %4: f32[3], %5: f32[3]",
            "line 19",
            "replay needs a body `body`",
        ),
        ("%7 = neg %4", "%7 = neg %9", "line 21", "neg: its operand %9 does not come before it"),
        ("[rows, sum]", "[rows, mean]", "line 29", "unknown tiles output `mean`: expected rows or sum"),
        ("num_carry=1, policy=direct", "num_carry=one, policy=direct", "line 12", "index"),
        ("num_states=1", "num_states=18446744073709551615", "line 19", "fewer than 18446744073709551615"),
        ("tile=5", "tile=4", "line 29", "input 1 of its body is f32[5,3], not 4 rows"),
        ("return %5, %7, %10", "return %9", "line 38", "%9 is a tuple: return `proj` nodes that extract"),
        (
            "%5 = proj{k=1} %4 : schedule",
            "%5 = proj{k=2} %4 : schedule",
            "line 11",
            "but its operands give tape",
        ),
    ];
    for (from, to, line, why) in cases {
        let text = spoilt(LOOPS, from, to);
        assert!(text.starts_with(&format!("{line} of the graph does not parse: ")), "{text} for {to}");
        assert!(text.contains(why), "{text} for {to}");
    }
}

#[test]
fn a_text_that_ends_anywhere_is_refused() {
    for text in [PLAIN, "func(%0: f32[2,2]) {\n  %1 = c{b"] {
        let body = text.trim_end();
        for (end, _) in body.char_indices() {
            assert!(Func::parse(&body[..end]).is_err(), "{:?}", &body[..end]);
        }
    }
}

#[test]
fn comments_and_space_do_not_count() {
    let text = "// doubles\nfunc(%0 : f32[ 2 ]) // of x\n{ %1 = add\n%0,%0:f32[2] return %1 }\n// end\n";
    assert_eq!(
        Func::parse(text).unwrap().to_string(),
        "func(%0: f32[2]) {\n  %1 = add %0, %0 : f32[2]\n  return %1\n}"
    );
}

#[test]
fn endless_nesting_is_refused() {
    let text = format!("func(%0: {}", "(".repeat(100_000));
    let e = Func::parse(&text).unwrap_err().to_string();
    assert_eq!(e, "line 1 of the graph does not parse: nested more than 64 levels deep");
}
