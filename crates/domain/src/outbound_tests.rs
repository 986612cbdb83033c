use super::*;

const LOOPBACK: Reach = Reach { loopback: true, private: false };
const PRIVATE: Reach = Reach { loopback: false, private: true };
const BOTH: Reach = Reach { loopback: true, private: true };

fn fault(text: &str, reach: Reach) -> Option<AddressFault> {
    WebhookUrl::read(text, reach).err()
}

#[test]
fn every_network_has_its_zone_from_its_first_address_to_its_last() {
    let check = |addresses: &[&str], zone| {
        for address in addresses {
            assert_eq!(Zone::of(address.parse().expect(address)), zone, "{address}");
        }
    };
    check(&["127.0.0.0", "127.0.0.1", "127.255.255.255", "::1"], Zone::Loopback);
    check(&["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255"], Zone::Private);
    check(&["192.168.0.0", "192.168.255.255"], Zone::Private);
    check(&["fc00::", "fd00::1", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"], Zone::Private);
    // The addresses just before and after each reserved network are public.
    check(&["1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"], Zone::Public);
    check(&["126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17"], Zone::Public);
    check(&["169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"], Zone::Public);
    check(&["191.255.255.255", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0"], Zone::Public);
    check(&["198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0"], Zone::Public);
    check(&["203.0.112.255", "203.0.114.0", "223.255.255.255", "8.8.8.8"], Zone::Public);
    check(&["2000::", "2001:200::", "2001:db7::", "2001:db9::", "2003::", "2606:4700::1111"], Zone::Public);
    check(&["3ffe::", "3fff:1000::", "3fff:ffff:ffff:ffff::"], Zone::Public);
    // This network, carriers' networks, metadata services, link-local, protocol assignments, documentation.
    check(&["0.0.0.0", "0.255.255.255", "100.64.0.0", "100.127.255.255", "100.100.100.200"], Zone::Never);
    check(&["168.63.129.16", "169.254.0.0", "169.254.169.254", "169.254.255.255"], Zone::Never);
    check(&["192.0.0.0", "192.0.0.192", "192.0.0.255", "192.0.2.0", "192.0.2.255"], Zone::Never);
    check(&["192.31.196.1", "192.52.193.1", "192.88.99.1", "192.175.48.1"], Zone::Never);
    check(&["198.18.0.0", "198.19.255.255", "198.51.100.7", "203.0.113.7"], Zone::Never);
    check(&["224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.255"], Zone::Never);
    // IPv6 addresses that contain an IPv4 address: mapped, compatible, NAT64, 6to4, Teredo, ISATAP.
    check(&["::", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "::127.0.0.1"], Zone::Never);
    check(&["64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::a00:1", "64:ff9b:1:ffff::"], Zone::Never);
    check(&["2002::", "2002:7f00:1::", "2002:ffff:ffff::1", "2001::1", "2001:0:ffff::"], Zone::Never);
    check(&["2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:a00:1", "fd00::5efe:a00:1"], Zone::Never);
    // Metadata services inside the private networks, and the other reserved networks.
    check(&["fd00:ec2::254", "fd20:ce::254"], Zone::Never);
    check(&["2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff:ffff::", "2001:db8::1"], Zone::Never);
    check(
        &["2620:4f:8000::1", "3fff::1", "3fff:fff:ffff::", "100::1", "100:0:0:1::1", "5f00::1"],
        Zone::Never,
    );
    check(
        &["fe80::1", "febf::1", "fec0::1", "feff::1", "ff00::", "ff02::1", "1fff::", "4000::"],
        Zone::Never,
    );
}

#[test]
fn an_ipv4_address_has_one_spelling() {
    let check = |host: &str, expected: Option<AddressFault>| {
        let text = format!("https://{host}/hook");
        assert_eq!(fault(&text, Reach::PUBLIC), expected, "{text}");
        if expected == Some(AddressFault::Host) {
            assert_eq!(fault(&text, BOTH), expected, "{text}, whatever is allowed");
        }
    };
    let host = Some(AddressFault::Host);
    let zone = Some(AddressFault::Zone);
    check("8.8.8.8", None);
    check("[2606:4700::1111]", None);
    check("127.0.0.1", zone);
    check("10.0.0.1", zone);
    check("169.254.169.254", zone);
    check("0.0.0.0", zone);
    check("255.255.255.255", zone);
    check("[::1]", zone);
    check("[::]", zone);
    check("[fd00:ec2::254]", zone);
    check("[::ffff:127.0.0.1]", zone);
    check("[::ffff:7f00:1]", zone);
    check("[::127.0.0.1]", zone);
    check("[64:ff9b::10.0.0.1]", zone);
    check("[2002:7f00:1::]", zone);
    check("[2001:0:7f00:1::]", zone);
    check("[2606:4700::5efe:10.0.0.1]", zone);
    // One number, octal, hexadecimal, fewer than four numbers, too many dots.
    for text in ["2130706433", "017700000001", "0x7f000001", "0X7F000001", "0x", "0"] {
        check(text, host);
    }
    for text in ["0177.0.0.1", "0x7f.0.0.1", "0x7f.1", "127.1", "127.0.1", "127.0.0.01", "127.0.0.0x1"] {
        check(text, host);
    }
    for text in ["127.0.0.1.", "127.0.0.1..", "127..0.1", ".127.0.0.1", "8.8.8.8.", "1.2.3.4.5", "256.1.1.1"]
    {
        check(text, host);
    }
    for text in ["a.1", "a.0x1", "a.08", "1.2.3.4294967297", "[127.0.0.1]", "[::1", "::1", "[::1]x", "[]"] {
        check(text, host);
    }
    for text in ["[fe80::1%25eth0]", "[fe80::1%eth0]", "[v1.fe80::a]", "[ ::1]"] {
        check(text, host);
    }
    // Characters that a resolver or a library would map to ASCII.
    for text in
        ["%31%32%37.0.0.1", "127%2e0.0.1", "１２７.０.０.１", "127。0。0。1", "①②⑦.0.0.1", "ⓛocalhost"]
    {
        check(text, host);
    }
    for text in ["한글.example", "ｅxample.com", "examp\u{ad}le.com", "a_b.example", "a b.example", "", "."]
    {
        check(text, host);
    }
    for text in ["hook.example.", "hook..example", "-a.example", "a-.example", "*.example", "a.example\\b"] {
        check(text, host);
    }
    check(&format!("{}.example", "a".repeat(63)), None);
    check(&format!("{}.example", "a".repeat(64)), host);
    check(&format!("{}com", "abcdefghi.".repeat(25)), None);
    check(&format!("{}comm", "abcdefghi.".repeat(25)), host);
    check("xn--bj0bj06e.example", None);
    check("127.0.0.1.example", None);
    check("0x7f.example", None);
    check("HOOK.Example", None);
}

#[test]
fn private_names_are_refused_before_a_lookup() {
    let check = |host: &str, zone| {
        assert_eq!(Host::parse(host).map(|host| host.zone()), Some(zone), "{host}");
        let allowed = |reach| fault(&format!("https://{host}/"), reach).is_none();
        assert_eq!(allowed(Reach::PUBLIC), zone == Zone::Public, "{host}");
        assert_eq!(allowed(LOOPBACK), matches!(zone, Zone::Public | Zone::Loopback), "{host}");
        assert_eq!(allowed(PRIVATE), matches!(zone, Zone::Public | Zone::Private), "{host}");
    };
    check("localhost", Zone::Loopback);
    check("LOCALHOST", Zone::Loopback);
    check("a.localhost", Zone::Loopback);
    check("localhost.localdomain", Zone::Loopback);
    check("receiver", Zone::Private);
    check("printer.local", Zone::Private);
    check("kubernetes.default.svc.cluster.local", Zone::Private);
    check("metadata.google.internal", Zone::Private);
    check("nas.home.arpa", Zone::Private);
    check("router.lan", Zone::Private);
    check("notlocalhost.example", Zone::Public);
    check("localhost.example", Zone::Public);
    check("mylocal", Zone::Private);
    check("my-local.example", Zone::Public);
    check("notlocal.com", Zone::Public);
}

#[test]
fn webhook_addresses_that_may_be_registered() {
    let check = |text: &str, reach, expected| assert_eq!(fault(text, reach), expected, "{text} {reach:?}");
    check("https://hook.example", Reach::PUBLIC, None);
    check("https://hook.example?key=1", Reach::PUBLIC, None);
    check("https://hook.example:8443/a/b;c=1?d=%ea%b0%80&e=@:/?", Reach::PUBLIC, None);
    check("HTTPS://hook.example/", Reach::PUBLIC, None);
    check("https://hook.example:1/", Reach::PUBLIC, None);
    check("https://hook.example:65535/", Reach::PUBLIC, None);
    for port in ["0", "65536", "", "+80", "-1", "80a", "00000"] {
        check(&format!("https://hook.example:{port}/"), Reach::PUBLIC, Some(AddressFault::Port));
    }
    for text in
        ["", "hook.example", "//hook.example/", "ftp://hook.example/", "https:/hook.example", " https://a.b/"]
    {
        check(text, BOTH, Some(AddressFault::Scheme));
    }
    for text in ["https://user@hook.example/", "https://user:word@hook.example/", "https://@hook.example/"] {
        check(text, BOTH, Some(AddressFault::UserInformation));
    }
    check("https://127.0.0.1@hook.example/", BOTH, Some(AddressFault::UserInformation));
    check("https://hook.example\\@127.0.0.1/", BOTH, Some(AddressFault::UserInformation));
    check("https://hook.example/a#b", BOTH, Some(AddressFault::Fragment));
    check("https://hook.example#@127.0.0.1/", BOTH, Some(AddressFault::Fragment));
    for path in
        ["/a b", "/\\a", "/\"", "/<a>", "/%", "/%4", "/%zz", "/가", "/a\r\nX: y", "/a\0", "/^", "/{a}"]
    {
        check(&format!("https://hook.example{path}"), BOTH, Some(AddressFault::Characters));
    }
    // Plain HTTP is allowed only inside the operator's own networks.
    check("http://hook.example/", BOTH, Some(AddressFault::Scheme));
    check("http://8.8.8.8/", BOTH, Some(AddressFault::Scheme));
    check("http://127.0.0.1:8080/hook", LOOPBACK, None);
    check("http://[::1]:8080/hook", LOOPBACK, None);
    check("http://localhost:8080/hook", LOOPBACK, None);
    check("http://127.0.0.1:8080/hook", PRIVATE, Some(AddressFault::Zone));
    check("http://10.1.2.3/hook", PRIVATE, None);
    check("http://10.1.2.3/hook", LOOPBACK, Some(AddressFault::Zone));
    check("http://receiver:8080/hook", PRIVATE, None);
    check("http://169.254.169.254/latest/meta-data", BOTH, Some(AddressFault::Zone));
    check("http://[fd00:ec2::254]/latest/meta-data", BOTH, Some(AddressFault::Zone));

    let long = format!("https://hook.example/{}", "a".repeat(URL_BYTES_MAX));
    assert!(WebhookUrl::parse(&long[..URL_BYTES_MAX], Reach::PUBLIC).is_ok());
    let refused = WebhookUrl::parse(&long[..=URL_BYTES_MAX], Reach::PUBLIC);
    assert_eq!(refused, Err(Invalid::new("url", Rule::Bytes { max: URL_BYTES_MAX })));
}

#[test]
fn an_address_is_judged_again_before_a_connection() {
    let check = |url: &str, reach, address: &str, may| {
        let url = WebhookUrl::parse(url, reach).expect("may be registered");
        assert_eq!(url.may_connect(address.parse().expect(address), reach), may, "{url:?} {address}");
    };
    check("https://hook.example/", Reach::PUBLIC, "8.8.8.8", true);
    check("https://hook.example/", Reach::PUBLIC, "127.0.0.1", false);
    check("https://hook.example/", Reach::PUBLIC, "10.0.0.1", false);
    check("https://hook.example/", Reach::PUBLIC, "::ffff:8.8.8.8", false);
    check("https://hook.example/", LOOPBACK, "127.0.0.1", true);
    check("https://hook.example/", LOOPBACK, "10.0.0.1", false);
    check("https://hook.example/", BOTH, "169.254.169.254", false);
    check("http://localhost/", BOTH, "127.0.0.1", true);
    check("http://localhost/", BOTH, "8.8.8.8", false);
}

#[test]
fn a_request_is_made_of_its_parts_and_only_the_origin_is_shown() {
    let check = |text: &str, authority: &str, path: &str, shown: &str| {
        let url = WebhookUrl::parse(text, BOTH).expect(text);
        assert_eq!((url.authority().as_str(), url.path_and_query().as_str()), (authority, path));
        assert_eq!(url.as_str(), text);
        assert_eq!(format!("{url:?}"), format!("WebhookUrl({shown})"));
    };
    check("https://Hook.Example/a?key=s", "hook.example", "/a?key=s", "https://hook.example");
    check("https://hook.example:443", "hook.example", "/", "https://hook.example");
    check("https://hook.example:80?k", "hook.example:80", "/?k", "https://hook.example:80");
    check("http://127.0.0.1:80/a", "127.0.0.1", "/a", "http://127.0.0.1");
    check("https://[2606:4700:0::1]:8/a", "[2606:4700::1]:8", "/a", "https://[2606:4700::1]:8");
}

#[test]
fn an_accepted_url_connects_to_its_host() {
    fuzz::Fuzz::new("webhook_url")
        .seeds(["https://hook.example:8443/a?b=%20", "http://127.0.0.1/", "https://[::ffff:7f00:1]:1/x"])
        .tokens(["://", "@", "#", "0x7f", "localhost", ".", "%2e", "[", "]", "。", "\\"])
        .run(|input| {
            let Ok(text) = std::str::from_utf8(input) else { return "not text" };
            let Ok(url) = WebhookUrl::read(text, BOTH) else { return "refused" };
            assert!(text.is_ascii() && url.port() > 0 && url.path_and_query().starts_with('/'));
            assert_ne!(url.host().zone(), Zone::Never);
            let again = format!("{}{}", url.origin(), url.path_and_query());
            let again = WebhookUrl::read(&again, BOTH).expect("what is sent can be read again");
            assert_eq!(
                (again.host(), again.port(), again.is_secure()),
                (url.host(), url.port(), url.is_secure())
            );
            match url.host() {
                Host::Name(_) => "name",
                Host::Address(IpAddr::V4(_)) => "v4",
                Host::Address(IpAddr::V6(_)) => "v6",
            }
        });
}
