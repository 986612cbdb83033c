//! The category search over 100,000 categories: the first one, which reads them all, then one after the
//! other, and while categories change.
//!
//!     cargo bench -p service
//!
//! The same on PostgreSQL if `STAGEDOOR_TEST_DATABASE_URL` is set.
#![allow(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::time::{Duration, Instant};

use domain::CategoryId;
use domain::live::{Category, CategoryType};
use store::testing::{self, Fresh};
use store::{Options, Store, StoreError, Tx};
use testkit::{ServiceSetup, ServiceWorld};

const CATEGORIES: usize = 100_000;
const SEARCHES: usize = 1_000;
/// (what it is, the query)
const QUERIES: [(&str, &str); 6] = [
    ("a very frequent letter", "a"),
    ("one frequent syllable", "가"),
    ("a frequent word", "garden"),
    ("one category", "번호 77777번"),
    ("nothing", "없는 이름"),
    ("nothing, of frequent letters", "ananananaa"),
];

#[tokio::main]
async fn main() {
    measure(testing::sqlite()).await;
    if std::env::var(testing::DATABASE_URL).is_ok() {
        measure(testing::postgres().await).await;
    }
}

async fn measure(engine: Fresh) {
    let store = engine.open(Options::default()).await;
    fill(&store).await;
    let setup = ServiceSetup { system_clock: true, ..ServiceSetup::default() };
    let service = ServiceWorld::new(setup, store.clone()).service;
    let begun = Instant::now();
    service.search_categories("a", 50).await.expect("categories");
    println!("{}: the first search of a node: {:?}", engine.name(), begun.elapsed());
    for (what, query) in QUERIES {
        let (mut times, mut found) = (Vec::with_capacity(SEARCHES), 0);
        for _ in 0..SEARCHES {
            let begun = Instant::now();
            found = service.search_categories(query, 20).await.expect("categories").len();
            times.push(begun.elapsed());
        }
        println!("{}: {what} ({found} found): {}", engine.name(), percentiles(&mut times));
    }
    let mut times = Vec::with_capacity(SEARCHES);
    for n in 0..SEARCHES {
        service.put_category(category(n * 97, "새로운")).await.expect("a change");
        let begun = Instant::now();
        service.search_categories("없는 이름", 20).await.expect("categories");
        times.push(begun.elapsed());
    }
    println!("{}: nothing, right after a change: {}", engine.name(), percentiles(&mut times));
    store.close().await;
    engine.remove().await;
}

/// Names of one to four words in two scripts, and a number.
fn category(n: usize, word: &str) -> Category {
    const WORDS: [&str; 12] = [
        "Garden",
        "바다",
        "Star",
        "전쟁",
        "Banana",
        "가을",
        "Racing",
        "왕국",
        "World",
        "이야기",
        "Legend",
        "축구",
    ];
    let hash = n.wrapping_mul(2_654_435_761) >> 3;
    let words: Vec<_> = (0..1 + hash % 4).map(|at| WORDS[(hash >> (4 * at + 2)) % WORDS.len()]).collect();
    Category {
        category_id: CategoryId::stored(format!("category-{n:06}")),
        category_type: CategoryType::Game,
        category_value: format!("{} {word} 번호 {n}번", words.join(" ")),
        poster_image_url: Some(format!("https://images.example/{n}.png")),
    }
}

async fn fill(store: &Store) {
    for from in (0..CATEGORIES).step_by(200) {
        let filled: Result<(), StoreError> = store
            .write(async move |tx: &mut Tx| {
                for n in from..from + 200 {
                    tx.next_category_version().await?;
                    tx.put_category(&category(n, "")).await?;
                }
                Ok(())
            })
            .await;
        filled.expect("categories");
    }
}

fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    format!("p50 {:?}, p99 {:?}, most {:?}", at(0.5), at(0.99), times.last().copied().unwrap_or_default())
}
