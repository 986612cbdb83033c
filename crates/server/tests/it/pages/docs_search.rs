//! The page with the results of a search of the documentation. Tests of the search itself ask it what readers
//! ask.

use testkit::{Request, Setup, both};

#[tokio::test(flavor = "multi_thread")]
async fn a_search_shows_the_answers_of_both_languages() {
    both(Setup::default(), |world| async move {
        for asked in ["how do I verify a webhook signature", "웹훅 서명을 확인하는 방법"] {
            for language in ["ko", "en"] {
                let request = Request::get(format!("/docs?q={}", testkit::encode(asked)));
                let answer = world.send(request.header("Accept-Language", language)).await;
                assert_eq!(answer.status, 200, "{asked}");
                let (_, list) = answer.text().split_once("<ul class=\"found\">").expect("results");
                let (_, first) = list.split_once("<li><a href=\"").expect("a result");
                assert!(first.starts_with("/docs/webhook#verifying\""), "{asked} ({language})");
            }
        }
    })
    .await;
}
