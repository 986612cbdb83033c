//! The operator's brand on the pages.

use domain::color::Color;
use domain::https_url::HttpsUrl;
use testkit::{Brand, Logo, Request, Setup, both};

use crate::fixture::Fixture;

const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";

fn brand() -> Brand {
    let link = |path: &str| HttpsUrl::parse("link", &format!("https://tv.example/{path}")).ok();
    Brand {
        name: "별 TV <b>\"&".to_owned(),
        color: Color::parse("#ffe14d"),
        logo: Logo::new(SVG.into()).ok(),
        help: link("help?a=1&b=2"),
        terms: link("terms"),
        privacy: link("privacy"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_has_the_brand() {
    both(Setup { brand, ..Setup::default() }, |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let consent = world.sign_in_page(&mut browser, &app, &streamer, "s").await;
        let mut pages = vec![consent];
        for path in ["/", "/docs", "/account-interlock"] {
            pages.push(browser.open(path).await);
        }
        pages.push(world.browser().open("/sign-in").await);
        pages.push(world.browser().send(Request::get("/missing").header("Accept", "text/html")).await);
        for page in pages {
            let html = page.response.text();
            // The names of headers are in the documentation.
            let html = html.replace("Stagedoor-", "");
            assert!(html.contains("<span>별 TV &#60;b&#62;&#34;&#38;</span>"), "{html}");
            assert!(!html.contains("Stagedoor") && !html.contains("TV <b>"), "{html}");
            for link in ["help?a=1&#38;b=2", "terms", "privacy"] {
                assert!(html.contains(&format!("href=\"https://tv.example/{link}\"")), "{link}");
            }
            let logo = html.split("<img class=\"logo\" src=\"").nth(1);
            let logo = logo.and_then(|rest| rest.split('"').next()).expect("a logo");
            let logo = world.send(Request::get(logo)).await;
            assert_eq!((logo.header("content-type"), logo.text()), (Some("image/svg+xml"), SVG));
            let policy = logo.header("content-security-policy").expect("a policy");
            assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_style_sheet_has_the_colour_of_the_brand_with_readable_text() {
    both(Setup { brand, ..Setup::default() }, |world| async move {
        let html = world.send(Request::get("/")).await.text().to_owned();
        let style = html.split('"').find(|part| part.starts_with("/assets/style-")).expect("a style sheet");
        let style = world.send(Request::get(style)).await.text().to_owned();
        let own = style.rsplit_once(":root{--primary:").expect("the dark scheme").1;
        assert!(own.starts_with("#ffe14d;") && own.contains("--on-primary:#000000"), "{own}");
    })
    .await;
}
