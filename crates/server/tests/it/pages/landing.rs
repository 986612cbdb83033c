//! The landing page, the files of the pages, and what browsers see of unknown paths.

use testkit::{Request, Setup, both};

use super::assert_guarded;

const CHROME: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[tokio::test(flavor = "multi_thread")]
async fn the_landing_page_says_where_to_go_and_links_only_to_pages_that_exist() {
    both(Setup::default(), |world| async move {
        let mut browser = world.browser();
        let page = browser.open("/").await;
        assert_eq!(page.response.status, 200);
        assert_guarded(&page);
        let html = page.response.text();
        let links = html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let links: Vec<_> = links.filter(|link| !link.starts_with('#')).collect();
        for door in ["/docs", "/docs#quick-start", "/studio", "/developers", "/sign-in"] {
            assert!(links.contains(&door), "{door}: {links:?}");
        }
        for link in links {
            let path = link.split('#').next().unwrap_or_default().replace("&#38;", "&");
            let answer = world.send(Request::get(path)).await;
            let expected =
                if matches!(link, "/account/apps" | "/studio" | "/developers") { 303 } else { 200 };
            assert_eq!(answer.status, expected, "{link}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chosen_language_is_remembered() {
    both(Setup::default(), |world| async move {
        let mut browser = world.browser();
        browser.accept_language = Some("ko".to_owned());
        let page = browser.open("/").await;
        assert!(page.response.text().contains("<html lang=\"ko\">"));
        assert_eq!(page.link("English"), "/?lang=en");
        assert!(browser.open("/?lang=en").await.response.text().contains("<html lang=\"en\">"));
        for path in ["/", "/sign-in", "/docs", "/account-interlock"] {
            let page = browser.open(path).await;
            assert!(page.response.text().contains("<html lang=\"en\">"), "{path}");
        }
        assert!(browser.open("/?lang=fr").await.response.text().contains("<html lang=\"en\">"));
        browser.open("/docs?lang=ko").await;
        assert!(browser.open("/").await.response.text().contains("<html lang=\"ko\">"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_kept_for_a_year_under_the_hash_of_their_content() {
    both(Setup::default(), |world| async move {
        let html = world.send(Request::get("/")).await.text().to_owned();
        let mut found = 0;
        for part in html.split('"').filter(|part| part.starts_with("/assets/")) {
            let file = world.send(Request::get(part)).await;
            assert_eq!(file.status, 200, "{part}");
            assert_eq!(file.header("cache-control"), Some("public, max-age=31536000, immutable"));
            assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
            found += 1;
        }
        assert_eq!(found, 3, "icon, style sheet, script");
        world.send(Request::get("/assets/style-0000000000000000.css")).await.assert_refused(404, "NOT_FOUND");
        assert_eq!(
            world.send(Request::get("/favicon.ico")).await.header("content-type"),
            Some("image/svg+xml")
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gets_a_page_for_what_is_not_found_and_a_program_gets_json() {
    both(Setup::default(), |world| async move {
        for (method, path, status, title) in [
            ("GET", "/missing", 404, "페이지를 찾을 수 없습니다"),
            ("GET", "/account-interlock/", 404, "페이지를 찾을 수 없습니다"),
            ("POST", "/missing", 404, "페이지를 찾을 수 없습니다"),
            ("GET", "/sign-out", 405, "페이지를 찾을 수 없습니다"),
        ] {
            let mut browser = world.browser();
            let page = browser.send(Request::new(method, path).header("Accept", CHROME)).await;
            assert_eq!(page.response.status, status, "{path}");
            assert_guarded(&page);
            assert!(page.response.text().contains(&format!("<h1>{title}</h1>")), "{path}");
            assert_eq!(page.response.header("allow").is_some(), status == 405);
            assert!(page.response.header("stagedoor-reason").is_some());
        }
        let json = r#"{"code":404,"message":"NOT_FOUND"}"#;
        for (path, accept) in [
            ("/missing", "*/*"),
            ("/missing", "application/json"),
            ("/open/v1/missing", CHROME),
            ("/platform/v1/missing", CHROME),
            ("/assets/missing", CHROME),
            ("/health/missing", CHROME),
        ] {
            let answer = world.send(Request::get(path).header("Accept", accept)).await;
            assert_eq!((answer.status, answer.text()), (404, json), "{path} {accept}");
            assert_eq!(answer.header("content-type"), Some("application/json"));
        }
    })
    .await;
}
