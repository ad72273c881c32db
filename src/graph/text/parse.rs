//! Parses tokens into functions: recursive descent, one function per rule.
//!
//! ```text
//! func  = "func" "(" [ id ":" type , ... ] ")" "{" { node } "return" [ id , ... ] "}"
//! node  = id "=" name [ "{" attribute , ... "}" ] [ id , ... ] ":" type [ "{" { name ":" func } "}" ]
//! attribute = [ name "=" ] ( atom | "[" [ atom , ... ] "]" )
//! atom  = word [ "(" word ")" ]
//! type  = dtype "[" [ length , ... ] "]" | "schedule" | "tape" | "sequence" "(" type ")" | "(" [ type , ... ] ")"
//! ```
//!
//! Each node is verified as soon as it is parsed, so type errors have line numbers, too.

use super::build::{Atom, Attribute, Statement};
use super::lex::{Token, error, tokens};
use crate::array::{DType, Shape};
use crate::graph::verify::check_node;
use crate::graph::{Func, GraphError, Node, NodeId, Op, Type};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The maximum nesting depth of types and bodies. Programs need far less, and the stack can hold far more.
const MAX_DEPTH: usize = 64;

type Parsed<T> = Result<T, GraphError>;

impl Func {
    /// Parses the text form, see [`Func`]'s `Display`; the result passes [`crate::graph::verify`].
    ///
    /// # Errors
    /// [`GraphError::Parse`] with the line of the first fault.
    ///
    /// # Examples
    /// ```
    /// use flowline::__internal::graph::Func;
    /// let text = "func(%0: f32[2]) {\n  %1 = neg %0 : f32[2]\n  return %1\n}";
    /// let f = Func::parse(text).unwrap();
    /// assert_eq!(f.to_string(), text);
    /// ```
    pub fn parse(text: &str) -> Result<Func, GraphError> {
        let mut p = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
        let f = p.func()?;
        match p.peek() {
            Token::End => Ok(f),
            other => Err(p.fault(format!("{other} follows the function"))),
        }
    }
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn line(&self) -> usize {
        self.tokens[self.at].1
    }

    /// An error at the next token.
    fn fault(&self, why: impl Into<String>) -> GraphError {
        error(self.line(), why)
    }

    fn expected(&self, what: &str) -> GraphError {
        self.fault(format!("expected {what}, found {}", self.peek()))
    }

    /// Consumes and returns the next token. At the end of the text, the position does not advance.
    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Consumes the next token if it is this mark; returns whether it is.
    fn eat(&mut self, mark: char) -> bool {
        let found = *self.peek() == Token::Mark(mark);
        if found {
            self.next();
        }
        found
    }

    fn mark(&mut self, mark: char) -> Parsed<()> {
        if self.eat(mark) { Ok(()) } else { Err(self.expected(&format!("`{mark}`"))) }
    }

    fn word(&mut self, what: &str) -> Parsed<String> {
        match self.peek().clone() {
            Token::Word(w) => {
                self.next();
                Ok(w)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn keyword(&mut self, word: &str) -> Parsed<()> {
        if *self.peek() == Token::Word(word.into()) {
            self.next();
            return Ok(());
        }
        Err(self.expected(&format!("`{word}`")))
    }

    fn id(&mut self) -> Parsed<NodeId> {
        match *self.peek() {
            Token::Id(i) => {
                self.next();
                Ok(NodeId(i))
            }
            _ => Err(self.expected("a node such as `%0`")),
        }
    }

    /// Comma-separated items up to a closing mark, which is consumed.
    fn items<T>(&mut self, close: char, item: impl Fn(&mut Parser) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut out = Vec::new();
        if self.eat(close) {
            return Ok(out);
        }
        loop {
            out.push(item(self)?);
            if self.eat(close) {
                return Ok(out);
            }
            if !self.eat(',') {
                return Err(self.expected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// Comma-separated nodes, possibly none.
    fn ids(&mut self) -> Parsed<Vec<NodeId>> {
        let mut out = Vec::new();
        if matches!(self.peek(), Token::Id(_)) {
            out.push(self.id()?);
            while self.eat(',') {
                out.push(self.id()?);
            }
        }
        Ok(out)
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Parser) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(format!("nested more than {MAX_DEPTH} levels deep")));
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }

    fn ty(&mut self) -> Parsed<Type> {
        if self.eat('(') {
            return self.nested(|p| p.items(')', Parser::ty)).map(Type::Tuple);
        }
        let line = self.line();
        let name = self.word("a type such as `f32[2,3]`")?;
        let dtype = match (name.as_str(), DType::parse(&name)) {
            ("schedule", _) => return Ok(Type::Schedule),
            ("tape", _) => return Ok(Type::Tape),
            ("sequence", _) => return self.sequence(line),
            (_, Some(dtype)) => dtype,
            (_, None) => {
                let why = format!(
                    "unknown type `{name}`: expected f32, f64, i32, u32, bool, schedule, tape or sequence"
                );
                return Err(error(line, why));
            }
        };
        self.mark('[')?;
        let dims = self.items(']', Parser::length)?;
        let shape = Shape::try_new(dims).map_err(|why| error(line, why.to_string()))?;
        Ok(Type::array(dtype, shape))
    }

    fn sequence(&mut self, line: usize) -> Parsed<Type> {
        self.mark('(')?;
        let of = self.nested(Parser::ty)?;
        self.mark(')')?;
        match of {
            Type::Array { dtype, shape } => Ok(Type::Sequence { dtype, shape }),
            other => Err(error(line, format!("a sequence must hold arrays, not {other}"))),
        }
    }

    fn length(&mut self) -> Parsed<usize> {
        let line = self.line();
        let w = self.word("a length")?;
        w.parse().map_err(|_| error(line, format!("`{w}` is not a valid length")))
    }

    fn func(&mut self) -> Parsed<Func> {
        self.keyword("func")?;
        self.mark('(')?;
        let mut arena = Arena::default();
        let inputs = self.items(')', |p| {
            let (line, id) = (p.line(), p.id()?);
            p.mark(':')?;
            Ok((line, id, p.ty()?))
        })?;
        for (k, (line, id, ty)) in inputs.iter().enumerate() {
            let node = Node { op: Op::Input(k), args: SmallVec::new(), ty: ty.clone() };
            if arena.waiting.insert(*id, (node, *line)).is_some() {
                return Err(error(*line, format!("{id} is listed twice")));
            }
        }
        self.mark('{')?;
        while matches!(self.peek(), Token::Id(_)) {
            let line = self.line();
            let (id, node) = self.node()?;
            arena.push(id, node, line)?;
        }
        self.keyword("return")?;
        let line = self.line();
        let outputs = self.ids()?;
        self.mark('}')?;
        let nodes = arena.finish()?;
        for id in &outputs {
            match nodes.get(id.index()).map(|n| &n.ty) {
                None => return Err(error(line, format!("{id} is returned but not defined"))),
                Some(Type::Tuple(_)) => {
                    return Err(error(
                        line,
                        format!("{id} is a tuple: return `proj` nodes that extract its values"),
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(Func::new(nodes, inputs.into_iter().map(|(_, id, _)| id).collect(), outputs))
    }

    fn node(&mut self) -> Parsed<(NodeId, Node)> {
        let id = self.id()?;
        self.mark('=')?;
        let line = self.line();
        let name = self.word("an operation")?;
        let attributes = if self.eat('{') { self.items('}', Parser::attribute)? } else { vec![] };
        let args = self.ids()?;
        self.mark(':')?;
        let ty = self.ty()?;
        let mut bodies = Vec::new();
        if self.eat('{') {
            while !self.eat('}') {
                let name = self.word("the name of a body, or `}`,")?;
                self.mark(':')?;
                bodies.push((name, self.nested(Parser::func)?));
            }
        }
        let op = Statement { name, attributes, bodies }.op(&ty).map_err(|why| error(line, why))?;
        Ok((id, Node { op, args: args.into(), ty }))
    }

    fn attribute(&mut self) -> Parsed<Attribute> {
        let key = match (self.peek(), self.tokens.get(self.at + 1)) {
            (Token::Word(key), Some((Token::Mark('='), _))) => key.clone(),
            _ => return self.attribute_value(),
        };
        self.at += 2;
        Ok(Attribute { key, ..self.attribute_value()? })
    }

    fn attribute_value(&mut self) -> Parsed<Attribute> {
        let is_list = self.eat('[');
        let atoms = if is_list { self.items(']', Parser::atom)? } else { vec![self.atom()?] };
        Ok(Attribute { key: String::new(), is_list, atoms })
    }

    fn atom(&mut self) -> Parsed<Atom> {
        let word = self.word("a value")?;
        let inner = if self.eat('(') { Some(self.word("a value")?) } else { None };
        if inner.is_some() {
            self.mark(')')?;
        }
        Ok(Atom { word, inner })
    }
}

/// Parsed nodes, and inputs whose ids are larger than those of the parsed nodes.
#[derive(Default)]
struct Arena {
    nodes: Vec<Node>,
    waiting: BTreeMap<NodeId, (Node, usize)>,
}

impl Arena {
    fn next_id(&self) -> NodeId {
        NodeId(self.nodes.len() as u32)
    }

    fn checked(&mut self, node: Node, line: usize) -> Parsed<()> {
        let name = node.op.name();
        check_node(&self.nodes, &node).map_err(|why| error(line, format!("{name}: {why}")))?;
        self.nodes.push(node);
        Ok(())
    }

    /// Appends the inputs whose ids are next.
    fn take_inputs(&mut self) -> Parsed<()> {
        while let Some((node, line)) = self.waiting.remove(&self.next_id()) {
            self.checked(node, line)?;
        }
        Ok(())
    }

    fn push(&mut self, id: NodeId, node: Node, line: usize) -> Parsed<()> {
        self.take_inputs()?;
        if id != self.next_id() {
            return Err(error(line, format!("{id} is out of order: the next node is {}", self.next_id())));
        }
        self.checked(node, line)
    }

    fn finish(mut self) -> Parsed<Vec<Node>> {
        self.take_inputs()?;
        match self.waiting.first_key_value() {
            None => Ok(self.nodes),
            Some((id, (_, line))) => {
                Err(error(*line, format!("{id} is out of order: the next node is {}", self.next_id())))
            }
        }
    }
}
