//! Converts a node's name, attributes and bodies to its operation.

use crate::array::{Array, DType, Data};
use crate::graph::{
    BinaryOp, Checkpoints, CompareOp, Cond, Custom, FactorOp, Func, LineOp, Literal, Margins, Op, Policy,
    ReduceOp, Replay, ScalarFn, ScatterOp, Solve, Taps, TileOut, Tiles, Triangle, Type, UnaryOp,
};
use std::str::FromStr;
use std::sync::Arc;

/// `word` or `word(inner)`.
#[derive(Debug)]
pub(super) struct Atom {
    pub(super) word: String,
    pub(super) inner: Option<String>,
}

/// `key=value`, or a value without a key, which gets the empty key.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) key: String,
    pub(super) is_list: bool,
    pub(super) atoms: Vec<Atom>,
}

/// The parsed line of a node, without its id, operands and type.
pub(super) struct Statement {
    pub(super) name: String,
    pub(super) attributes: Vec<Attribute>,
    pub(super) bodies: Vec<(String, Func)>,
}

type Built<T> = Result<T, String>;

impl Atom {
    fn show(&self) -> String {
        match &self.inner {
            Some(inner) => format!("{}({inner})", self.word),
            None => self.word.clone(),
        }
    }

    fn read<T: FromStr>(&self, what: &str) -> Built<T> {
        let plain = self.inner.is_none().then(|| self.word.parse().ok()).flatten();
        plain.ok_or_else(|| format!("`{}` is not a valid {what}", self.show()))
    }

    /// The bits of a NaN written as `nan(0x...)`.
    fn nan_bits(&self) -> Option<u64> {
        let hex = self.inner.as_ref().filter(|_| self.word == "nan")?.strip_prefix("0x")?;
        u64::from_str_radix(hex, 16).ok()
    }

    fn double(&self) -> Built<f64> {
        let nan = self.nan_bits().map(f64::from_bits).filter(|x| x.is_nan());
        nan.map_or_else(|| self.read("number"), Ok)
    }

    fn single(&self) -> Built<f32> {
        let bits = self.nan_bits().and_then(|b| u32::try_from(b).ok());
        bits.map(f32::from_bits).filter(|x| x.is_nan()).map_or_else(|| self.read("number"), Ok)
    }
}

impl Statement {
    /// The operation of the statement; `ty` is the declared type of its result.
    pub(super) fn op(mut self, ty: &Type) -> Built<Op> {
        let name = self.name.clone();
        let op = self.dispatch(&name, ty)?;
        if let Some(a) = self.attributes.first() {
            let what = if a.key.is_empty() { "value" } else { a.key.as_str() };
            return Err(format!("{name} has an unknown or repeated attribute `{what}`"));
        }
        match self.bodies.first() {
            Some((body, _)) => Err(format!("{name} has an unknown or repeated body `{body}`")),
            None => Ok(op),
        }
    }

    fn dispatch(&mut self, name: &str, ty: &Type) -> Built<Op> {
        if let Some(op) = UnaryOp::named(name) {
            return Ok(Op::Unary(op));
        }
        if let Some(op) = BinaryOp::named(name) {
            return Ok(Op::Binary(op));
        }
        if let Some(op) = LineOp::named(name) {
            return Ok(Op::Lines(op));
        }
        if let Some(op) = FactorOp::named(name) {
            return Ok(Op::Factor(op));
        }
        if let Some(op) = ScatterOp::named(name) {
            return Ok(Op::Scatter(op));
        }
        if let Some(f) = ScalarFn::named(name) {
            return Ok(Op::Scalar(f));
        }
        if let Some(op) = CompareOp::named(name) {
            return Ok(Op::Compare(op));
        }
        Ok(match name {
            "powf" => Op::Unary(UnaryOp::Powf(self.one("p")?.double()?.to_bits())),
            "const" => Op::Const(self.literal(ty)?),
            "iota" => Op::Iota { axis: self.index("axis")? },
            "select" => Op::Select,
            "lincomb" => Op::Lincomb { coeffs: self.coeffs()? },
            "cast" => Op::Cast,
            "stop_gradient" => Op::StopGradient,
            "broadcast" => Op::Broadcast { dims: self.indices("dims")? },
            "reshape" => Op::Reshape,
            "transpose" => Op::Transpose { perm: self.indices("perm")? },
            "slice" => Op::Slice { start: self.indices("start")?, limit: self.indices("limit")? },
            "pad" => Op::Pad { lo: self.indices("lo")?, hi: self.indices("hi")? },
            "concat" => Op::Concat { axis: self.index("axis")? },
            "reduce_sum" => Op::Reduce { op: ReduceOp::Sum, axes: self.indices("axes")? },
            "reduce_max" => Op::Reduce { op: ReduceOp::Max, axes: self.indices("axes")? },
            "reduce_min" => Op::Reduce { op: ReduceOp::Min, axes: self.indices("axes")? },
            "gather" => Op::Gather,
            "dot" => Op::Dot { ta: self.flag("ta"), tb: self.flag("tb") },
            "conv" => Op::Conv { margins: self.margins()?, turned: self.flag("turned") },
            "conv_kernel" => Op::ConvKernel { margins: self.margins()? },
            "lu_solve" => Op::LuSolve { transposed: self.flag("transposed") },
            "triangular_solve" => Op::TriangularSolve(Triangle {
                upper: self.flag("upper"),
                transposed: self.flag("transposed"),
                unit_diagonal: self.flag("unit_diagonal"),
            }),
            "random_bits" => Op::RandomBits { stream: self.one("stream")?.read("stream number")? },
            "proj" => Op::Proj(self.index("k")?),
            "solve" | "replay" | "tiles" => self.a_loop(name)?,
            "observe" => return Err("an observer is a Rust function and cannot be read from text".into()),
            "cond" => {
                Op::Cond(Arc::new(Cond { then: self.body("then")?, otherwise: self.body("otherwise")? }))
            }
            "custom" => Op::Custom(Arc::new(Custom {
                body: self.body("body")?,
                jvp: self.body("jvp").ok(),
                vjp: self.body("vjp").ok(),
                num_outs: self.index("num_outs")?,
            })),
            "input" => return Err("inputs must be listed at the head of the function".into()),
            _ => return Err(format!("unknown operation `{name}`")),
        })
    }

    fn a_loop(&mut self, name: &str) -> Built<Op> {
        Ok(match name {
            "solve" => Op::Solve(Arc::new(Solve {
                attempt: self.body("attempt")?,
                step: self.body("step")?,
                inverse: self.body("inverse").ok(),
                num_carry: self.index("num_carry")?,
                num_ext: self.index("num_ext")?,
                num_own: self.count("num_own")?,
                num_first: self.count("num_first")?,
                taps: self.taps()?,
                policy: self.policy()?,
            })),
            "replay" => Op::Replay(Arc::new(Replay {
                body: self.body("body")?,
                step: self.body("step").ok(),
                inverse: self.body("inverse").ok(),
                is_reversed: self.flag("reversed"),
                num_carry: self.count("num_carry")?,
                num_states: self.count("num_states")?,
                num_xs: self.count("num_xs")?,
                num_ys: self.count("num_ys")?,
                num_sums: self.count("num_sums")?,
                num_rows: self.count("num_rows")?,
                num_tap_rows: self.count("num_tap_rows")?,
                num_residuals: self.count("num_residuals")?,
                policy: self.policy()?,
            })),
            _ => Op::Tiles(Arc::new(Tiles {
                rows: self.index("rows")?,
                tile: self.index("tile")?,
                body: self.body("body")?,
                tail: self.body("tail").ok(),
                num_rowed: self.index("num_rowed")?,
                outs: self.outs()?,
            })),
        })
    }

    /// The taps of a loop. An untapped loop has none of their attributes.
    fn taps(&mut self) -> Built<Taps> {
        let (times, every) = (self.count("num_times")?, self.count("every")?);
        Ok(Taps { times, every, groups: self.count("num_groups")?, last: self.flag("last") })
    }

    fn margins(&mut self) -> Built<Margins> {
        let mut two = |key: &str| {
            let of = self.indices(key)?;
            <[usize; 2]>::try_from(of).map_err(|of| format!("`{key}` has {} numbers, not 2", of.len()))
        };
        Ok(Margins { lo: two("lo")?, hi: two("hi")? })
    }

    /// An attribute that may be missing if it is 0.
    fn count(&mut self, key: &str) -> Built<usize> {
        if self.attributes.iter().any(|a| a.key == key) { self.index(key) } else { Ok(0) }
    }

    /// Removes and returns an attribute.
    fn take(&mut self, key: &str) -> Built<Attribute> {
        let found = self.attributes.iter().position(|a| a.key == key);
        let what = if key.is_empty() { "value" } else { key };
        found
            .map(|i| self.attributes.remove(i))
            .ok_or_else(|| format!("{} needs attribute `{what}`", self.name))
    }

    fn body(&mut self, name: &str) -> Built<Func> {
        let found = self.bodies.iter().position(|(n, _)| n == name);
        let i = found.ok_or_else(|| format!("{} needs a body `{name}`", self.name))?;
        Ok(self.bodies.remove(i).1)
    }

    fn one(&mut self, key: &str) -> Built<Atom> {
        let mut a = self.take(key)?;
        if a.is_list {
            return Err(format!("`{key}` of {} must be one value, not a list", self.name));
        }
        a.atoms.pop().ok_or_else(|| format!("{} needs attribute `{key}`", self.name))
    }

    fn many(&mut self, key: &str) -> Built<Vec<Atom>> {
        let a = self.take(key)?;
        if a.is_list {
            Ok(a.atoms)
        } else {
            Err(format!("`{key}` of {} must be a list in brackets", self.name))
        }
    }

    fn index(&mut self, key: &str) -> Built<usize> {
        self.one(key)?.read("index")
    }

    fn indices(&mut self, key: &str) -> Built<Vec<usize>> {
        self.many(key)?.iter().map(|a| a.read("index")).collect()
    }

    fn coeffs(&mut self) -> Built<Vec<u64>> {
        self.many("coeffs")?.iter().map(|a| a.double().map(f64::to_bits)).collect()
    }

    /// Removes the value `word` without a key; returns whether it was present.
    fn flag(&mut self, word: &str) -> bool {
        let is = |a: &Attribute| {
            a.key.is_empty() && !a.is_list && a.atoms.iter().all(|a| a.word == word && a.inner.is_none())
        };
        let found = self.attributes.iter().position(is);
        found.map(|i| self.attributes.remove(i)).is_some()
    }

    fn policy(&mut self) -> Built<Policy> {
        let a = self.one("policy")?;
        let n = a.inner.as_ref().and_then(|n| n.parse().ok());
        match (a.word.as_str(), n, &a.inner) {
            ("direct", _, None) => Ok(Policy::Direct),
            ("forward", _, None) => Ok(Policy::Forward),
            ("reversible", _, None) => Ok(Policy::Reversible),
            ("auto", _, None) => Ok(Policy::Checkpoint(Checkpoints::Auto)),
            ("count", Some(n), _) => Ok(Policy::Checkpoint(Checkpoints::Count(n))),
            ("bytes", Some(n), _) => Ok(Policy::Checkpoint(Checkpoints::Bytes(n))),
            _ => Err(format!(
                "unknown policy `{}`: expected direct, forward, reversible, auto, count(n), bytes(n)",
                a.show()
            )),
        }
    }

    fn outs(&mut self) -> Built<Vec<TileOut>> {
        let out = |a: &Atom| match a.word.as_str() {
            "rows" => Ok(TileOut::Rows),
            "sum" => Ok(TileOut::Sum),
            _ => Err(format!("unknown tiles output `{}`: expected rows or sum", a.show())),
        };
        self.many("outs")?.iter().map(out).collect()
    }

    fn literal(&mut self, ty: &Type) -> Built<Literal> {
        let Type::Array { dtype, shape } = ty else {
            return Err(format!("a constant must be an array, not {ty}"));
        };
        if self.take("digest").is_ok() {
            let n = shape.size();
            return Err(format!(
                "the constant's {n} elements are not in the text, which has only their digest"
            ));
        }
        let value = self.take("")?;
        if !value.is_list {
            let x = match (dtype, value.atoms[0].word.as_str()) {
                (DType::Bool, "true") => 1.0,
                (DType::Bool, "false") => 0.0,
                _ => value.atoms[0].double()?,
            };
            return Ok(Literal::splat(*dtype, x));
        }
        let (atoms, n) = (&value.atoms, shape.size());
        if atoms.len() != n {
            return Err(format!("the constant has {} elements, but its type has {n}", atoms.len()));
        }
        let truth = |a: &Atom| a.read::<bool>("truth value").map(u32::from);
        let data = match dtype {
            DType::F32 => Data::F32(atoms.iter().map(Atom::single).collect::<Built<_>>()?),
            DType::F64 => Data::F64(atoms.iter().map(Atom::double).collect::<Built<_>>()?),
            DType::I32 => Data::I32(atoms.iter().map(|a| a.read("i32")).collect::<Built<_>>()?),
            DType::U32 => Data::U32(atoms.iter().map(|a| a.read("u32")).collect::<Built<_>>()?),
            DType::Bool => Data::Bool(atoms.iter().map(truth).collect::<Built<_>>()?),
        };
        Ok(Literal::Array(Arc::new(Array::new(shape.clone(), data))))
    }
}
