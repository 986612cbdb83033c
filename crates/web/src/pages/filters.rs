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

/// `{{ text|name }}`: [`names::shown`], escaped by the template.
#[askama::filter_fn]
pub fn name(text: &str, _: &dyn askama::Values) -> askama::Result<String> {
    Ok(names::shown(text))
}
