//! Colours of the operator's brand, adjusted so that text stays readable on them and beside them
//! (`docs/operating.md#the-brand`).
//!
//! Contrast is that of WCAG 2: 21 between black and white, 1 between equal colours.

use std::fmt;

/// The contrast that text needs.
pub const TEXT_CONTRAST: f64 = 4.5;
/// The contrast that a control needs with the surface around it.
pub const SHAPE_CONTRAST: f64 = 3.0;
/// Number of steps from a colour to black or white.
const STEPS: u16 = 100;
/// How far a button changes under the pointer, in steps.
const HOVER_STEPS: u16 = 14;

/// An opaque colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color([u8; 3]);

/// The colours of links and buttons on one surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accent {
    /// A button.
    pub fill: Color,
    /// A button under the pointer.
    pub fill_hover: Color,
    /// The text of a button.
    pub on_fill: Color,
    /// A link.
    pub link: Color,
}

impl Color {
    /// Black.
    pub const BLACK: Self = Self([0; 3]);
    /// White.
    pub const WHITE: Self = Self([u8::MAX; 3]);

    /// A colour of its three parts.
    pub const fn rgb(red: u8, green: u8, blue: u8) -> Self {
        Self([red, green, blue])
    }

    /// Parses `#rrggbb`; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        Some(Self([part(0)?, part(2)?, part(4)?]))
    }

    /// The relative luminance, from 0 to 1.
    fn luminance(self) -> f64 {
        let linear = self.0.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.212_6 * linear[0] + 0.715_2 * linear[1] + 0.072_2 * linear[2]
    }

    /// The contrast between two colours, from 1 to 21.
    pub fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance() + 0.05, other.luminance() + 0.05);
        one.max(two) / one.min(two)
    }

    /// Black or white, whichever is easier to read on this colour. The contrast is at least
    /// [`TEXT_CONTRAST`].
    #[must_use]
    pub fn text_on(self) -> Self {
        if self.contrast(Self::WHITE) >= self.contrast(Self::BLACK) { Self::WHITE } else { Self::BLACK }
    }

    /// The nearest colour towards black or white that has this contrast with a surface. Black or white itself
    /// when no colour has it.
    #[must_use]
    pub fn distinct_on(self, surface: Self, contrast: f64) -> Self {
        let end = surface.text_on();
        let towards = (0..=STEPS).map(|step| self.mixed(end, step));
        towards.into_iter().find(|color| color.contrast(surface) >= contrast).unwrap_or(end)
    }

    /// This colour with that many of [`STEPS`] parts of another.
    fn mixed(self, other: Self, parts: u16) -> Self {
        let mixed = |at: usize| {
            let sum = u16::from(self.0[at]) * (STEPS - parts) + u16::from(other.0[at]) * parts;
            u8::try_from(sum / STEPS).unwrap_or(u8::MAX)
        };
        Self([mixed(0), mixed(1), mixed(2)])
    }
}

impl Accent {
    /// The accent of a brand's colour on a surface.
    pub fn on(surface: Color, brand: Color) -> Self {
        let fill = brand.distinct_on(surface, SHAPE_CONTRAST);
        let on_fill = fill.text_on();
        // Away from the text, so that the text stays readable.
        let away = if on_fill == Color::WHITE { Color::BLACK } else { Color::WHITE };
        let fill_hover = fill.mixed(away, HOVER_STEPS);
        Self { fill, fill_hover, on_fill, link: brand.distinct_on(surface, TEXT_CONTRAST) }
    }
}

/// `#rrggbb`.
impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Colours over the whole cube.
    fn colors() -> impl Iterator<Item = Color> {
        let parts = [0, 37, 90, 119, 128, 160, 200, 237, 255];
        parts.into_iter().flat_map(move |red| {
            parts
                .into_iter()
                .flat_map(move |green| parts.into_iter().map(move |blue| Color::rgb(red, green, blue)))
        })
    }

    #[test]
    fn a_colour_is_six_digits_behind_a_hash() {
        for (text, expected) in [
            ("#3a2559", Some(Color::rgb(0x3a, 0x25, 0x59))),
            ("#FFFFFF", Some(Color::WHITE)),
            ("3a2559", None),
            ("#3a255", None),
            ("#3a25599", None),
            ("#+a2559", None),
            ("#가나", None),
            ("red", None),
            ("", None),
        ] {
            assert_eq!(Color::parse(text), expected, "{text}");
        }
        assert_eq!(Color::rgb(0, 10, 255).to_string(), "#000aff");
    }

    #[test]
    fn the_contrast_is_that_of_the_guidelines() {
        let check = |one: &str, two: &str, expected: f64| {
            let (one, two) = (Color::parse(one).unwrap(), Color::parse(two).unwrap());
            assert!((one.contrast(two) - expected).abs() < 0.01, "{one} {two}: {}", one.contrast(two));
            assert!((one.contrast(two) - two.contrast(one)).abs() < 1e-9);
        };
        check("#000000", "#ffffff", 21.0);
        check("#777777", "#ffffff", 4.48);
        check("#ff0000", "#ffffff", 4.0);
        check("#123456", "#123456", 1.0);
    }

    #[test]
    fn black_or_white_is_readable_on_every_colour() {
        for color in colors() {
            assert!(color.contrast(color.text_on()) >= TEXT_CONTRAST, "{color}");
        }
    }

    #[test]
    fn every_brand_is_readable_on_a_light_and_on_a_dark_surface() {
        for surface in ["#f6f2ec", "#ffffff", "#1d152b", "#000000"] {
            let surface = Color::parse(surface).unwrap();
            for brand in colors() {
                let Accent { fill, fill_hover, on_fill, link } = Accent::on(surface, brand);
                assert!(fill.contrast(surface) >= SHAPE_CONTRAST, "{brand} on {surface}");
                assert!(fill.contrast(on_fill) >= TEXT_CONTRAST, "{brand} on {surface}");
                assert!(fill_hover.contrast(on_fill) >= TEXT_CONTRAST, "{brand} on {surface}");
                assert!(link.contrast(surface) >= TEXT_CONTRAST, "{brand} on {surface}");
            }
        }
    }

    #[test]
    fn a_brand_that_is_distinct_already_stays_as_it_is() {
        let (white, brand) = (Color::WHITE, Color::rgb(0x3a, 0x25, 0x59));
        assert_eq!(Accent::on(white, brand).fill, brand);
        assert_eq!(Accent::on(white, brand).link, brand);
        assert_ne!(Accent::on(Color::BLACK, brand).link, brand);
    }
}
