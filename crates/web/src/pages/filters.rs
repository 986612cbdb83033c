//! The filters that templates may use as `|name`.

#![allow(missing_docs, reason = "the macro makes a type of each filter, which has no place for a comment")]

use super::name::{self as names, SHOWN_HOST_MAX_CHARS, SHOWN_LINE_MAX_CHARS};

/// `{{ text|initial }}`: [`names::initial`], escaped by the template.
#[askama::filter_fn]
pub fn initial(text: &str, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(names::initial(text))
}

/// `{{ text|host }}`: like `name`, with the maximum length of a host.
#[askama::filter_fn]
pub fn host(text: &str, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(names::shown_up_to(text, SHOWN_HOST_MAX_CHARS))
}

/// `{{ text|line }}`: like `name`, with the maximum length of a chat message or a title.
#[askama::filter_fn]
pub fn line(text: &str, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(names::shown_up_to(text, SHOWN_LINE_MAX_CHARS))
}

/// `{{ error|sentence(label) }}`: what is wrong with a field as a whole sentence, which begins with the
/// field's label where the rule is only a part of one.
#[askama::filter_fn]
pub fn sentence(text: &str, _: &dyn askama::Values, label: &str) -> askama::Result<String> {
    let is_part = text.starts_with(|first: char| first.is_ascii_lowercase());
    Ok(if is_part { format!("{label} {text}") } else { text.to_owned() })
}

/// `{{ text|name }}`: [`names::shown`], escaped by the template.
#[askama::filter_fn]
pub fn name(text: &str, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(names::shown(text))
}
