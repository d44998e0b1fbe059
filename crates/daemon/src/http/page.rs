//! The page in the browser: the files that `make page` builds from `web/`, embedded in the program.
//!
//! The files are the same for every daemon and reveal nothing about this daemon, so a browser gets them
//! without the token. The page finds the token in the fragment of its address, which browsers never send, and
//! sends it as a header with each request to the API. The page's policy lets the page load its own files and
//! talk to its own daemon, and do nothing else.

use std::hash::Hasher;
use std::sync::OnceLock;

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

/// A file of the page.
struct File {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

static FILES: [File; 4] = [
    File {
        path: "/",
        kind: "text/html; charset=utf-8",
        bytes: include_bytes!("../../../../web/dist/index.html"),
    },
    File {
        path: "/page.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../../../../web/dist/page.js"),
    },
    File {
        path: "/page.css",
        kind: "text/css; charset=utf-8",
        bytes: include_bytes!("../../../../web/dist/page.css"),
    },
    File {
        path: "/icon.svg",
        kind: "image/svg+xml",
        bytes: include_bytes!("../../../../web/dist/icon.svg"),
    },
];

/// The policy names no `unsafe-inline`, so markup in the name of a client cannot become script;
/// `trusted-types 'none'` refuses text that would be parsed as markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(header::HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (CROSS_ORIGIN_OPENER, "same-origin"),
    (CROSS_ORIGIN_RESOURCE, "same-origin"),
    // A browser must check for a newer file each time, so that an old page does not outlive its daemon.
    (header::CACHE_CONTROL, "no-cache"),
];

const CROSS_ORIGIN_OPENER: header::HeaderName =
    header::HeaderName::from_static("cross-origin-opener-policy");
const CROSS_ORIGIN_RESOURCE: header::HeaderName =
    header::HeaderName::from_static("cross-origin-resource-policy");

/// The paths of the page's files except `/`, which is the path of the first file. The API's document already
/// has `/`.
pub(super) fn other_paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().skip(1).map(|file| file.path)
}

/// Whether the page has a file with this path.
pub(super) fn has(path: &str) -> bool {
    FILES.iter().any(|file| file.path == path)
}

/// The page for a browser. The page uses this API.
#[utoipa::path(get, path = "/", operation_id = "get_index", tag = "daemon",
    responses(
        (status = 200, body = String, content_type = "text/html", description = "The page."),
    ))]
pub(super) async fn index(headers: HeaderMap) -> Response {
    answer("/", &headers)
}

/// Any file of the page but the first.
pub(super) async fn file(uri: Uri, headers: HeaderMap) -> Response {
    answer(uri.path(), &headers)
}

fn answer(path: &str, headers: &HeaderMap) -> Response {
    let Some(at) = FILES.iter().position(|file| file.path == path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let (file, tag) = (&FILES[at], &tags()[at]);
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|given| {
        let given = given.to_str().unwrap_or_default().split(',');
        given
            .map(|one| one.trim().trim_start_matches("W/"))
            .any(|one| tag == one)
    });
    let kind = [(header::CONTENT_TYPE, file.kind)];
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        (kind, file.bytes).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, tag.clone());
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The entity tag of each file: a hash of its bytes.
fn tags() -> &'static [HeaderValue] {
    static TAGS: OnceLock<Vec<HeaderValue>> = OnceLock::new();
    TAGS.get_or_init(|| FILES.iter().map(tag).collect())
}

fn tag(file: &File) -> HeaderValue {
    // `DefaultHasher::new` has fixed keys, so a file has the same tag in every process.
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(file.bytes);
    let tag = format!("\"{:016x}\"", hasher.finish());
    HeaderValue::from_str(&tag).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

#[cfg(test)]
mod tests {
    use super::{FILES, answer, has, tags};
    use axum::http::{HeaderMap, StatusCode, header};

    #[test]
    fn a_file_comes_with_its_type_its_policy_and_its_tag() {
        for (file, tag) in FILES.iter().zip(tags()) {
            assert!(has(file.path));
            let response = answer(file.path, &HeaderMap::new());
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()[header::CONTENT_TYPE], file.kind);
            assert_eq!(response.headers()[header::ETAG], tag);
            let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str();
            let policy = policy.unwrap();
            assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
            assert!(!policy.contains("unsafe") && !policy.contains("http"));
        }
        assert!(!has("/v1/status") && !has("/page.js/"));
        let nothing = answer("/page.jsx", &HeaderMap::new());
        assert_eq!(nothing.status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn a_browser_that_has_the_file_gets_no_copy() {
        let known = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, text.parse().unwrap());
            answer("/page.js", &headers).status()
        };
        let tag = tags()[1].to_str().unwrap();
        assert_eq!(known(tag), StatusCode::NOT_MODIFIED);
        assert_eq!(known(&format!("\"x\", W/{tag}")), StatusCode::NOT_MODIFIED);
        assert_eq!(known("\"x\""), StatusCode::OK);
    }

    #[test]
    fn the_page_loads_nothing_from_other_hosts() {
        for file in &FILES[..3] {
            let text = std::str::from_utf8(file.bytes).unwrap();
            for scheme in ["http://", "https://", "//cdn"] {
                let mut found = text.match_indices(scheme).map(|(at, _)| &text[at..]);
                // Names of XML's vocabularies, which browsers never load.
                let foreign = found.find(|from| !from.starts_with("http://www.w3.org/"));
                assert_eq!(
                    foreign.map(|from| &from[..40.min(from.len())]),
                    None,
                    "{}",
                    file.path
                );
            }
        }
    }
}
