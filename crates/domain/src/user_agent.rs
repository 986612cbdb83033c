//! The browser and the system of a person, in plain words, from the `User-Agent` header. The header is a
//! hint: whoever sends it chooses it.

/// Words of the header, each with a browser. The first match counts: most browsers also call themselves by
/// the names below theirs.
const BROWSERS: [(&str, &str); 14] = [
    ("KAKAOTALK", "KakaoTalk"),
    ("NAVER(", "NAVER"),
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Whale/", "Whale"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
];

/// Words of the header, each with a system, in the same order of strength.
const SYSTEMS: [(&str, &str); 7] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
];

/// The browser and the system, where they are known: "Chrome · Windows".
pub fn device(user_agent: &str) -> Option<String> {
    let found = |table: &[(&str, &'static str)]| {
        table.iter().find(|(word, _)| user_agent.contains(word)).map(|(_, name)| *name)
    };
    match (found(&BROWSERS), found(&SYSTEMS)) {
        (Some(browser), Some(system)) => Some(format!("{browser} · {system}")),
        (browser, system) => browser.or(system).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_known_by_their_own_names() {
        const WINDOWS: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)";
        const MAC: &str = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)";
        const KIT: &str = "AppleWebKit/537.36 (KHTML, like Gecko)";
        for (user_agent, expected) in [
            (format!("{WINDOWS} {KIT} Chrome/142.0.0.0 Safari/537.36"), Some("Chrome · Windows")),
            (format!("{WINDOWS} {KIT} Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0"), Some("Edge · Windows")),
            (format!("{MAC} {KIT} Chrome/142.0.0.0 Whale/4.34.0.0 Safari/537.36"), Some("Whale · macOS")),
            (format!("{MAC} AppleWebKit/605.1.15 Version/26.0 Safari/605.1.15"), Some("Safari · macOS")),
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0".into(),
                Some("Firefox · Linux"),
            ),
            (
                format!("Mozilla/5.0 (Linux; Android 10; K) {KIT} SamsungBrowser/29.0 Chrome/136.0 Safari/537.36"),
                Some("Samsung Internet · Android"),
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 CriOS/142 Safari/604.1"
                    .into(),
                Some("Chrome · iPhone"),
            ),
            ("curl/8.5.0".into(), Some("curl")),
            ("Something (Windows)".into(), Some("Windows")),
            ("<script>alert(1)</script>".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(device(&user_agent).as_deref(), expected, "{user_agent}");
        }
    }
}
