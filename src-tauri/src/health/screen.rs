//! Display, capture, input.

use bodyguard_protocol::ui::HealthCheck;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::xinput::{ConnectionExt as _, Device, DeviceType, XIDeviceInfo};
use x11rb::protocol::xproto::{ConnectionExt as _, ImageFormat};
use x11rb::protocol::{shm, xinput, xtest};
use x11rb::rust_connection::RustConnection;

use super::{failed, install, ok, warning};

const START_ON_X11: &str = "start it in a desktop session with X11 (or XWayland), or set DISPLAY";

fn connect() -> Result<(RustConnection, usize), String> {
    x11rb::connect(None).map_err(|error| error.to_string())
}

pub(super) fn display() -> HealthCheck {
    const NAME: &str = "display";
    match connect() {
        Err(error) => failed(NAME, error, START_ON_X11),
        Ok((x, screen)) => {
            let Some(root) = x.setup().roots.get(screen) else { return failed(NAME, "no screen", START_ON_X11) };
            let name = std::env::var("DISPLAY").unwrap_or_default();
            let size = format!("{name}, {}×{}", root.width_in_pixels, root.height_in_pixels);
            if std::env::var_os("WAYLAND_DISPLAY").is_some_and(|display| !display.is_empty()) {
                let advice = "log in to an X11 session to be told apart from programs reliably, and to have windows of others captured";
                return warning(NAME, format!("{size}, through XWayland"), advice);
            }
            ok(NAME, size)
        }
    }
}

pub(super) fn capture() -> HealthCheck {
    const NAME: &str = "capture";
    let Ok((x, screen)) = connect() else { return failed(NAME, "no display", START_ON_X11) };
    let Some(root) = x.setup().roots.get(screen) else { return failed(NAME, "no screen", START_ON_X11) };
    if ![16, 24, 32].contains(&root.root_depth) {
        let advice = "set the screen to 24 bits per pixel";
        return failed(NAME, format!("a screen of {} bits per pixel", root.root_depth), advice);
    }
    let pixel = x.get_image(ImageFormat::Z_PIXMAP, root.root, 0, 0, 1, 1, !0).ok().and_then(|c| c.reply().ok());
    if pixel.is_none() {
        return failed(NAME, "the display server lets nobody read the screen", "log in to an X11 session");
    }
    let shared = matches!(x.extension_information(shm::X11_EXTENSION_NAME), Ok(Some(_)));
    let how = if shared { "by shared memory" } else { "over the socket" };
    ok(NAME, format!("{} bits per pixel, {how}", root.root_depth))
}

pub(super) fn input() -> HealthCheck {
    const NAME: &str = "input";
    let Ok((x, _)) = connect() else { return failed(NAME, "no display", START_ON_X11) };
    if !matches!(x.extension_information(xinput::X11_EXTENSION_NAME), Ok(Some(_))) {
        let advice = "use an X server with XInput 2: without it nothing can be approved";
        return failed(NAME, "the X server doesn't name input devices", advice);
    }
    let devices = match devices(&x) {
        Ok(devices) => devices,
        Err(error) => return failed(NAME, error, "use an X server with XInput 2"),
    };
    let own: Vec<String> = devices.iter().filter(|device| is_real(device)).map(name).collect();
    if own.is_empty() {
        let advice = "attach a mouse or keyboard: without one nothing can be approved";
        return failed(NAME, "no input device", advice);
    }
    if !matches!(x.extension_information(xtest::X11_EXTENSION_NAME), Ok(Some(_))) {
        return warning(NAME, own.join(", "), "use an X server with XTEST, for input by agents");
    }
    ok(NAME, own.join(", "))
}

fn devices(x: &RustConnection) -> Result<Vec<XIDeviceInfo>, String> {
    let version = x.xinput_xi_query_version(2, 2).map_err(|e| e.to_string())?;
    version.reply().map_err(|e| e.to_string())?;
    let reply = x.xinput_xi_query_device(Device::ALL).map_err(|e| e.to_string())?;
    Ok(reply.reply().map_err(|e| e.to_string())?.infos)
}

/// An attached device that isn't the test extension's.
fn is_real(device: &XIDeviceInfo) -> bool {
    let slave = [DeviceType::SLAVE_POINTER, DeviceType::SLAVE_KEYBOARD, DeviceType::FLOATING_SLAVE];
    slave.contains(&device.type_) && !name(device).contains("XTEST")
}

fn name(device: &XIDeviceInfo) -> String {
    bodyguard_protocol::escape_line(&String::from_utf8_lossy(&device.name))
}

/// What workspaces with a desktop of each session's own need.
pub(super) fn private_desktops() -> HealthCheck {
    const NAME: &str = "own desktops";
    let is_there = |program: &str| {
        let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
        folders.iter().any(|folder| std::path::Path::new(folder).join(program).is_file())
    };
    match (["Xvfb", "Xtigervnc"].into_iter().find(|server| is_there(server)), is_there("openbox")) {
        (Some(server), true) => ok(NAME, format!("{server} with openbox")),
        (Some(server), false) => {
            warning(NAME, format!("{server} without a window manager: windows have no frames"), install("openbox"))
        }
        (None, _) => warning(NAME, "no X server for them is installed", install("xvfb openbox")),
    }
}
