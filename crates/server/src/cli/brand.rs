//! The options about the brand of the pages.

use std::path::{Path, PathBuf};

use clap::Args;
use domain::Language;
use domain::color::Color;
use domain::https_url::HttpsUrl;
use web::{Brand, Logo};

/// The heading of the options about the brand, in the help.
const PAGES: &str = "Pages";
/// Maximum length of the name of a service, in characters.
const NAME_CHARS_MAX: usize = 40;

/// The options about the brand of the pages.
#[derive(Debug, Args)]
pub struct BrandOptions {
    /// The name of the service on its pages. Default: Stagedoor.
    #[arg(long, value_name = "NAME", env = "STAGEDOOR_BRAND_NAME", help_heading = PAGES)]
    brand_name: Option<String>,

    /// The logo on the pages: a PNG, JPEG, WebP or SVG file of at most 256 KiB.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_BRAND_LOGO", help_heading = PAGES)]
    brand_logo: Option<PathBuf>,

    /// The colour of buttons and links, as in `#3a2559`. It is made lighter or darker where it could not be
    /// read.
    #[arg(long, value_name = "COLOR", env = "STAGEDOOR_BRAND_COLOR", help_heading = PAGES)]
    brand_color: Option<String>,

    /// The page where people find help, as in `https://example.com/help`. The pages link to it.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_HELP_URL", help_heading = PAGES)]
    help_url: Option<String>,

    /// The terms of use. The pages link to them.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_TERMS_URL", help_heading = PAGES)]
    terms_url: Option<String>,

    /// The privacy policy. The pages link to it.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_PRIVACY_URL", help_heading = PAGES)]
    privacy_url: Option<String>,
}

impl BrandOptions {
    /// The brand.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn brand(&self) -> Result<Brand, String> {
        let default = Brand::default();
        Ok(Brand {
            name: self.brand_name.as_deref().map(check_name).transpose()?.unwrap_or(default.name),
            color: self.brand_color.as_deref().map(check_color).transpose()?,
            logo: self.brand_logo.as_deref().map(read_logo).transpose()?,
            help: link("--help-url", self.help_url.as_deref())?,
            terms: link("--terms-url", self.terms_url.as_deref())?,
            privacy: link("--privacy-url", self.privacy_url.as_deref())?,
        })
    }
}

fn check_name(name: &str) -> Result<String, String> {
    let name = name.trim();
    let is_good = !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX;
    if is_good && !name.chars().any(char::is_control) {
        Ok(name.to_owned())
    } else {
        Err(format!("--brand-name must have 1 to {NAME_CHARS_MAX} characters, without line ends"))
    }
}

fn check_color(text: &str) -> Result<Color, String> {
    Color::parse(text).ok_or("--brand-color must be # and six hexadecimal digits, as in #3a2559".to_owned())
}

fn read_logo(path: &Path) -> Result<Logo, String> {
    let failed = |problem: String| format!("--brand-logo {}: {problem}", path.display());
    let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if size > u64::try_from(web::LOGO_BYTES_MAX).unwrap_or(u64::MAX) {
        return Err(failed(format!("must have at most {} KiB", web::LOGO_BYTES_MAX / 1024)));
    }
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    Logo::new(bytes).map_err(failed)
}

fn link(option: &'static str, url: Option<&str>) -> Result<Option<HttpsUrl>, String> {
    let parse = |url| HttpsUrl::parse(option, url);
    url.map(parse)
        .transpose()
        .map_err(|invalid| format!("{option} {}", invalid.rule.text(Language::English).trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_brands_are_refused_by_the_name_of_their_option() {
        assert_eq!(check_name(" 방송국 ").as_deref(), Ok("방송국"));
        for name in ["", "  ", "a\nb", &"x".repeat(41)] {
            assert!(check_name(name).is_err_and(|text| text.starts_with("--brand-name")), "{name}");
        }
        assert!(check_color("red").is_err_and(|text| text.starts_with("--brand-color")));
        assert!(
            read_logo(Path::new("/missing.png")).is_err_and(|text| text.starts_with("--brand-logo /missing"))
        );
        let wrong = link("--help-url", Some("http://a.example")).expect_err("no https");
        assert_eq!(wrong, "--help-url must be an https address, without user information");
    }
}
