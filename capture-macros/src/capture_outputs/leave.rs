//! Where a run that may stop early looks whether it has everything.

use proc_macro2::TokenStream;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, ExprAsync, ExprClosure, ExprConst, ExprForLoop, ExprLoop, ExprWhile, Item, Stmt, parse_quote};

/// Puts a check at the head of every loop of `body`. Closures, `async` blocks and nested items are left alone: a
/// `return` there would not leave the method.
pub(super) fn leave_when_complete(body: &mut Block, core: &TokenStream) {
    let check = parse_quote! {
        if #core::__private::is_complete() {
            return ::core::result::Result::Err(::core::convert::From::from(#core::capture::CaptureError::Complete));
        }
    };
    Heads { check }.visit_block_mut(body);
}

struct Heads {
    check: Stmt,
}

impl VisitMut for Heads {
    fn visit_expr_for_loop_mut(&mut self, looped: &mut ExprForLoop) {
        visit_mut::visit_expr_for_loop_mut(self, looped);
        looped.body.stmts.insert(0, self.check.clone());
    }
    fn visit_expr_while_mut(&mut self, looped: &mut ExprWhile) {
        visit_mut::visit_expr_while_mut(self, looped);
        looped.body.stmts.insert(0, self.check.clone());
    }
    fn visit_expr_loop_mut(&mut self, looped: &mut ExprLoop) {
        visit_mut::visit_expr_loop_mut(self, looped);
        looped.body.stmts.insert(0, self.check.clone());
    }
    fn visit_expr_closure_mut(&mut self, _: &mut ExprClosure) {}
    fn visit_expr_async_mut(&mut self, _: &mut ExprAsync) {}
    fn visit_expr_const_mut(&mut self, _: &mut ExprConst) {}
    fn visit_item_mut(&mut self, _: &mut Item) {}
}
