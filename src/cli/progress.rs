//! Progress bars on standard error, where that is a terminal.

use burnlens::patching_core::weights::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Once;

/// A bar for bytes, named `what`. It appears with the first progress, and only if somebody looks.
pub(crate) fn bar(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_prefix(what);
    match ProgressStyle::with_template("{prefix} {bar:30} {decimal_bytes} of {decimal_total_bytes}, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// What tells `bar` how far a load or a save is.
pub(crate) fn advance(bar: &ProgressBar) -> impl Fn(Progress) + Send + Sync + 'static {
    let (bar, first) = (bar.clone(), Once::new());
    move |progress| {
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.bytes);
        first.call_once(|| {
            if std::io::stderr().is_terminal() {
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        });
    }
}
