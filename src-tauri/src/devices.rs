//! Which input devices there are, told to the supervisor at the start and whenever that changes.

use bodyguard_supervisor::{DeviceSeen, HumanHandle};
use gtk::gdk::{self, DeviceType, InputSource, SeatCapabilities};
use gtk::prelude::*;

/// Follows the default seat.
pub(crate) fn follow(human: HumanHandle) {
    let Some(seat) = gdk::Display::default().and_then(|display| display.default_seat()) else {
        tracing::warn!("this display has no seat, so no input device counts as yours");
        return;
    };
    tell(&human, seen(&seat));
    let h = human.clone();
    seat.connect_device_added(move |seat, _| tell(&h, seen(seat)));
    seat.connect_device_removed(move |seat, _| tell(&human, seen(seat)));
}

fn tell(human: &HumanHandle, devices: Vec<DeviceSeen>) {
    let human = human.clone();
    tauri::async_runtime::spawn(async move {
        if let Err(fault) = human.devices_seen(devices).await {
            tracing::warn!(code = ?fault.code, "input devices can't be recorded: {fault}");
        }
    });
}

/// The real devices; masters stand for any of them and so for none.
fn seen(seat: &gdk::Seat) -> Vec<DeviceSeen> {
    let mut devices: Vec<DeviceSeen> = Vec::new();
    for device in seat.slaves(SeatCapabilities::ALL) {
        let Some(name) = device.name().filter(|_| device.device_type() != DeviceType::Master) else { continue };
        let kind = if device.source() == InputSource::Keyboard { "keyboard" } else { "pointer" };
        let seen = DeviceSeen { name: name.into(), kind: kind.to_owned() };
        if !devices.contains(&seen) {
            devices.push(seen);
        }
    }
    devices
}
