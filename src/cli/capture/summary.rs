//! The summary that people read.

use super::attention::{Earlier, Head, Weights, relation};
use super::memory;
use super::record::Value;
use super::{Run, computed_in};
use crate::cli::files::shown;
use crate::cli::inputs::{ReadBy, Tokens};
use crate::cli::model;
use crate::cli::text::{Side, Table, amount, bytes, count, field, shape, time};
use burn::tensor::DType;

/// As many heads are shown, those that look at something in particular.
const SHOWN_HEADS: usize = 16;

/// As many tokens of an input or a continuation are shown.
const SHOWN_TOKENS: usize = 40;

pub(super) fn render(run: &Run<'_>) -> String {
    let mut text = String::from("burnlens capture\n\n");
    text += &what_ran(run);
    text += "\n";
    text += &values(run).render(2);
    text += &heads(run);
    text += &next(run);
    text += &generated(run);
    text += "\n";
    text += &cost(run);
    text
}

fn what_ran(run: &Run<'_>) -> String {
    let Run { model, source, given, chosen, plan, .. } = run;
    let mut text = field("model", format!("{}, {} parameters", model.class_name(), amount(model.num_params())));
    text += &field("from", shown(&source.dir).display().to_string());
    text += &field("input", format!("{}: {}", given.origin, given.shapes()));
    for tokens in [&given.tokens, &given.decoder_tokens].into_iter().flatten() {
        text += &field("", sentence(tokens));
    }
    text += &field("ran on", format!("{}, {}", chosen.backend, dtype(run)));
    text += &field("attention", model::attention_in_words(model, plan, chosen.backend));
    if let Some(experts) = model.experts_implementation() {
        text += &field("experts", experts);
    }
    if !run.loaded.unexpected.is_empty() {
        let unused = run.loaded.unexpected.len();
        text += &field(
            "unused",
            format!("{} of the checkpoint, for which the class has no place", count(unused, "tensor")),
        );
    }
    text
}

/// The element type that was computed in, and why if it is not the one asked for.
fn dtype(run: &Run<'_>) -> String {
    let asked = DType::from(run.args.dtype.float());
    let name = |dtype: DType| format!("{dtype:?}").to_lowercase();
    let used = computed_in(run.args.dtype, &run.chosen.device);
    if used == asked { name(used) } else { format!("{} (it does not compute in {})", name(used), name(asked)) }
}

/// The first sequence, shortened in the middle.
fn sentence(tokens: &Tokens) -> String {
    let words: Vec<String> = (0..tokens.ids.len()).map(|at| tokens.shown(at)).collect();
    match words.len() {
        0..=SHOWN_TOKENS => words.join(" "),
        length => {
            let half = SHOWN_TOKENS / 2;
            let (front, back) = (words.iter().take(half), words.iter().skip(length - half));
            let join = |words: Vec<&String>| words.into_iter().cloned().collect::<Vec<_>>().join(" ");
            format!("{} … {}", join(front.collect()), join(back.collect()))
        }
    }
}

/// A row for each value.
fn values(run: &Run<'_>) -> Table {
    use Side::{Left, Right};
    let mut table = Table::new(&[
        ("key", Left),
        ("layer", Right),
        ("module", Left),
        ("shape", Left),
        ("norm", Right),
        ("entropy", Right),
        ("most attended", Left),
    ]);
    for value in &run.recorded.values {
        let (position, path) = match &value.recorded {
            Some((position, path)) => (position.to_string(), path.clone()),
            None => (String::new(), String::new()),
        };
        let norm = value.norm().map_or_else(String::new, |norm| format!("{norm:.3}"));
        let (entropy, most) = attention_cells(value, run.given.read_by(&value.key));
        table.row([value.key.clone(), position, path, shape(value.shape()), norm, entropy, most]);
    }
    table
}

/// The mean entropy in bits, and the key that is looked at most.
fn attention_cells(value: &Value, read_by: ReadBy<'_>) -> (String, String) {
    let Some(weights) = Weights::of(value) else { return (String::new(), String::new()) };
    let most = weights.most_attended(read_by).map(|(key, weight)| {
        let name = weights.keys(read_by).map_or_else(String::new, |tokens| format!("{} ", tokens.quoted(key)));
        format!("{key:>3} {name}{weight:.2}")
    });
    (format!("{:.2} bits", weights.entropy()), most.unwrap_or_default())
}

/// What each head looks at; of many heads, those whose last token looks at one place most.
fn heads(run: &Run<'_>) -> String {
    let Some(tokens) = run.given.continued() else { return String::new() };
    let mut heads = all_heads(run);
    let all = heads.len();
    let Some(last) = tokens.last() else { return String::new() };
    if heads.is_empty() {
        return String::new();
    }
    if all > SHOWN_HEADS {
        // Heads that rest on the first token or on the token itself say little.
        let says_little = |head: &Head| Some(head.most_attended) == tokens.first() || head.most_attended == last;
        heads.sort_by(|one, other| says_little(one).cmp(&says_little(other)).then(other.weight.total_cmp(&one.weight)));
        heads.truncate(SHOWN_HEADS);
        heads.sort_by(|one, other| (&one.key, one.layer, one.head).cmp(&(&other.key, other.layer, other.head)));
    }
    // What is the same in every row is left out.
    let one_key = heads.iter().all(|head| Some(&head.key) == heads.first().map(|first| &first.key));
    let mut table = Table::new(&[
        ("key", Side::Left),
        ("layer", Side::Right),
        ("head", Side::Right),
        ("entropy", Side::Right),
        ("most attended", Side::Left),
        ("weight", Side::Right),
        ("what it is", Side::Left),
        ("before", Side::Right),
        ("repeat", Side::Right),
        ("first", Side::Right),
    ]);
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.2}"));
    for head in &heads {
        table.row([
            if one_key { String::new() } else { head.key.clone() },
            head.layer.to_string(),
            head.head.to_string(),
            format!("{:.2} bits", head.entropy),
            format!("{:>3} {}", head.most_attended, tokens.quoted(head.most_attended)),
            format!("{:.2}", head.weight),
            relation(head, tokens).unwrap_or_default(),
            share(head.previous),
            share(head.after_same),
            share(head.first),
        ]);
    }
    let which = if all > SHOWN_HEADS { format!("{SHOWN_HEADS} of {all} heads") } else { count(all, "head") };
    let mut text = format!("\n  What the last token, {last} {}, looks at ({which}).", tokens.quoted(last));
    text += " On average over all tokens, the weight on\n  `before`: the token before; `repeat`: what followed";
    text += " the same token earlier; `first`: the first token.\n\n";
    text += &table.render(2);
    text
}

/// The heads of all recorded self-attention over the tokens that a model continues, or that it reads if it continues
/// none.
pub(super) fn all_heads(run: &Run<'_>) -> Vec<Head> {
    let Some(tokens) = run.given.continued() else { return Vec::new() };
    let earlier = Earlier::of(tokens);
    let layers = run.recorded.values.iter().filter_map(|value| {
        let weights = Weights::of(value)?;
        let (layer, _) = value.recorded.as_ref()?;
        let ReadBy { queries, keys } = run.given.read_by(&value.key);
        let is_self = [queries, keys].iter().all(|of| of.is_some_and(|of| std::ptr::eq(of, tokens)));
        (is_self && weights.is_of(tokens)).then(|| weights.heads(&value.key, *layer, tokens, &earlier))
    });
    layers.flatten().collect()
}

fn next(run: &Run<'_>) -> String {
    let Some((id, probability)) = next_token(run) else { return String::new() };
    let token = run.given.quoted(id);
    format!("\n  The most probable next token of the first sequence is {token}, with probability {probability:.2}.\n")
}

/// What a language model takes for the next token of the first sequence, and how sure it is.
pub(super) fn next_token(run: &Run<'_>) -> Option<(i64, f64)> {
    run.model.generates().then_some(())?;
    let tokens = run.given.continued()?;
    let logits = run.recorded.values.iter().find(|value| value.name == "logits")?;
    let [_, length, vocabulary] = *logits.shape() else { return None };
    let last = tokens.last().filter(|last| *last < length)?;
    let scores: Vec<f64> = logits.data.iter::<f64>().skip(last * vocabulary).take(vocabulary).collect();
    // As when tokens are generated: the first of equals, and what is no number is never the largest.
    let numbers = scores.iter().copied().enumerate().filter(|(_, score)| !score.is_nan());
    let (id, best) = numbers.reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    let sum: f64 = scores.iter().map(|score| (score - best).exp()).sum();
    Some((i64::try_from(id).ok()?, 1.0 / sum))
}

fn generated(run: &Run<'_>) -> String {
    let Some(generated) = &run.generated else { return String::new() };
    if generated.added.iter().all(Vec::is_empty) {
        return String::new();
    }
    let mut text = String::from("\n  Continued by\n\n");
    for (row, added) in generated.added.iter().enumerate() {
        let beginning = added.get(..SHOWN_TOKENS).unwrap_or(added);
        let words = run
            .given
            .decode(beginning)
            .unwrap_or_else(|| beginning.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        let rest = if added.len() > SHOWN_TOKENS { " …" } else { "" };
        text += &format!("  {row:>3}  {words}{rest}\n");
    }
    if !generated.steps.is_empty() {
        let values: usize = generated.steps.iter().map(|step| step.values.len()).sum();
        text += &format!("\n  {} recorded, {}\n", count(generated.steps.len(), "step"), count(values, "value"));
    }
    text
}

fn cost(run: &Run<'_>) -> String {
    let mut times = vec![format!("load {}", time(run.times.load)), format!("forward {}", time(run.times.forward))];
    if let Some(generate) = run.times.generate {
        times.push(format!("generate {}", time(generate)));
    }
    let mut text = field("time", times.join(", "));
    if let Some(peak) = memory::peak() {
        let held: usize = run.recorded.values.iter().map(|value| value.data.as_bytes().len()).sum();
        text += &field("memory", format!("{} at most, {} of it recorded", bytes(peak), bytes(held as u64)));
    }
    for path in &run.files {
        text += &field("written", path.display().to_string());
    }
    text
}
