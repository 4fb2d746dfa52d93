//! Progress bars on standard error, where that is a terminal.

use burnlens::patching_core::weights::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A bar for bytes, named `what`; invisible unless somebody looks.
pub(crate) fn bar(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
    if std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:30} {bytes} of {total_bytes}, {eta} left") {
            bar.set_style(style);
        }
        bar.set_prefix(what);
    }
    bar
}

/// What tells `bar` how far a load or a save is.
pub(crate) fn advance(bar: &ProgressBar) -> impl Fn(Progress) + Send + Sync + 'static {
    let bar = bar.clone();
    move |progress| {
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.bytes);
    }
}
