//! Who may come in: requests of programs on this machine, with a token, and of no web page of anybody else.
//!
//! A browser sends what a page asks it to, to any address that it knows. So every route looks at `Host`, which
//! tells a name that was made to lead here from our own, and at `Origin`, which names the page.

use axum::{body::Body, extract::Request, response::Response};
use http::{HeaderMap, Method, StatusCode, header};
use subtle::ConstantTimeEq as _;

/// Names of this machine that no name server can make lead elsewhere.
const LOOPBACK: &[&str] = &["localhost", "127.0.0.1", "[::1]"];

/// What requests are compared with.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Names besides those of loopback under which this endpoint is reached, without port.
    pub hosts: Vec<String>,
    /// Origins of pages that may ask, such as `http://localhost:5173`.
    pub origins: Vec<String>,
}

/// Why a request is refused before anything looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) StatusCode, pub(crate) &'static str);

impl Guard {
    /// Whether a request may be looked at.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Refused> {
        let headers = request.headers();
        let port = self.host(headers, request.uri().host())?;
        self.origin(headers, port.as_deref())?;
        if request.method() == Method::OPTIONS {
            return Err(Refused(StatusCode::FORBIDDEN, "no page may ask here"));
        }
        if request.method() == Method::POST && !is_json(headers) {
            return Err(Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is application/json"));
        }
        Ok(())
    }

    /// The port that the client named.
    fn host(&self, headers: &HeaderMap, target: Option<&str>) -> Result<Option<String>, Refused> {
        const FORBIDDEN: Refused = Refused(StatusCode::FORBIDDEN, "`Host` is not a name of this endpoint");
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(FORBIDDEN) };
        let host = host.to_str().map_err(|_| FORBIDDEN)?;
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (host, None),
        };
        if port.is_some_and(|port| port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(FORBIDDEN);
        }
        let known = |name: &str| {
            LOOPBACK.iter().any(|own| name.eq_ignore_ascii_case(own))
                || self.hosts.iter().any(|own| name.eq_ignore_ascii_case(own))
        };
        if !known(name) || target.is_some_and(|target| !known(target)) {
            return Err(FORBIDDEN);
        }
        Ok(port.map(str::to_owned))
    }

    fn origin(&self, headers: &HeaderMap, port: Option<&str>) -> Result<(), Refused> {
        const FORBIDDEN: Refused = Refused(StatusCode::FORBIDDEN, "pages of this origin may not ask here");
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let origin = origin.to_str().ok().filter(|_| origins.next().is_none()).ok_or(FORBIDDEN)?;
        // Our own pages: the very host and port that they were loaded from.
        let own = LOOPBACK.iter().any(|host| match port {
            Some(port) => origin.eq_ignore_ascii_case(&format!("http://{host}:{port}")),
            None => origin.eq_ignore_ascii_case(&format!("http://{host}")),
        });
        if own || self.origins.iter().any(|allowed| origin.eq_ignore_ascii_case(allowed)) {
            Ok(())
        } else {
            Err(FORBIDDEN)
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// The token of a request: from its one `Authorization` header, and from nowhere else.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok().filter(|_| values.next().is_none())?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether it is the token, compared in a time that says nothing about where they differ.
pub(crate) fn is_token(given: Option<&str>, token: &str) -> bool {
    !token.is_empty() && given.is_some_and(|given| bool::from(given.as_bytes().ct_eq(token.as_bytes())))
}

/// The one answer to whoever has no token, or a wrong one, or asks for what its token does not open.
pub(crate) fn unauthorized() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response.headers_mut().insert(header::WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(method: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = http::Request::builder().method(method).uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let guard = Guard { hosts: vec!["gate.example".into()], origins: vec!["http://localhost:5173".into()] };
        guard.check(&request).map_or_else(|refused| refused.0.as_u16(), |()| 200)
    }

    #[test]
    fn s46_only_our_own_names_and_pages_come_in() {
        let json = ("content-type", "application/json");
        for (host, expected) in [
            ("localhost:27190", 200),
            ("LOCALHOST", 200),
            ("127.0.0.1:1", 200),
            ("[::1]:27190", 200),
            ("[::1]", 200),
            ("gate.example:80", 200),
            ("evil.com", 403),
            ("evil.com:27190", 403),
            ("127.0.0.1.nip.io:27190", 403),
            ("localhost.evil.com", 403),
            ("localhost:27190@evil.com", 403),
            ("127.0.0.1:x", 403),
            ("127.1", 403),
            ("0.0.0.0", 403),
            ("", 403),
        ] {
            assert_eq!(checked("POST", &[("host", host), json]), expected, "{host}");
        }
        let host = ("host", "localhost:27190");
        assert_eq!(checked("POST", &[json]), 403);
        assert_eq!(checked("POST", &[host, ("host", "evil.com"), json]), 403);
        for (origin, expected) in [
            ("http://localhost:27190", 200),
            ("http://127.0.0.1:27190", 200),
            ("http://localhost:5173", 200),
            ("http://localhost:27191", 403),
            ("http://localhost", 403),
            ("https://localhost:27190", 403),
            ("null", 403),
            ("http://evil.com", 403),
            ("http://localhost:27190.evil.com", 403),
            ("", 403),
        ] {
            assert_eq!(checked("POST", &[host, json, ("origin", origin)]), expected, "{origin}");
        }
        for kind in ["text/plain", "", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"]
        {
            assert_eq!(checked("POST", &[host, ("content-type", kind)]), 415, "{kind}");
        }
        assert_eq!(checked("POST", &[host, ("content-type", "application/json; charset=utf-8")]), 200);
        assert_eq!(checked("OPTIONS", &[host]), 403);
    }

    #[test]
    fn s47_a_token_comes_in_one_header_and_fits_as_a_whole() {
        let headers = |values: &[&str]| {
            let values = values.iter().map(|value| (header::AUTHORIZATION, value.parse().unwrap()));
            values.fold(HeaderMap::new(), |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            })
        };
        for (values, expected) in [
            (&["Bearer secret"][..], true),
            (&["bearer secret"], true),
            (&[], false),
            (&["secret"], false),
            (&["Basic secret"], false),
            (&["Bearer secre"], false),
            (&["Bearer secret2"], false),
            (&["Bearer "], false),
            (&["Bearer secret", "Bearer secret"], false),
        ] {
            assert_eq!(is_token(bearer(&headers(values)), "secret"), expected, "{values:?}");
        }
        assert!(!is_token(Some(""), ""));
    }
}
