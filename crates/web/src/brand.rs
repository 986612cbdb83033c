//! The operator's brand, and the files that the pages load: one style sheet, one script, that of the
//! documentation, the logo.
//!
//! The name of a file contains the hash of its content. So caches keep it for a year, and a changed file has
//! another address.

use std::fmt;

use axum::body::Bytes;
use domain::color::{Accent, Color};
use domain::https_url::HttpsUrl;

use crate::constant::{Constant, hash};

/// The name of a service without a brand.
pub const PRODUCT: &str = "Stagedoor";
/// Maximum size of a logo, in bytes.
pub const LOGO_BYTES_MAX: usize = 256 * 1024;
/// The folder of the files.
pub(crate) const FILES: &str = "/assets/";
/// Number of digits of a hash that are in a name.
const HASH_DIGITS: usize = 16;

/// The style sheet of all pages, without the brand's colours.
pub(crate) const STYLE: &str =
    concat!(include_str!("../templates/pages/style.css"), include_str!("../templates/pages/docs/docs.css"));
const SCRIPT: &str = include_str!("../templates/pages/site.js");
/// The script of the documentation, besides that of all pages.
const DOCS_SCRIPT: &str = include_str!("../templates/pages/docs/docs.js");
const DOOR: &str = include_str!("../templates/pages/icon.svg");

/// The surfaces of the style sheet on which a brand's colour is hardest to see: `--page` of the light scheme,
/// `--card` of the dark one.
const LIGHT_SURFACE: Color = Color::rgb(0xf5, 0xf2, 0xed);
const DARK_SURFACE: Color = Color::rgb(0x1d, 0x16, 0x2a);

/// The brand of the operator, on every page.
#[derive(Clone, Debug)]
pub struct Brand {
    /// The name of the service.
    pub name: String,
    /// The colour of buttons and links.
    pub color: Option<Color>,
    /// The logo.
    pub logo: Option<Logo>,
    /// The page where people find help.
    pub help: Option<HttpsUrl>,
    /// The terms of use.
    pub terms: Option<HttpsUrl>,
    /// The privacy policy.
    pub privacy: Option<HttpsUrl>,
}

impl Default for Brand {
    fn default() -> Self {
        Self { name: PRODUCT.to_owned(), color: None, logo: None, help: None, terms: None, privacy: None }
    }
}

impl Brand {
    /// Whether the service has a name of its own.
    pub fn is_own(&self) -> bool {
        self.name != PRODUCT
    }

    /// The colours of the brand as a style sheet.
    fn style(&self) -> String {
        let Some(color) = self.color else { return String::new() };
        let rule = |surface| {
            let Accent { fill, fill_hover, on_fill, link } = Accent::on(surface, color);
            format!(
                ":root{{--primary:{fill};--primary-hover:{fill_hover};--on-primary:{on_fill};--link:{link};\
                 --focus:{link};--mark:{fill}}}"
            )
        };
        let (light, dark) = (rule(LIGHT_SURFACE), rule(DARK_SURFACE));
        format!("\n{light}\n@media (prefers-color-scheme:dark){{{dark}}}\n")
    }
}

/// The picture of a brand.
#[derive(Clone)]
pub struct Logo {
    extension: &'static str,
    content_type: &'static str,
    bytes: Bytes,
}

impl Logo {
    /// A logo of the content of a file. Its kind follows from the first bytes: PNG, JPEG, WebP or SVG.
    ///
    /// # Errors
    /// A sentence about the file.
    pub fn new(bytes: Vec<u8>) -> Result<Self, String> {
        if bytes.len() > LOGO_BYTES_MAX {
            return Err(format!("must have at most {} KiB", LOGO_BYTES_MAX / 1024));
        }
        let (extension, content_type) = kind(&bytes).ok_or("must be a PNG, JPEG, WebP or SVG picture")?;
        Ok(Self { extension, content_type, bytes: bytes.into() })
    }
}

fn kind(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let is_svg = || {
        let text = std::str::from_utf8(bytes).ok().map(str::trim_start);
        text.is_some_and(|text| {
            text.starts_with("<svg") || (text.starts_with("<?xml") && text.contains("<svg"))
        })
    };
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some(("png", "image/png")),
        [0xff, 0xd8, 0xff, ..] => Some(("jpg", "image/jpeg")),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(("webp", "image/webp")),
        _ => is_svg().then_some(("svg", "image/svg+xml")),
    }
}

/// Only the size, because the bytes fill a screen.
impl fmt::Debug for Logo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Logo({}, {} bytes)", self.content_type, self.bytes.len())
    }
}

/// A file that pages load.
#[derive(Clone, Debug)]
pub(crate) struct StaticFile {
    /// Its address.
    pub href: String,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// Its content.
    pub content: Constant,
}

impl StaticFile {
    fn new(stem: &str, extension: &str, content_type: &'static str, bytes: Bytes) -> Self {
        let hash = &hash(&bytes)[..HASH_DIGITS];
        Self {
            href: format!("{FILES}{stem}-{hash}.{extension}"),
            content_type,
            content: Constant::new(bytes),
        }
    }
}

/// The files of a service.
#[derive(Clone, Debug)]
pub(crate) struct StaticFiles {
    /// The style sheet.
    pub style: StaticFile,
    /// The script of pages that have one.
    pub script: StaticFile,
    /// The script of the documentation.
    pub docs_script: StaticFile,
    /// The operator's logo.
    pub logo: Option<StaticFile>,
    /// The icon of the browser's tab.
    pub icon: StaticFile,
}

impl StaticFiles {
    /// The files of a brand.
    pub fn of(brand: &Brand) -> Self {
        let logo = brand.logo.as_ref().map(|Logo { extension, content_type, bytes }| {
            StaticFile::new("logo", extension, content_type, bytes.clone())
        });
        let door = || StaticFile::new("icon", "svg", "image/svg+xml", Bytes::from_static(DOOR.as_bytes()));
        let style = format!("{STYLE}{}", brand.style());
        let script = |stem, text: &'static str| {
            StaticFile::new(stem, "js", "text/javascript; charset=utf-8", Bytes::from_static(text.as_bytes()))
        };
        Self {
            style: StaticFile::new("style", "css", "text/css; charset=utf-8", style.into()),
            script: script("site", SCRIPT),
            docs_script: script("docs", DOCS_SCRIPT),
            icon: logo.clone().unwrap_or_else(door),
            logo,
        }
    }

    /// The file at this address.
    pub fn at(&self, path: &str) -> Option<&StaticFile> {
        let own = [&self.style, &self.script, &self.docs_script, &self.icon].map(Some);
        let files = own.into_iter().chain([self.logo.as_ref()]);
        files.flatten().find(|file| file.href == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surfaces_are_those_of_the_style_sheet() {
        let (light, dark) = STYLE.split_once("prefers-color-scheme: dark").expect("two schemes");
        assert!(light.contains(&format!("--page: {LIGHT_SURFACE};")));
        assert!(dark.contains(&format!("--card: {DARK_SURFACE};")));
    }

    #[test]
    fn the_style_sheet_and_the_script_name_no_other_host() {
        for text in [STYLE, SCRIPT] {
            for forbidden in ["url(", "@import", "http:", "https:", "\"//", "'//", "`//", "eval("] {
                assert!(!text.contains(forbidden), "{forbidden}");
            }
        }
    }

    #[test]
    fn a_logo_is_known_by_its_first_bytes() {
        let logo = |bytes: &[u8]| Logo::new(bytes.to_vec()).map(|logo| logo.content_type).ok();
        assert_eq!(logo(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(logo(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(logo(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(logo(b"  <svg xmlns='x'/>"), Some("image/svg+xml"));
        assert_eq!(logo(b"<?xml version='1.0'?><svg/>"), Some("image/svg+xml"));
        for bytes in [&b"<html>"[..], b"GIF89a", b"", b"RIFF\0\0\0\0WAVE"] {
            assert_eq!(logo(bytes), None);
        }
        assert!(Logo::new(vec![0x89; LOGO_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn another_colour_is_another_file() {
        let plain = StaticFiles::of(&Brand::default());
        let brand = Brand { color: Color::parse("#ffe14d"), ..Brand::default() };
        let own = StaticFiles::of(&brand);
        assert_ne!(plain.style.href, own.style.href);
        assert_eq!(plain.script.href, own.script.href);
        assert!(own.at(&own.style.href).is_some() && own.at(&plain.style.href).is_none());
    }
}
