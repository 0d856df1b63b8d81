//! Says which of our commands exist at all, so that each needs a grant in `capabilities/`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let manifest = tauri_build::AppManifest::new().commands(&["rpc"]);
    Ok(tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest)).map_err(|e| e.to_string())?)
}
