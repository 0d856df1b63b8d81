//! The screen, on an X server of the test's own.

mod common;

use std::time::Duration;

use bodyguard_body::{Body as _, Effect, Image};
use bodyguard_protocol::ErrorCode;
use common::desktop::{Client, Desktop, lab_on};
use common::{code, lab};
use serde_json::{Value, json};
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, PropMode};
use x11rb::wrapper::ConnectionExt as _;

const MAGENTA: u32 = 0x00ff_00ff;
const GREEN: u32 = 0x0000_ff00;

fn capture(params: Value) -> Value {
    json!({"type":"screen_capture","target":"monitor:0","params":params})
}

fn pixels(image: &Image) -> Vec<[u8; 3]> {
    let decoder = png::Decoder::new(std::io::Cursor::new(&image.bytes));
    let mut reader = decoder.read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!((info.width, info.height), (image.width, image.height));
    bytes.as_chunks::<3>().0.to_vec()
}

fn count(effect: &Effect, color: [u8; 3]) -> usize {
    pixels(effect.image.as_ref().unwrap()).iter().filter(|&&pixel| pixel == color).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn cap_08_the_supervisors_windows_are_never_in_a_picture() {
    let desktop = Desktop::start("800x600", 24);
    let (ours, other) = (Client::connect(&desktop), Client::connect(&desktop));
    other.window("Other", Some(1), GREEN, [0, 0, 200, 100], true);
    let lab = lab_on(&desktop).await;
    // The control: a window like ours, of someone else, is in the picture.
    let theirs = other.window("Theirs", Some(1), MAGENTA, [300, 300, 100, 100], true);
    let seen = lab.act(capture(json!({}))).await.unwrap();
    assert_eq!((count(&seen, [255, 0, 255]), count(&seen, [0, 255, 0])), (10_000, 20_000));
    assert_eq!(seen.observed["masked_windows"], 0);
    other.connection.destroy_window(theirs).unwrap();
    other.connection.sync().unwrap();
    // Ours, one of them a menu without a process id, and one partly off the screen.
    ours.window("Decision", Some(std::process::id()), MAGENTA, [300, 300, 100, 100], true);
    ours.window("", None, MAGENTA, [420, 300, 50, 50], true);
    ours.window("", None, MAGENTA, [-20, 550, 60, 100], true);
    let seen = lab.act(capture(json!({}))).await.unwrap();
    assert_eq!((count(&seen, [255, 0, 255]), count(&seen, [0, 255, 0])), (0, 20_000));
    assert_eq!(seen.observed["masked_windows"], 3);
    assert_eq!(count(&seen, [128, 128, 128]), 10_000 + 2_500 + 40 * 50);
    let look = lab.perceive(json!({"mode":"screen"})).await.unwrap();
    assert!(pixels(look.image.as_ref().unwrap()).iter().all(|&pixel| pixel != [255, 0, 255]));
    assert!(look.windows.iter().all(|window| window.title != "Decision"), "{:?}", look.windows);
}

#[tokio::test(flavor = "multi_thread")]
async fn cap_08_notifications_are_masked_whoever_shows_them() {
    let desktop = Desktop::start("400x300", 24);
    let other = Client::connect(&desktop);
    let lab = lab_on(&desktop).await;
    let window = other.window("note", Some(1), MAGENTA, [10, 10, 50, 50], true);
    assert_eq!(count(&lab.act(capture(json!({}))).await.unwrap(), [255, 0, 255]), 2500);
    let (kind, note) = (other.atom("_NET_WM_WINDOW_TYPE"), other.atom("_NET_WM_WINDOW_TYPE_NOTIFICATION"));
    other.connection.change_property32(PropMode::REPLACE, window, kind, AtomEnum::ATOM, &[note]).unwrap();
    other.connection.sync().unwrap();
    assert_eq!(count(&lab.act(capture(json!({}))).await.unwrap(), [255, 0, 255]), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_managed_window_is_masked_with_its_frame_and_never_counts_as_focused() {
    let desktop = Desktop::start("800x600", 24).with_window_manager();
    let (ours, other) = (Client::connect(&desktop), Client::connect(&desktop));
    let lab = lab_on(&desktop).await;
    assert_eq!(lab.body.stable("").await.unwrap().fields.focused_window_title, "");
    other.window("Letter – draft", Some(1), GREEN, [50, 50, 300, 200], false);
    let before = lab.body.stable("").await.unwrap();
    assert_eq!(before.fields.focused_window_title, "Letter – draft");
    assert_eq!(before.focused_app, "Demo");
    ours.window("Decision", Some(std::process::id()), MAGENTA, [400, 200, 200, 200], false);
    let after = lab.body.stable("").await.unwrap();
    assert_eq!(after.fields.hash().unwrap(), before.fields.hash().unwrap());
    let seen = lab.act(capture(json!({}))).await.unwrap();
    assert_eq!(count(&seen, [255, 0, 255]), 0);
    // The frame has a title bar, so more than the window's own area is covered.
    assert!(count(&seen, [128, 128, 128]) > 200 * 200, "{}", count(&seen, [128, 128, 128]));
    other.window("Second", Some(1), GREEN, [10, 10, 100, 100], false);
    assert_eq!(lab.body.stable("").await.unwrap().fields.focused_window_title, "Second");
    let look = lab.perceive(json!({"mode":"screen"})).await.unwrap();
    let titles: Vec<_> = look.windows.iter().map(|window| (window.title.as_str(), window.focused)).collect();
    assert_eq!(titles, [("Second", true), ("Letter – draft", false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r29_a_panel_is_never_what_somebody_works_in() {
    let desktop = Desktop::start("800x600", 24).with_window_manager();
    let (ours, other) = (Client::connect(&desktop), Client::connect(&desktop));
    let panel = other.window("Panel", Some(1), GREEN, [0, 560, 300, 40], false);
    ours.window("Decision", Some(std::process::id()), MAGENTA, [400, 200, 200, 200], false);
    let lab = lab_on(&desktop).await;
    // The control: an ordinary window in its place is the one that is left.
    assert_eq!(lab.body.stable("").await.unwrap().fields.focused_window_title, "Panel");
    let (kind, dock) = (other.atom("_NET_WM_WINDOW_TYPE"), other.atom("_NET_WM_WINDOW_TYPE_DOCK"));
    other.connection.change_property32(PropMode::REPLACE, panel, kind, AtomEnum::ATOM, &[dock]).unwrap();
    other.connection.sync().unwrap();
    assert_eq!(lab.body.stable("").await.unwrap().fields.focused_window_title, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn cap_14_regions_scales_and_formats_are_what_was_asked_for() {
    let desktop = Desktop::start("800x600", 24);
    let other = Client::connect(&desktop);
    other.window("w", Some(1), GREEN, [100, 100, 40, 20], true);
    let lab = lab_on(&desktop).await;
    let part = lab.act(capture(json!({"region":[100,100,40,20]}))).await.unwrap();
    assert_eq!((count(&part, [0, 255, 0]), part.image.as_ref().unwrap().width), (800, 40));
    let small = lab.act(capture(json!({"max_width":200}))).await.unwrap();
    let image = small.image.as_ref().unwrap();
    assert_eq!((image.width, image.height, image.scale), (200, 150, 0.25));
    assert_eq!((count(&small, [0, 255, 0]), &small.observed["scale"]), (50, &json!(0.25)));
    let jpeg = lab.act(capture(json!({"format":"jpeg"}))).await.unwrap().image.unwrap();
    assert_eq!((jpeg.media_type.as_str(), &jpeg.bytes[..2]), ("image/jpeg", &[0xff, 0xd8][..]));
    for region in [[0, 0, 801, 1], [800, 0, 1, 1], [0, 0, 0, 1], [u32::MAX, 0, 2, 2]] {
        assert_eq!(code(lab.inspect(capture(json!({"region":region}))).await), ErrorCode::InvalidArgument);
    }
    let missing = json!({"type":"screen_capture","target":"monitor:7"});
    assert_eq!(code(lab.inspect(missing).await), ErrorCode::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_portable_path_masks_too() {
    // Without 32 bits a pixel there is no shared-memory path.
    let desktop = Desktop::start("400x300", 16);
    let (ours, other) = (Client::connect(&desktop), Client::connect(&desktop));
    other.window("Other", Some(1), 0x07e0, [0, 0, 100, 100], true);
    ours.window("Decision", Some(std::process::id()), 0xf81f, [200, 200, 50, 50], true);
    let lab = lab_on(&desktop).await;
    let seen = lab.act(capture(json!({}))).await.unwrap();
    let pixels = pixels(seen.image.as_ref().unwrap());
    let greenish = pixels.iter().filter(|[r, g, b]| *g > 200 && *r < 50 && *b < 50).count();
    let pink = pixels.iter().filter(|[r, g, b]| *r > 200 && *g < 50 && *b > 200).count();
    assert_eq!((greenish, pink), (10_000, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_display_there_is_a_typed_refusal_and_the_rest_works() {
    let lab = lab().await;
    assert_eq!(code(lab.inspect(capture(json!({}))).await), ErrorCode::NoDisplay);
    assert_eq!(code(lab.perceive(json!({"mode":"screen"})).await), ErrorCode::NoDisplay);
    assert_eq!(lab.body.stable("").await.unwrap().fields.focused_window_title, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn cap_03_many_captures_leave_no_descriptors_behind() {
    let desktop = Desktop::start("400x300", 24);
    let lab = lab_on(&desktop).await;
    let open = || std::fs::read_dir(format!("/proc/{}/fd", lab.body.pid())).unwrap().count();
    lab.act(capture(json!({}))).await.unwrap();
    // What the last answer travelled in closes a moment after it has arrived.
    std::thread::sleep(Duration::from_millis(200));
    let before = open();
    for round in 0..30_u32 {
        lab.act(capture(json!({"region":[0,0,100 + round,100]}))).await.unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(open(), before);
}
