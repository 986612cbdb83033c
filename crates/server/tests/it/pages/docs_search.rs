//! Questions of readers, and where the documentation answers: the answer has to be among the first results.

use std::time::Duration;

use testkit::{Request, Setup, World, both};

/// Blocks: the addresses that answer, then the searches that have to find one of them in both languages.
const QUESTIONS: &str = include_str!("docs_questions.txt");
/// Among how many results the answer has to be.
const FIRST: usize = 3;

/// The addresses of the results, the best first.
async fn search(world: &World, asked: &str, language: &str) -> Vec<String> {
    let request = Request::get(format!("/docs?q={}", testkit::encode(asked)));
    let answer = world.send(request.header("Accept-Language", language)).await;
    assert_eq!(answer.status, 200, "{asked}");
    let (_, list) = answer.text().split_once("<ul class=\"found\">").unwrap_or_default();
    let links = list.split("<li><a href=\"").skip(1);
    links.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_results_answer_the_questions_of_readers() {
    both(Setup::default(), |world| async move {
        let (mut wrong, mut asked) = (Vec::new(), 0);
        for block in QUESTIONS.split("\n\n").map(str::trim) {
            // A reader who searches has a quota.
            world.advance(Duration::from_mins(1));
            let (answers, questions) = block.split_once('\n').expect("addresses and searches");
            let answers: Vec<&str> = answers.split(' ').collect();
            for question in questions.lines() {
                for language in ["ko", "en"] {
                    asked += 1;
                    let found = search(&world, question, language).await;
                    let found = &found[..found.len().min(FIRST)];
                    if !found.iter().any(|href| answers.contains(&href.as_str())) {
                        wrong.push(format!("{question} ({language}): {found:?}, expected {answers:?}"));
                    }
                }
            }
        }
        assert!(asked > 400, "{asked}");
        assert!(wrong.is_empty(), "{} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
    })
    .await;
}
