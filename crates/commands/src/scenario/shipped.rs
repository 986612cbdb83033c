//! The scenarios that the program contains.

use super::file::{ScenarioFile, parse};

/// The scenarios: name and file.
pub const SHIPPED: [(&str, &str); 8] = [
    ("first-stream", include_str!("../../scenarios/first-stream.yaml")),
    ("raid", include_str!("../../scenarios/raid.yaml")),
    ("donation-burst", include_str!("../../scenarios/donation-burst.yaml")),
    ("drops-campaign", include_str!("../../scenarios/drops-campaign.yaml")),
    ("consent-withdrawn", include_str!("../../scenarios/consent-withdrawn.yaml")),
    ("deploy", include_str!("../../scenarios/deploy.yaml")),
    ("flaky-network", include_str!("../../scenarios/flaky-network.yaml")),
    ("year-of-a-bot", include_str!("../../scenarios/year-of-a-bot.yaml")),
];

/// The text of a scenario that the program contains.
pub fn text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
}

/// The scenarios that the program contains, parsed.
///
/// # Errors
/// A file is wrong.
pub fn all() -> Result<Vec<ScenarioFile>, String> {
    SHIPPED.iter().map(|(name, text)| parse(name, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::plan;
    use super::*;

    #[test]
    fn every_shipped_scenario_is_well_formed_and_named_like_its_file() {
        for (file, (name, _)) in all().expect("scenarios").iter().zip(SHIPPED) {
            assert_eq!(file.scenario, name);
            assert!(!file.about.is_empty() && plan(file).is_ok_and(|steps| !steps.is_empty()), "{name}");
        }
    }
}
