//! The requests of an application as a chart: a bar for each day, with a part for each of the kinds that were
//! used most.

use domain::Timestamp;
use domain::limits::DAY_MS;
use domain::usage::{RequestCount, UsageKind};
use service::application_usage::UsageRow;

/// Kinds with a colour of their own. All others share one.
const COLORS: usize = 5;
/// The height of the chart's drawing, and the width of a day in it.
const HEIGHT: i64 = 1_000;
const DAY_WIDTH: usize = 10;
const BAR_WIDTH: usize = 8;

/// The requests of a period.
#[derive(Debug)]
pub(super) struct UsageChart {
    /// The width of the drawing.
    pub width: usize,
    pub height: i64,
    pub bar_width: usize,
    /// Oldest first, also days without requests.
    pub days: Vec<UsageDay>,
    /// The most requests of a day.
    pub most: i64,
    /// Those of each kind over all days, most first.
    pub kinds: Vec<UsageOfKind>,
    pub total: RequestCount,
}

/// A day of the chart.
#[derive(Debug)]
pub(super) struct UsageDay {
    /// As in `2026-11-26`.
    pub date: String,
    pub count: RequestCount,
    /// From the bottom up.
    pub parts: Vec<BarPart>,
}

/// A part of a bar.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BarPart {
    /// The number of its colour.
    pub color: usize,
    pub x: usize,
    pub y: i64,
    pub height: i64,
}

/// The requests of one kind.
#[derive(Debug)]
pub(super) struct UsageOfKind {
    pub kind: UsageKind,
    pub count: RequestCount,
    /// The number of its colour.
    pub color: usize,
}

impl UsageChart {
    /// The chart of the days from `since` up to `today`, both midnights.
    pub(super) fn of(rows: &[UsageRow], since: Timestamp, today: Timestamp) -> Self {
        let kinds = kinds_of(rows);
        let midnights =
            (0..).map(|day| since.plus_ms(day * DAY_MS)).take_while(|midnight| *midnight <= today);
        let of_day = |midnight: Timestamp| rows.iter().filter(move |row| row.day == midnight);
        let count_of =
            |midnight| of_day(midnight).fold(RequestCount::default(), |sum, row| sum.plus(row.count));
        let midnights: Vec<Timestamp> = midnights.collect();
        let most = midnights.iter().map(|midnight| count_of(*midnight).requests).max().unwrap_or_default();
        let days = midnights.iter().enumerate().map(|(place, midnight)| UsageDay {
            date: midnight.rfc3339().chars().take("2026-11-26".len()).collect(),
            count: count_of(*midnight),
            parts: parts(&of_day(*midnight).collect::<Vec<_>>(), &kinds, most, place * DAY_WIDTH + 1),
        });
        Self {
            width: midnights.len() * DAY_WIDTH,
            height: HEIGHT,
            bar_width: BAR_WIDTH,
            days: days.collect(),
            most,
            total: kinds.iter().fold(RequestCount::default(), |sum, of| sum.plus(of.count)),
            kinds,
        }
    }
}

/// The requests of each kind, most first.
fn kinds_of(rows: &[UsageRow]) -> Vec<UsageOfKind> {
    let mut counts: Vec<(UsageKind, RequestCount)> = Vec::new();
    for row in rows {
        match counts.iter_mut().find(|(kind, _)| *kind == row.kind) {
            Some((_, count)) => *count = count.plus(row.count),
            None => counts.push((row.kind, row.count)),
        }
    }
    counts.sort_by_key(|(kind, count)| (std::cmp::Reverse(count.requests), *kind));
    let of = |(place, (kind, count)): (usize, _)| UsageOfKind { kind, count, color: place.min(COLORS) };
    counts.into_iter().enumerate().map(of).collect()
}

/// The parts of the bar at `x`, one for each colour with requests.
fn parts(rows: &[&UsageRow], kinds: &[UsageOfKind], most: i64, x: usize) -> Vec<BarPart> {
    let requests = |color: usize| -> i64 {
        let has_color = |row: &UsageRow| kinds.iter().any(|of| of.kind == row.kind && of.color == color);
        rows.iter().filter(|row| has_color(row)).map(|row| row.count.requests).sum()
    };
    let mut below = 0;
    let mut parts = Vec::new();
    for color in 0..=COLORS {
        let requests = requests(color);
        if requests == 0 {
            continue;
        }
        // Both edges are rounded, so the parts touch each other.
        let (bottom, top) = (scaled(below, most), scaled(below + requests, most));
        below += requests;
        parts.push(BarPart { color, x, y: HEIGHT - top, height: top - bottom });
    }
    parts
}

fn scaled(requests: i64, most: i64) -> i64 {
    let scaled = i128::from(requests) * i128::from(HEIGHT) / i128::from(most.max(1));
    i64::try_from(scaled).unwrap_or(HEIGHT)
}

/// A number with a comma after each thousand.
pub(super) fn thousands(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use domain::{ClientId, Scope};

    use super::*;

    fn row(day: i64, kind: UsageKind, requests: i64) -> UsageRow {
        UsageRow {
            client_id: ClientId::stored("app".to_owned()),
            day: Timestamp::from_millis(day * DAY_MS),
            kind,
            count: RequestCount { requests, refused: 1 },
        }
    }

    #[test]
    fn a_bar_has_a_part_for_each_kind_and_the_highest_fills_the_chart() {
        let chat = UsageKind::Scope(Scope::ChatRead);
        let rows = [row(1, chat, 30), row(1, UsageKind::Token, 10), row(3, chat, 20)];
        let chart = UsageChart::of(&rows, Timestamp::from_millis(0), Timestamp::from_millis(3 * DAY_MS));
        assert_eq!((chart.days.len(), chart.width, chart.most), (4, 40, 40));
        let part = |color, x, y, height| BarPart { color, x, y, height };
        assert_eq!(chart.days[0].parts, []);
        assert_eq!(chart.days[1].parts, [part(0, 11, 250, 750), part(1, 11, 0, 250)]);
        assert_eq!(chart.days[3].parts, [part(0, 31, 500, 500)]);
        assert_eq!(chart.days[1].date, "1970-01-02");
        assert_eq!(chart.total, RequestCount { requests: 60, refused: 3 });
    }

    #[test]
    fn the_rarer_kinds_share_a_colour() {
        let scopes = Scope::ALL.into_iter().zip(0_i64..).map(|(scope, n)| (UsageKind::Scope(scope), 100 - n));
        let rows: Vec<_> = scopes.map(|(kind, requests)| row(0, kind, requests)).collect();
        let chart = UsageChart::of(&rows, Timestamp::from_millis(0), Timestamp::from_millis(0));
        assert_eq!(chart.kinds.len(), Scope::ALL.len());
        assert_eq!(chart.days[0].parts.len(), COLORS + 1);
        let heights: i64 = chart.days[0].parts.iter().map(|part| part.height).sum();
        assert_eq!(heights, HEIGHT);
    }

    #[test]
    fn a_chart_without_requests_has_no_bars() {
        let chart = UsageChart::of(&[], Timestamp::from_millis(0), Timestamp::from_millis(DAY_MS));
        assert!(chart.days.iter().all(|day| day.parts.is_empty()) && chart.days.len() == 2);
        assert_eq!((chart.most, chart.kinds.len()), (0, 0));
    }

    #[test]
    fn numbers_have_commas() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }
}
