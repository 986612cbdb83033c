//! Accounts over the platform API, and messages to the mail hook.

use domain::mail::MailHook;
use domain::outbound::WebhookUrl;
use domain::secret::WebhookSecret;
use serde_json::{Value, json};
use service::accounts::NewAccount;
use testkit::{Engine, Receiver, Reply, Request, Setup, World, both, patiently};

const SECRET: &str = "the-secret-of-the-mail-hook-of-a-test";

async fn put(world: &World, id: &str, body: &Value) -> u16 {
    world.operator(Request::put(format!("/platform/v1/channels/{id}")).json(body)).await.status
}

fn issue(id: &str) -> Request {
    Request::post(format!("/platform/v1/channels/{id}/password-reset"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_issues_links_and_removes_the_second_step() {
    both(Setup::default(), |world| async move {
        let person =
            json!({ "channelName": "하늘", "login": "haneul", "password": "x", "email": "Sky@example.com" });
        assert_eq!(put(&world, "haneul", &person).await, 200);
        assert_eq!(put(&world, "haneul", &json!({ "channelName": "하늘", "email": "a@b.co" })).await, 400);
        let wrong = json!({ "channelName": "하늘", "login": "haneul", "password": "x", "email": "a" });
        assert_eq!(put(&world, "haneul", &wrong).await, 400);
        assert_eq!(put(&world, "without-login", &json!({ "channelName": "아무도" })).await, 200);

        let issued = world.operator(issue("haneul")).await.content();
        let link = issued["link"].as_str().expect("a link");
        let (page, token) = link.split_once("?token=").expect("a token");
        assert_eq!(page, format!("http://{}/reset-password", world.address()));
        assert!(token.len() >= 43, "{token}");
        assert!(issued["expiresDate"].is_string());
        let other = world.operator(issue("haneul")).await.content();
        assert_ne!(issued["link"], other["link"]);
        for id in ["without-login", "missing"] {
            world.operator(issue(id)).await.assert_refused(404, "NOT_FOUND");
        }
        for _ in 0..2 {
            world.operator(Request::delete("/platform/v1/channels/haneul/two-factor")).await.content();
        }
        let missing = Request::delete("/platform/v1/channels/missing/two-factor");
        world.operator(missing).await.assert_refused(404, "NOT_FOUND");
        let bare = Request::post("/platform/v1/channels/haneul/password-reset");
        assert_eq!(world.send(bare).await.status, 401);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mail_hook_gets_signed_messages_until_it_takes_them() {
    both(Setup { system_clock: true, ..Setup::default() }, |world| async move {
        if world.engine() == Engine::Sqlite {
            return; // An SQLite file belongs to one node.
        }
        let receiver = Receiver::start().await;
        receiver.reply([Reply::Status(503)]);
        let hook = MailHook {
            url: WebhookUrl::parse(&receiver.url("/mail"), MailHook::REACH).expect("an address"),
            secret: WebhookSecret::given(SECRET).expect("long enough"),
        };
        let (node, _) = world.another_node_with(|settings| settings.mail_hook = Some(hook)).await;
        let service = node.service();
        let account = NewAccount {
            login: "haneul".into(),
            email: Some("sky@example.com".into()),
            channel_name: "하늘".into(),
            password: "wolkenbruchig".into(),
        };
        service.register(account).await.expect("an account");
        let page = "https://x.example/reset-password";
        service.request_password_reset("haneul", page, domain::Language::Korean).await.expect("a message");
        let first = patiently("the first attempt", receiver.next()).await;
        let second = patiently("the second attempt", receiver.next()).await;
        let header = |received: &testkit::Received, name: &str| {
            received.header(&format!("Service-Event-Message-{name}")).to_owned()
        };
        for received in [&first, &second] {
            assert!(received.line.starts_with("POST /mail "), "{}", received.line);
            assert!(received.is_signed_with(SECRET));
            assert_eq!(header(received, "Data-Type"), "mail");
            let body: Value = serde_json::from_slice(&received.body).expect("JSON");
            assert_eq!(body["kind"], "password_reset");
            assert_eq!((&body["to"], &body["language"]), (&json!("sky@example.com"), &json!("ko")));
            // Nobody has proven the address, so the name that its person chose does not go there.
            assert_eq!((&body["name"], &body["messageId"]), (&json!(""), &json!(header(received, "Id"))));
            let link = body["link"].as_str().expect("a link");
            assert_eq!(body["accounts"], json!([{ "login": "haneul", "link": link }]));
            assert!(link.starts_with("https://x.example/reset-password?token="), "{link}");
        }
        assert_eq!(header(&first, "Id"), header(&second, "Id"));
        assert_eq!((first.find("Service-Event-Message-Retry"), header(&second, "Retry")), (None, "1".into()));
        node.stop().await;
    })
    .await;
}
