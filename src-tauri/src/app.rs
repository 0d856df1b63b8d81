//! Starting the app, and ending it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bodyguard_supervisor::{Config, HumanHandle, StartError, Supervisor, Surroundings, SystemClock};
use tauri::webview::PageLoadEvent;
use tauri::{AppHandle, Manager, RunEvent, WindowEvent};

use crate::guards::{Guards, UnknownRequest};
use crate::health::CheckContext;
use crate::{bar, blobs, devices, doors, events, health, instance, notify, process, rpc, tray, window};

/// How long ending waits for sessions to end and the last checkpoint to be written.
const ENDING: Duration = Duration::from_secs(8);

/// How the app is started.
#[derive(Clone)]
pub struct AppOptions {
    /// The data folder.
    pub data_dir: PathBuf,
    /// What keeps everything but a person's hand from deciding.
    pub guards: Guards,
}

/// Why the app didn't start. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StartFailure {
    /// There is no X display to show anything on.
    #[error(
        "there is no display: {0}. Bodyguard needs a window to ask you in; start it in a desktop session, or set DISPLAY"
    )]
    NoDisplay(String),
    /// It runs already, and shows its window.
    #[error("Bodyguard already runs on this data folder (process {0}); its window was brought to the front")]
    Shown(u32),
    /// It runs already, and doesn't answer.
    #[error("Bodyguard already runs on this data folder (process {0}), but its window doesn't answer")]
    Silent(u32),
    /// The supervisor can't start.
    #[error(transparent)]
    Supervisor(StartError),
    /// Threads, sockets or the window can't be made.
    #[error("{0}")]
    Window(String),
}

/// The data folder of this user: `$XDG_DATA_HOME/bodyguard`.
pub fn default_data_dir() -> Option<PathBuf> {
    Some(directories::BaseDirs::new()?.data_dir().join("bodyguard"))
}

/// Runs the app until the person quits.
///
/// # Errors
/// See [`StartFailure`].
pub fn run(options: AppOptions) -> Result<(), StartFailure> {
    process::with_clean_environment(options.guards.kept_variables)
        .map_err(|e| StartFailure::Window(format!("can't start anew: {e}")))?;
    process::harden();
    x11rb::connect(None).map_err(|e| StartFailure::NoDisplay(e.to_string()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| StartFailure::Window(format!("can't start threads: {e}")))?;
    tauri::async_runtime::set(runtime.handle().clone());
    let supervisor = start_supervisor(&runtime, &options)?;
    let doors = runtime.block_on(doors::open(&supervisor)).map_err(StartFailure::Window)?;
    let ended = {
        // What the window starts may start tasks itself.
        let _entered = runtime.enter();
        window_loop(&supervisor, options.guards.unknown_request)
    };
    runtime.block_on(async {
        doors.shutdown().await;
        if tokio::time::timeout(ENDING, supervisor.shutdown()).await.is_err() {
            tracing::warn!("sessions didn't end in time; what was cut off shows at the next start");
        }
    });
    ended
}

fn start_supervisor(runtime: &tokio::runtime::Runtime, options: &AppOptions) -> Result<Supervisor, StartFailure> {
    let context = CheckContext::new(&options.data_dir);
    let config = Config {
        data_dir: options.data_dir.clone(),
        body_program: context.body_program.clone(),
        presence: Arc::clone(&options.guards.presence),
        clock: Arc::new(SystemClock),
        health: Arc::new(move || health::checks(&context)),
        surroundings: Surroundings::Person,
    };
    match runtime.block_on(Supervisor::start(config)) {
        Ok(supervisor) => Ok(supervisor),
        Err(StartError::Owned { pid }) if instance::show_other(&options.data_dir) => Err(StartFailure::Shown(pid)),
        Err(StartError::Owned { pid }) => Err(StartFailure::Silent(pid)),
        Err(other) => Err(StartFailure::Supervisor(other)),
    }
}

fn window_loop(supervisor: &Supervisor, unknown_request: UnknownRequest) -> Result<(), StartFailure> {
    let (human, data_dir) = (supervisor.human(), supervisor.data_dir().to_owned());
    let app = tauri::Builder::default()
        .register_asynchronous_uri_scheme_protocol(blobs::SCHEME, blobs::handle)
        .invoke_handler(tauri::generate_handler![rpc::rpc])
        .on_page_load(|webview, load| {
            // A page that starts anew shows nothing yet.
            if load.event() == PageLoadEvent::Started {
                hide_ask(webview.app_handle());
            }
        })
        .on_window_event(|window, event| {
            if let WindowEvent::CloseRequested { api, .. } = event {
                api.prevent_close();
                put_away(window.app_handle());
            }
        })
        .manage(human.clone())
        .manage(unknown_request)
        .setup(move |app| set_up(app.handle(), human, &data_dir).map_err(Into::into))
        .build(tauri::generate_context!())
        .map_err(|e| StartFailure::Window(format!("the window can't be made: {e}")))?;
    let code = app.run_return(|_, event| {
        if let RunEvent::ExitRequested { code: None, api, .. } = event {
            // Only Quit ends the app; agents may be at work.
            api.prevent_exit();
        }
    });
    if code == 0 { Ok(()) } else { Err(StartFailure::Window(format!("the window ended with {code}"))) }
}

fn set_up(app: &AppHandle, human: HumanHandle, data_dir: &Path) -> tauri::Result<()> {
    let main = window::create(app, data_dir)?;
    let gtk_window = main.gtk_window()?;
    bar::Bar::install(&gtk_window, &main.default_vbox()?, human.clone());
    window::watch_page(&main)?;
    devices::follow(human.clone());
    tray::create(app, &human, data_dir);
    let notifier = notify::Notifier::start(app, &human, &gtk_window);
    events::pump(app, &human, notifier);
    match instance::listen(data_dir) {
        Ok(listener) => drop(tauri::async_runtime::spawn(instance::serve(listener, app.clone()))),
        Err(error) => tracing::warn!(%error, "a second start can't bring this window to the front"),
    }
    tauri::async_runtime::spawn(end_by_signal(app.clone()));
    window::show(app);
    Ok(())
}

/// SIGINT and SIGTERM end the app as Quit does.
async fn end_by_signal(app: AppHandle) {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = signal(SignalKind::interrupt()).and_then(|i| Ok((i, signal(SignalKind::terminate())?)));
    let Ok((mut interrupt, mut terminate)) = signals else { return };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    app.exit(0);
}

/// The page shows no ask any more.
pub(crate) fn hide_ask(app: &AppHandle) {
    use bodyguard_protocol::ui::UiRequest;
    if let Some(human) = app.try_state::<HumanHandle>().map(|state| state.inner().clone()) {
        tauri::async_runtime::spawn(async move { human.request(UiRequest::AskHidden).await });
    }
}

/// Closing the window puts it away: into the tray where there is one, else minimised while agents
/// are at work. Without either, it ends the app.
fn put_away(app: &AppHandle) {
    let app = app.clone();
    let Some(human) = app.try_state::<HumanHandle>().map(|state| state.inner().clone()) else { return };
    tauri::async_runtime::spawn(async move {
        let tray = tray::is_shown(&app).await;
        let busy = events::is_busy(&human).await;
        let Some(window) = app.get_webview_window(window::MAIN) else { return };
        let put = match (tray, busy) {
            (true, _) => window.hide(),
            (false, true) => window.minimize(),
            (false, false) => {
                app.exit(0);
                Ok(())
            }
        };
        if let Err(error) = put {
            tracing::warn!(%error, "the window can't be put away");
        }
    });
}
