//! The effects of fault rules, as the console offers them. An effect that this build does not have is left
//! out.

use std::collections::BTreeSet;

use domain::Language;
use schemars::schema_for;
use serde_json::Value;

use super::kinds::CLOSE_REASONS;
use crate::http::faults::NewRule;

/// An effect of a fault rule.
pub(super) struct EffectView {
    /// Its name in `do`.
    pub name: &'static str,
    pub label: &'static str,
    pub fields: &'static [EffectField],
}

/// A field of an effect.
pub(super) struct EffectField {
    /// The name in the form, with its type.
    pub name: &'static str,
    /// The label; empty for a fixed value.
    pub label: &'static str,
    /// The value at first.
    pub value: &'static str,
    /// The only values; empty if it is typed.
    pub choices: &'static [&'static str],
}

/// (name in `do`, Korean, English, fields)
type EffectRow = (&'static str, &'static str, &'static str, &'static [EffectField]);

const MOMENTS: &[&str] = &["before", "after"];
const TAMPERED: &[&str] = &["signature", "timestamp", "body"];

const EFFECTS: &[EffectRow] = &[
    (
        "status",
        "상태 코드",
        "Status",
        &[
            typed("do.status:number", "status", "429"),
            typed("do.retryAfter:number", "retryAfter", "5"),
            typed("do.message", "message", ""),
        ],
    ),
    ("delay", "지연", "Delay", &[typed("do.delay", "delay", "2s"), chosen("do.when", "when", MOMENTS)]),
    ("cut", "연결 끊기", "Cut", &[chosen("do.cut", "cut", MOMENTS)]),
    ("truncate", "잘린 응답", "Truncate", &[fixed("do.truncate:flag")]),
    ("drop", "이벤트 유실", "Drop", &[fixed("do.drop:flag")]),
    ("duplicate", "중복", "Duplicate", &[fixed("do.duplicate:flag")]),
    ("reorder", "순서 바뀜", "Reorder", &[fixed("do.reorder:flag")]),
    ("late", "늦은 이벤트", "Late", &[typed("do.late", "late", "2s")]),
    ("silence", "침묵", "Silence", &[fixed("do.silence:flag")]),
    ("close", "세션 종료", "Close", &[chosen("do.close", "close", CLOSE_REASONS)]),
    ("tamper", "웹훅 변조", "Tamper", &[chosen("do.tamper", "tamper", TAMPERED)]),
];

const fn typed(name: &'static str, label: &'static str, value: &'static str) -> EffectField {
    EffectField { name, label, value, choices: &[] }
}

const fn chosen(name: &'static str, label: &'static str, choices: &'static [&'static str]) -> EffectField {
    EffectField { name, label, value: "", choices }
}

const fn fixed(name: &'static str) -> EffectField {
    EffectField { name, label: "", value: "true", choices: &[] }
}

/// What fault rules of this build can do and mean.
pub(super) struct FaultForm {
    pub effects: Vec<EffectView>,
    matches: BTreeSet<String>,
}

impl FaultForm {
    /// The form in a language.
    pub fn of(language: Language) -> Self {
        let schema = Value::from(schema_for!(NewRule));
        let (known, matches) = (properties(&schema, "do"), properties(&schema, "match"));
        let effects = EFFECTS.iter().filter(|(name, ..)| known.contains(*name));
        let view = |(name, korean, english, fields): &EffectRow| EffectView {
            name,
            label: language.pick(korean, english),
            fields,
        };
        Self { effects: effects.map(view).collect(), matches }
    }

    /// Whether a rule can mean requests or messages by this field.
    pub fn matches(&self, field: &str) -> bool {
        self.matches.contains(field)
    }
}

/// The names of the fields of a field of a rule.
fn properties(schema: &Value, field: &str) -> BTreeSet<String> {
    let of_field = &schema["properties"][field];
    // An optional field is one of its type and null.
    let of_field = of_field.get("anyOf").map_or(of_field, |choices| &choices[0]);
    let reference = of_field["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    let of_type = reference.and_then(|pointer| schema.pointer(pointer)).unwrap_or(of_field);
    let properties = of_type["properties"].as_object();
    properties.into_iter().flat_map(|properties| properties.keys().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_has_what_rules_can_do_and_mean() {
        let form = FaultForm::of(Language::English);
        let names: Vec<&str> = form.effects.iter().map(|effect| effect.name).collect();
        assert_eq!(names.len(), EFFECTS.len(), "{names:?}");
        assert!(form.matches("path") && form.matches("webhook") && !form.matches("nothing"));
    }
}
