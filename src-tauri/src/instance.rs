//! One owner of a data folder: a second start brings the first one's window to the front.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bodyguard_supervisor::runtime_dir;
use tauri::AppHandle;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;

/// How long a second start waits for the owner's window, which may be starting itself.
const PATIENCE: Duration = Duration::from_secs(5);

fn socket(data_dir: &Path) -> PathBuf {
    runtime_dir(data_dir).join("show.sock")
}

/// Listens for later starts by this user. Being asked to show a window is all that can be asked.
///
/// # Errors
/// If the socket can't be made.
pub(crate) fn listen(data_dir: &Path) -> io::Result<UnixListener> {
    let path = socket(data_dir);
    // Whoever owns the data folder owns this name; what is left over is of an earlier run.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(path)
}

/// Shows the window for each later start.
pub(crate) async fn serve(listener: UnixListener, app: AppHandle) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let same_user = stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw());
        if same_user {
            let shown = app.clone();
            let _ = app.run_on_main_thread(move || crate::window::show(&shown));
            let _ = stream.write_all(b"shown").await;
        }
    }
}

/// Asks the owner to show its window. True if it said that it did.
pub(crate) fn show_other(data_dir: &Path) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if ask(&socket(data_dir)).unwrap_or(false) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

fn ask(path: &Path) -> io::Result<bool> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer)?;
    Ok(&answer == b"shown")
}
