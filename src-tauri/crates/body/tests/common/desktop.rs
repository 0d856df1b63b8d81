//! An X server of the test's own, and programs with windows on it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bodyguard_body::HostBody;
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, CreateWindowAux, EventMask, PropMode, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use super::{Lab, lab_with};

/// An X server, and a window manager on demand; ended when dropped.
pub(crate) struct Desktop {
    pub(crate) name: String,
    children: Vec<Child>,
}

impl Desktop {
    pub(crate) fn start(size: &str, depth: u8) -> Self {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", &format!("{size}x{depth}"), "-noreset", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        Self { name: format!(":{}", number.trim()), children: vec![server] }
    }

    pub(crate) fn with_window_manager(mut self) -> Self {
        let manager = Command::new("openbox").env("DISPLAY", &self.name).stderr(Stdio::null()).spawn().unwrap();
        self.children.push(manager);
        let client = Client::connect(&self);
        let check = client.atom("_NET_SUPPORTING_WM_CHECK");
        for _ in 0..200 {
            let reply = client.connection.get_property(false, client.root, check, AtomEnum::ANY, 0, 1).unwrap().reply();
            if reply.unwrap().type_ != 0 {
                return self;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no window manager");
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program with windows.
pub(crate) struct Client {
    pub(crate) connection: RustConnection,
    pub(crate) root: Window,
}

impl Client {
    pub(crate) fn connect(desktop: &Desktop) -> Self {
        let (connection, screen) = x11rb::connect(Some(&desktop.name)).unwrap();
        let root = connection.setup().roots[screen].root;
        Self { connection, root }
    }

    pub(crate) fn atom(&self, name: &str) -> u32 {
        self.connection.intern_atom(false, name.as_bytes()).unwrap().reply().unwrap().atom
    }

    pub(crate) fn window(&self, title: &str, pid: Option<u32>, color: u32, place: [i16; 4], unmanaged: bool) -> Window {
        let id = self.connection.generate_id().unwrap();
        let look = CreateWindowAux::new()
            .background_pixel(color)
            .event_mask(EventMask::STRUCTURE_NOTIFY)
            .override_redirect(u32::from(unmanaged));
        let [x, y, width, height] = place;
        let (width, height) = (width.try_into().unwrap(), height.try_into().unwrap());
        self.connection
            .create_window(0, id, self.root, x, y, width, height, 0, WindowClass::INPUT_OUTPUT, 0, &look)
            .unwrap();
        let name = self.atom("_NET_WM_NAME");
        let utf8 = self.atom("UTF8_STRING");
        self.connection.change_property8(PropMode::REPLACE, id, name, utf8, title.as_bytes()).unwrap();
        let class = b"demo\0Demo\0";
        self.connection.change_property8(PropMode::REPLACE, id, AtomEnum::WM_CLASS, AtomEnum::STRING, class).unwrap();
        if let Some(pid) = pid {
            let property = self.atom("_NET_WM_PID");
            self.connection.change_property32(PropMode::REPLACE, id, property, AtomEnum::CARDINAL, &[pid]).unwrap();
        }
        self.connection.map_window(id).unwrap();
        self.connection.sync().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        id
    }
}

/// A workspace whose body sees that desktop; windows of this process are hidden from it.
pub(crate) async fn lab_on(desktop: &Desktop) -> Lab<HostBody> {
    lab_with(|config| {
        config.display = Some(desktop.name.clone());
        config.hidden_pids = vec![std::process::id()];
    })
    .await
}
