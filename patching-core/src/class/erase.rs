//! Burn's generic visitor and mapper made object-safe, so that a slot can hide the type of what it holds.
//!
//! A parameter crosses the boundary as `dyn Any` together with its kind and rank, and is downcast on the other side.

use burn::Tensor;
use burn::module::{Flag, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, Int};
use std::any::Any;

/// What a parameter's elements are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Floating point.
    Float,
    /// Integer.
    Int,
    /// Boolean.
    Bool,
}

/// An object-safe [`ModuleVisitor`].
pub trait DynVisitor {
    /// `param` is a `Param<Tensor<RANK, KIND>>`.
    fn param(&mut self, kind: Kind, rank: usize, param: &dyn Any);
    /// `tensor` is a `Tensor<RANK, KIND>`.
    fn tensor_at(&mut self, kind: Kind, rank: usize, path: &[String], id: ParamId, tensor: &dyn Any);
    /// A flag parameter.
    fn flag(&mut self, flag: &Param<Flag>);
    /// A submodule begins.
    fn enter(&mut self, name: &str, container: &str);
    /// A submodule ends.
    fn exit(&mut self, name: &str, container: &str);
}

/// An object-safe [`ModuleMapper`].
pub trait DynMapper {
    /// `param` is an `Option<Param<Tensor<RANK, KIND>>>`, taken and put back in place: nothing is boxed.
    fn param(&mut self, kind: Kind, rank: usize, param: &mut dyn Any);
    /// A flag parameter.
    fn flag(&mut self, flag: Param<Flag>) -> Param<Flag>;
    /// A submodule begins.
    fn enter(&mut self, name: &str, container: &str);
    /// A submodule ends.
    fn exit(&mut self, name: &str, container: &str);
}

/// Lets a module visit or map through an object-safe visitor or mapper.
pub struct Outward<'a, T: ?Sized>(pub &'a mut T);

impl ModuleVisitor for Outward<'_, dyn DynVisitor + '_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.param(Kind::Float, D, param);
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.0.param(Kind::Int, D, param);
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.0.param(Kind::Bool, D, param);
    }
    fn visit_flag(&mut self, flag: &Param<Flag>) {
        self.0.flag(flag);
    }
    fn enter_module(&mut self, name: &str, container: &str) {
        self.0.enter(name, container);
    }
    fn exit_module(&mut self, name: &str, container: &str) {
        self.0.exit(name, container);
    }
    fn visit_float_with_path<const D: usize>(&mut self, path: &[String], id: ParamId, tensor: &Tensor<D>) {
        self.0.tensor_at(Kind::Float, D, path, id, tensor);
    }
    fn visit_int_with_path<const D: usize>(&mut self, path: &[String], id: ParamId, tensor: &Tensor<D, Int>) {
        self.0.tensor_at(Kind::Int, D, path, id, tensor);
    }
    fn visit_bool_with_path<const D: usize>(&mut self, path: &[String], id: ParamId, tensor: &Tensor<D, Bool>) {
        self.0.tensor_at(Kind::Bool, D, path, id, tensor);
    }
}

impl Outward<'_, dyn DynMapper + '_> {
    fn through<P: Any>(&mut self, kind: Kind, rank: usize, param: P) -> P {
        let mut cell = Some(param);
        self.0.param(kind, rank, &mut cell);
        match cell {
            Some(param) => param,
            // Only `Inward` implements `DynMapper`, and it always puts the parameter back.
            None => unreachable!("a mapper keeps no parameter"),
        }
    }
}

impl ModuleMapper for Outward<'_, dyn DynMapper + '_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.through(Kind::Float, D, param)
    }
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        self.through(Kind::Int, D, param)
    }
    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        self.through(Kind::Bool, D, param)
    }
    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.0.flag(flag)
    }
    fn enter_module(&mut self, name: &str, container: &str) {
        self.0.enter(name, container);
    }
    fn exit_module(&mut self, name: &str, container: &str) {
        self.0.exit(name, container);
    }
}

/// Runs `$body` with the constant `$d` equal to the rank. Burn itself stops at rank 8 in its records.
macro_rules! with_rank {
    ($rank:expr, $d:ident => $body:expr) => {
        with_rank!(@ $rank, $d, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12)
    };
    (@ $rank:expr, $d:ident, $body:expr, $($n:literal)*) => {
        match $rank {
            $($n => { const $d: usize = $n; $body })*
            rank => panic!("a slot holds parameters of at most 12 dimensions, found one of {rank}"),
        }
    };
}

/// Lets an object-safe call reach a real visitor or mapper.
pub struct Inward<'a, T>(pub &'a mut T);

fn with<P: 'static>(param: &dyn Any, run: impl FnOnce(&P)) {
    if let Some(param) = param.downcast_ref::<P>() {
        run(param);
    }
}

impl<V: ModuleVisitor> DynVisitor for Inward<'_, V> {
    fn param(&mut self, kind: Kind, rank: usize, param: &dyn Any) {
        with_rank!(rank, D => match kind {
            Kind::Float => with(param, |p: &Param<Tensor<D>>| self.0.visit_float(p)),
            Kind::Int => with(param, |p: &Param<Tensor<D, Int>>| self.0.visit_int(p)),
            Kind::Bool => with(param, |p: &Param<Tensor<D, Bool>>| self.0.visit_bool(p)),
        });
    }
    fn tensor_at(&mut self, kind: Kind, rank: usize, path: &[String], id: ParamId, tensor: &dyn Any) {
        with_rank!(rank, D => match kind {
            Kind::Float => with(tensor, |t: &Tensor<D>| self.0.visit_float_with_path(path, id, t)),
            Kind::Int => with(tensor, |t: &Tensor<D, Int>| self.0.visit_int_with_path(path, id, t)),
            Kind::Bool => with(tensor, |t: &Tensor<D, Bool>| self.0.visit_bool_with_path(path, id, t)),
        });
    }
    fn flag(&mut self, flag: &Param<Flag>) {
        self.0.visit_flag(flag);
    }
    fn enter(&mut self, name: &str, container: &str) {
        self.0.enter_module(name, container);
    }
    fn exit(&mut self, name: &str, container: &str) {
        self.0.exit_module(name, container);
    }
}

fn in_place<P: Any>(cell: &mut dyn Any, run: impl FnOnce(P) -> P) {
    if let Some(cell) = cell.downcast_mut::<Option<P>>() {
        *cell = cell.take().map(run);
    }
}

impl<M: ModuleMapper> DynMapper for Inward<'_, M> {
    fn param(&mut self, kind: Kind, rank: usize, param: &mut dyn Any) {
        with_rank!(rank, D => match kind {
            Kind::Float => in_place(param, |p: Param<Tensor<D>>| self.0.map_float(p)),
            Kind::Int => in_place(param, |p: Param<Tensor<D, Int>>| self.0.map_int(p)),
            Kind::Bool => in_place(param, |p: Param<Tensor<D, Bool>>| self.0.map_bool(p)),
        });
    }
    fn flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.0.map_flag(flag)
    }
    fn enter(&mut self, name: &str, container: &str) {
        self.0.enter_module(name, container);
    }
    fn exit(&mut self, name: &str, container: &str) {
        self.0.exit_module(name, container);
    }
}
