//! The state of every recorded solve: a list of tensors and its layout.
//!
//! `drive` converts a user's tree to leaves before recording, and the solution back to trees, so all code in
//! between is compiled once, not once per tree and field. `state` defines what a layout means for error norms.

use super::PartNorm;
use super::state::TensorState;
use crate::tensor::{Leaf, Tensor, TensorTree, Tree, TreePath};
use std::fmt;
use std::sync::Arc;

/// A list of tensors and its layout.
#[derive(Clone, Debug)]
pub struct Leaves {
    layout: Arc<Layout>,
    tensors: Vec<Tensor>,
}

/// The structure of a state's tensors.
#[derive(Clone, Debug)]
pub enum Layout {
    /// The leaves of a tree.
    Tree(Vec<Slot>),
    /// Consecutive parts, and how their errors are combined.
    Tuple(Vec<Layout>, PartNorm),
    /// The given number of integrals, which do not enter the equations; their error is not measured.
    Quadrature(usize),
    /// The given number of tensors that the method leaves unchanged.
    Carried(usize),
}

/// A leaf of a tree.
#[derive(Clone, Debug)]
pub struct Slot {
    pub(super) path: String,
    /// The debug form of a leaf that is not a tensor.
    fixed: Option<Static>,
}

/// A static leaf, by its debug form.
#[derive(Clone)]
struct Static(String);

impl fmt::Debug for Static {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The role of a tensor in a method.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// The method advances it and measures its error.
    State,
    /// The method advances it.
    Quadrature,
    /// The method leaves it unchanged.
    Carried,
}

impl Slot {
    fn of(path: &TreePath, leaf: Leaf<'_>) -> Slot {
        let fixed = match leaf {
            Leaf::Tensor(_) => None,
            Leaf::Static(x) => Some(Static(format!("{x:?}"))),
        };
        Slot { path: path.to_string(), fixed }
    }

    pub(super) fn is_tensor(&self) -> bool {
        self.fixed.is_none()
    }
}

impl Layout {
    /// The layout of a tree.
    pub(super) fn of(tree: &impl Tree) -> Layout {
        let mut slots = vec![];
        tree.each(&mut TreePath::default(), &mut |path, leaf| slots.push(Slot::of(path, leaf)));
        Layout::Tree(slots)
    }

    /// The number of tensors.
    pub(super) fn count(&self) -> usize {
        match self {
            Layout::Tree(slots) => slots.iter().filter(|slot| slot.is_tensor()).count(),
            Layout::Tuple(parts, _) => parts.iter().map(Layout::count).sum(),
            Layout::Quadrature(n) | Layout::Carried(n) => *n,
        }
    }

    /// The same layout with another norm of its parts; a tree has one part and is unchanged.
    fn measured_by(self, norm: PartNorm) -> Layout {
        match self {
            Layout::Tuple(parts, _) => Layout::Tuple(parts, norm),
            layout => layout,
        }
    }

    /// Whether parts are measured separately.
    fn is_by_part(&self) -> bool {
        match self {
            Layout::Tuple(parts, norm) => *norm != PartNorm::Joint || parts.iter().any(Layout::is_by_part),
            Layout::Tree(_) | Layout::Quadrature(_) | Layout::Carried(_) => false,
        }
    }

    /// The groups with separate norms, in order: the index of the first tensor, the layout, and whether the error
    /// counts.
    pub(super) fn groups(&self) -> Vec<(usize, &Layout, bool)> {
        let mut groups = vec![];
        self.add_groups(0, true, &mut groups);
        groups
    }

    fn add_groups<'a>(&'a self, first: usize, counts: bool, groups: &mut Vec<(usize, &'a Layout, bool)>) {
        match self {
            Layout::Tuple(parts, norm) if self.is_by_part() => {
                let mut next = first;
                for (i, part) in parts.iter().enumerate() {
                    part.add_groups(next, counts && (i == 0 || *norm != PartNorm::First), groups);
                    next += part.count();
                }
            }
            Layout::Tree(_) | Layout::Tuple(..) => groups.push((first, self, counts)),
            Layout::Quadrature(_) | Layout::Carried(_) => {}
        }
    }

    /// The role of each tensor.
    pub(super) fn roles(&self) -> Vec<Role> {
        match self {
            Layout::Tree(_) => vec![Role::State; self.count()],
            Layout::Tuple(parts, _) => parts.iter().flat_map(Layout::roles).collect(),
            Layout::Quadrature(n) => vec![Role::Quadrature; *n],
            Layout::Carried(n) => vec![Role::Carried; *n],
        }
    }

    fn each<'a>(
        &'a self,
        path: &mut TreePath,
        tensors: &mut std::slice::Iter<'a, Tensor>,
        f: &mut dyn FnMut(&TreePath, Leaf<'a>),
    ) {
        let mut next = || Leaf::Tensor(tensors.next().expect("invariant: a tensor for each leaf"));
        match self {
            Layout::Tree(slots) => {
                for Slot { path: name, fixed } in slots {
                    let leaf = fixed.as_ref().map_or_else(&mut next, |x| Leaf::Static(x));
                    // The leaf of a lone tensor has no path.
                    if name.is_empty() {
                        f(path, leaf);
                    } else {
                        path.within(name, |path| f(path, leaf));
                    }
                }
            }
            Layout::Tuple(parts, _) => {
                for (i, part) in parts.iter().enumerate() {
                    path.within(&i.to_string(), |path| part.each(path, tensors, f));
                }
            }
            Layout::Quadrature(n) | Layout::Carried(n) => {
                (0..*n).for_each(|i| path.within(&i.to_string(), |path| f(path, next())));
            }
        }
    }
}

impl Leaves {
    /// The leaves of a state.
    pub(super) fn of(y: &impl TensorState) -> Leaves {
        Leaves { layout: Arc::new(y.layout()), tensors: y.leaves() }
    }

    /// The leaves of a state whose parts are measured by `norm`.
    pub(super) fn measured_by(y: &impl TensorState, norm: PartNorm) -> Leaves {
        Leaves { layout: Arc::new(y.layout().measured_by(norm)), tensors: y.leaves() }
    }

    /// Joins several states into one.
    pub(super) fn join(parts: impl IntoIterator<Item = (Layout, Vec<Tensor>)>) -> Leaves {
        let (layouts, tensors): (Vec<Layout>, Vec<Vec<Tensor>>) = parts.into_iter().unzip();
        Leaves { layout: Arc::new(Layout::Tuple(layouts, PartNorm::Joint)), tensors: tensors.concat() }
    }

    /// The same layout with other tensors.
    pub(super) fn with(&self, tensors: Vec<Tensor>) -> Leaves {
        Leaves { layout: self.layout.clone(), tensors }
    }

    pub(super) fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Converts the leaves to their tensors.
    pub(super) fn into_tensors(self) -> Vec<Tensor> {
        self.tensors
    }

    /// The structure of the tensors.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// Has the same leaves, static ones included, and the same paths as the original tree.
impl Tree for Leaves {
    fn each<'a>(&'a self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, Leaf<'a>)) {
        self.layout.each(path, &mut self.tensors.iter(), f);
    }
    fn each_mut(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        self.tensors.iter_mut().for_each(f);
    }
    fn map(&self, path: &mut TreePath, f: &mut dyn FnMut(&TreePath, &Tensor) -> Tensor) -> Self {
        let mut tensors = Vec::with_capacity(self.tensors.len());
        self.each(path, &mut |path, leaf| {
            if let Leaf::Tensor(x) = leaf {
                tensors.push(f(path, x));
            }
        });
        self.with(tensors)
    }
    fn leaves(&self) -> Vec<Tensor> {
        self.tensors.clone()
    }
}
impl TensorTree for Leaves {}
