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
    /// What happens.
    pub about: &'static str,
    pub fields: Vec<EffectFieldView>,
}

/// A field of an effect in a language.
pub(super) struct EffectFieldView {
    /// The name in the form, with its type.
    pub name: &'static str,
    /// The label; empty for a fixed value.
    pub label: &'static str,
    /// The value at first.
    pub value: &'static str,
    /// The only values with their labels; empty if it is typed.
    pub choices: Vec<(&'static str, &'static str)>,
}

/// (Korean, English)
type Words = (&'static str, &'static str);

/// An effect in both languages.
struct EffectRow {
    name: &'static str,
    label: Words,
    about: Words,
    fields: &'static [EffectField],
}

/// A field of an effect in both languages.
struct EffectField {
    name: &'static str,
    label: Words,
    value: &'static str,
    control: Filling,
}

/// What a field of an effect is filled with.
enum Filling {
    Typed,
    Fixed,
    Chosen(&'static [(&'static str, Words)]),
    CloseReason,
}

const MOMENTS: &[(&str, Words)] =
    &[("before", ("효과 전", "before its effect")), ("after", ("효과 후", "after its effect"))];
const TAMPERED: &[(&str, Words)] = &[
    ("signature", ("틀린 서명", "a wrong signature")),
    ("timestamp", ("10분 전 시각", "a timestamp of 10 minutes ago")),
    ("body", ("바뀐 본문", "a changed body")),
];

const EFFECTS: &[EffectRow] = &[
    EffectRow {
        name: "status",
        label: ("상태 코드", "Status"),
        about: (
            "요청이 이 상태 코드로 답을 받고, 아무 일도 일어나지 않습니다.",
            "A request is answered with this status, and nothing takes effect.",
        ),
        fields: &[
            typed("do.status:number", ("상태 코드 (400–599)", "Status (400–599)"), "429"),
            typed("do.retryAfter:number", ("Retry-After (초)", "Retry-After (seconds)"), "5"),
            typed("do.message", ("메시지", "Message"), ""),
        ],
    },
    EffectRow {
        name: "delay",
        label: ("지연", "Delay"),
        about: ("요청이 이만큼 기다립니다.", "A request waits this long."),
        fields: &[
            typed("do.delay", ("지연 시간", "Delay"), "2s"),
            chosen("do.when", ("언제", "When"), MOMENTS),
        ],
    },
    EffectRow {
        name: "cut",
        label: ("연결 끊기", "Cut"),
        about: (
            "답 없이 연결이 끊깁니다. '효과 후'라면 일은 일어났고 답만 잃습니다. 웹훅을 골랐다면 받는 쪽의 답을 잃습니다.",
            "The connection ends without an answer. After the effect only the answer is lost; for a chosen webhook that of its receiver.",
        ),
        fields: &[chosen("do.cut", ("언제", "When"), MOMENTS)],
    },
    EffectRow {
        name: "truncate",
        label: ("잘린 응답", "Truncate"),
        about: ("답의 절반에서 연결이 끊깁니다.", "The connection ends after half of the answer."),
        fields: &[fixed("do.truncate:flag")],
    },
    EffectRow {
        name: "drop",
        label: ("이벤트 유실", "Drop"),
        about: ("세션으로 가는 이벤트가 사라집니다.", "An event on its way to a session is lost."),
        fields: &[fixed("do.drop:flag")],
    },
    EffectRow {
        name: "duplicate",
        label: ("중복", "Duplicate"),
        about: (
            "이벤트가 두 번 갑니다. 웹훅을 골랐다면 웹훅 메시지가 두 번 갑니다.",
            "An event is sent twice; for a chosen webhook its message is.",
        ),
        fields: &[fixed("do.duplicate:flag")],
    },
    EffectRow {
        name: "reorder",
        label: ("순서 바뀜", "Reorder"),
        about: ("이벤트가 다음 이벤트 뒤에 갑니다.", "An event is sent after the next one."),
        fields: &[fixed("do.reorder:flag")],
    },
    EffectRow {
        name: "late",
        label: ("늦은 이벤트", "Late"),
        about: (
            "이벤트가 늦게 가고, 다른 이벤트가 앞지릅니다. 웹훅을 골랐다면 웹훅 메시지가 늦습니다.",
            "An event is late, and others overtake it; for a chosen webhook its message is.",
        ),
        fields: &[typed("do.late", ("늦는 시간", "How late"), "2s")],
    },
    EffectRow {
        name: "silence",
        label: ("침묵", "Silence"),
        about: (
            "세션이 열린 채로 아무것도 오가지 않습니다.",
            "The session stays open, and nothing passes it any more.",
        ),
        fields: &[fixed("do.silence:flag")],
    },
    EffectRow {
        name: "close",
        label: ("세션 종료", "Close"),
        about: (
            "메시지 대신 세션이 이 이유로 끝납니다.",
            "The session ends for this reason, in place of a message.",
        ),
        fields: &[EffectField {
            name: "do.close",
            label: ("종료 이유", "Close reason"),
            value: "",
            control: Filling::CloseReason,
        }],
    },
    EffectRow {
        name: "tamper",
        label: ("웹훅 변조", "Tamper"),
        about: (
            "웹훅 메시지가 믿을 수 없게 됩니다. 받는 쪽은 거절해야 합니다.",
            "A webhook message cannot be trusted. Its receiver must refuse it.",
        ),
        fields: &[chosen("do.tamper", ("무엇이 틀리나", "What is wrong"), TAMPERED)],
    },
];

const fn typed(name: &'static str, label: Words, value: &'static str) -> EffectField {
    EffectField { name, label, value, control: Filling::Typed }
}

const fn chosen(name: &'static str, label: Words, choices: &'static [(&'static str, Words)]) -> EffectField {
    EffectField { name, label, value: "", control: Filling::Chosen(choices) }
}

const fn fixed(name: &'static str) -> EffectField {
    EffectField { name, label: ("", ""), value: "true", control: Filling::Fixed }
}

impl EffectField {
    fn view(&self, language: Language) -> EffectFieldView {
        let pick = |(korean, english): Words| language.pick(korean, english);
        let choices = match self.control {
            Filling::Typed | Filling::Fixed => Vec::new(),
            Filling::Chosen(choices) => choices.iter().map(|(value, words)| (*value, pick(*words))).collect(),
            Filling::CloseReason => CLOSE_REASONS.iter().map(|reason| (*reason, *reason)).collect(),
        };
        EffectFieldView { name: self.name, label: pick(self.label), value: self.value, choices }
    }
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
        let effects = EFFECTS.iter().filter(|effect| known.contains(effect.name));
        let pick = |(korean, english): Words| language.pick(korean, english);
        let view = |EffectRow { name, label, about, fields }: &EffectRow| EffectView {
            name,
            label: pick(*label),
            about: pick(*about),
            fields: fields.iter().map(|field| field.view(language)).collect(),
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
