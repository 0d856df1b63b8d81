//! Pictures for the page: `bgblob://localhost/<digest>`, by digest only.

use bodyguard_protocol::{Digest, ErrorCode};
use bodyguard_supervisor::HumanHandle;
use tauri::http::{Request, Response, StatusCode, header};
use tauri::{Manager, Runtime, UriSchemeContext, UriSchemeResponder};

use crate::window::MAIN;

/// The scheme's name.
pub(crate) const SCHEME: &str = "bgblob";

/// What may be shown; anything that could hold a script is not among it.
const PICTURES: &[&str] = &["image/png", "image/jpeg", "image/webp"];

/// Answers off the main thread. A custom scheme has no access list: the label is the check.
pub(crate) fn handle<R: Runtime>(
    context: UriSchemeContext<'_, R>,
    request: Request<Vec<u8>>,
    responder: UriSchemeResponder,
) {
    if context.webview_label() != MAIN {
        return responder.respond(refusal(StatusCode::FORBIDDEN));
    }
    let Some(digest) = digest(request.uri().path()) else {
        return responder.respond(refusal(StatusCode::BAD_REQUEST));
    };
    let Some(human) = context.app_handle().try_state::<HumanHandle>().map(|state| state.inner().clone()) else {
        return responder.respond(refusal(StatusCode::SERVICE_UNAVAILABLE));
    };
    tauri::async_runtime::spawn(async move {
        responder.respond(match human.blob(&digest).await {
            Ok((media_type, bytes)) if PICTURES.contains(&media_type.as_str()) => picture(&media_type, bytes),
            Ok(_) => refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE),
            Err(fault) if fault.code == ErrorCode::NotFound => refusal(StatusCode::NOT_FOUND),
            Err(fault) => {
                tracing::warn!(%digest, code = ?fault.code, "a picture can't be read");
                refusal(StatusCode::INTERNAL_SERVER_ERROR)
            }
        });
    });
}

/// `/sha256:<hex>`, also with an encoded colon, or `/<hex>`.
fn digest(path: &str) -> Option<Digest> {
    let name = path.strip_prefix('/')?;
    let hex = ["sha256:", "sha256%3A", "sha256%3a"].iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name);
    format!("sha256:{hex}").parse().ok()
}

fn picture(media_type: &str, bytes: Vec<u8>) -> Response<Vec<u8>> {
    Response::builder()
        .header(header::CONTENT_TYPE, media_type)
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        // A digest always names the same bytes.
        .header(header::CACHE_CONTROL, "private, max-age=3600, immutable")
        .body(bytes)
        .unwrap_or_else(|_| refusal(StatusCode::INTERNAL_SERVER_ERROR))
}

fn refusal(status: StatusCode) -> Response<Vec<u8>> {
    let mut response = Response::new(Vec::new());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_digest_names_a_picture() {
        let hex = "a".repeat(64);
        let expected = format!("sha256:{hex}");
        for path in [format!("/{hex}"), format!("/sha256:{hex}"), format!("/sha256%3A{hex}")] {
            assert_eq!(digest(&path).unwrap().as_str(), expected);
        }
        for path in ["", "/", "/../log.db", "/sha256:zz", "/sha256:../../x", "/etc/passwd"] {
            assert_eq!(digest(path), None, "{path}");
        }
    }
}
