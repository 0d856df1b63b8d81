//! What a request has to be before its body is read: addressed to this very door, from no foreign
//! web page, by a known agent. This is what stops DNS rebinding.

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri};
use bodyguard_protocol::{ErrorCode, Fault};

const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Checks `Host` and `Origin`.
///
/// # Errors
/// `permission_denied`, without repeating what was sent.
pub(super) fn check_source(uri: &Uri, headers: &HeaderMap, port: u16) -> Result<(), Fault> {
    let denied = |what| Err(Fault::new(ErrorCode::PermissionDenied, what));
    match sole(headers, &HOST) {
        Ok(Some(host)) if is_ours(host, port) => {}
        Ok(_) | Err(()) => return denied("Host has to be a loopback name with this door's port"),
    }
    // A request line may carry an address of its own, which then counts as much as `Host`.
    if uri.authority().is_some_and(|authority| !is_ours(authority.as_str(), port)) {
        return denied("the address has to be a loopback name with this door's port");
    }
    match sole(headers, &ORIGIN) {
        Ok(None) => Ok(()),
        Ok(Some(origin)) if is_loopback_origin(origin) => Ok(()),
        Ok(Some(_)) | Err(()) => denied("Origin has to be absent or a loopback one"),
    }
}

/// The bearer token.
///
/// # Errors
/// `unknown_agent` where there is none, or more than one.
pub(super) fn token(headers: &HeaderMap) -> Result<&str, Fault> {
    let missing = || {
        Fault::new(ErrorCode::UnknownAgent, "a bearer token is missing")
            .hint("copy this agent's configuration from the Agents page")
    };
    let value = sole(headers, &AUTHORIZATION).map_err(|()| missing())?.ok_or_else(missing)?;
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => Ok(token.trim()),
        Some(_) | None => Err(missing()),
    }
}

/// A header's only value.
fn sole<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(drop),
        (Some(_), Some(_)) => Err(()),
    }
}

fn is_ours(host: &str, port: u16) -> bool {
    let Some((name, number)) = host.rsplit_once(':') else { return false };
    // Compared as text: `+80`, `080` and a trailing dot are other spellings, and foreign.
    number == port.to_string() && LOOPBACK.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

fn is_loopback_origin(origin: &str) -> bool {
    let Some(rest) = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) else { return false };
    let Ok(authority) = rest.parse::<Authority>() else { return false };
    // The whole has to be host and port: no user, no path.
    let spelled = match authority.port_u16() {
        Some(port) => format!("{}:{port}", authority.host()),
        None => authority.host().to_owned(),
    };
    spelled == rest && LOOPBACK.iter().any(|ours| ours.eq_ignore_ascii_case(authority.host()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        check_source(&Uri::from_static("/mcp"), &headers, 4100).is_ok()
    }

    #[test]
    fn mcp_06_only_loopback_names_with_this_port_pass() {
        for host in ["127.0.0.1:4100", "localhost:4100", "LocalHost:4100", "[::1]:4100"] {
            assert!(allowed(host, None), "{host}");
        }
        for host in [
            "evil.example:4100",
            "0.0.0.0:4100",
            "localhost.:4100",
            "127.0.0.1.:4100",
            "127.0.0.1",
            "localhost:4101",
            "localhost:04100",
            "127.0.0.1:4100@evil.example:4100",
            "user@localhost:4100",
            "127.1:4100",
            "::1:4100",
            "",
            "localhost.evil.example:4100",
            "127.0.0.1:4100:4100",
            "[::ffff:127.0.0.1]:4100",
            "localhost :4100",
        ] {
            assert!(!allowed(host, None), "{host}");
        }
    }

    #[test]
    fn mcp_06_only_loopback_origins_pass() {
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:4100"] {
            assert!(allowed("localhost:4100", Some(origin)), "{origin}");
        }
        for origin in [
            "null",
            "https://evil.example",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "",
            "http://localhost/",
            "file://localhost",
            "http://localhost.",
            "http://evil.example#http://localhost",
        ] {
            assert!(!allowed("localhost:4100", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn mcp_06_two_hosts_or_a_foreign_request_line_are_refused() {
        let mut headers = HeaderMap::new();
        headers.append(HOST, "localhost:4100".parse().unwrap());
        assert!(check_source(&"http://evil.example:4100/mcp".parse().unwrap(), &headers, 4100).is_err());
        assert!(check_source(&"http://localhost:4100/mcp".parse().unwrap(), &headers, 4100).is_ok());
        headers.append(HOST, "localhost:4100".parse().unwrap());
        assert!(check_source(&Uri::from_static("/mcp"), &headers, 4100).is_err());
    }

    #[test]
    fn a_token_is_one_bearer_token() {
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            token(&headers).map(str::to_owned).ok()
        };
        assert_eq!(with("Bearer t"), Some("t".into()));
        assert_eq!(with("bearer t"), Some("t".into()));
        for bad in ["Bearer ", "Bearer", "Basic t", "t"] {
            assert_eq!(with(bad), None, "{bad}");
        }
        assert!(token(&HeaderMap::new()).is_err());
    }
}
