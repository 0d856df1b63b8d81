//! What the bar is made of. No text here is markup.

use gtk::prelude::*;
use gtk::{Align, Orientation, pango};

/// Lines of the headline before it scrolls; none of it is cut away.
const HEADLINE_LINES: i32 = 3;

/// The bar's widgets.
pub(super) struct Widgets {
    pub(super) bar: gtk::Box,
    pub(super) headline: gtk::Label,
    pub(super) digest: gtk::Label,
    pub(super) phrase: gtk::Label,
    pub(super) status: gtk::Label,
    pub(super) refused: gtk::Label,
    pub(super) buttons: gtk::Box,
    pub(super) reason: gtk::Entry,
    pub(super) deny: gtk::Button,
    pub(super) approve: gtk::Button,
}

impl Widgets {
    pub(super) fn new() -> Self {
        let bar = gtk::Box::new(Orientation::Vertical, 6);
        bar.set_widget_name("decision-bar");
        let (headline, headline_box) = headline();
        let (digest, phrase) = (line("small"), line("phrase"));
        let (status, refused) = (line("small"), line("refused"));
        let facts = gtk::Box::new(Orientation::Horizontal, 16);
        facts.pack_start(&digest, false, false, 0);
        facts.pack_start(&phrase, false, false, 0);

        let (deny, approve) = (button("Deny", "deny"), button("Approve", "approve"));
        // A click that comes too early must not leave the focus there for a later Space.
        approve.set_focus_on_click(false);
        let buttons = gtk::Box::new(Orientation::Horizontal, 10);
        let reason = reason();
        buttons.pack_start(&reason, true, true, 0);
        buttons.pack_start(&deny, false, false, 0);
        buttons.pack_start(&approve, false, false, 0);

        bar.pack_start(&headline_box, false, false, 0);
        bar.pack_start(&facts, false, false, 0);
        bar.pack_start(&refused, false, false, 0);
        bar.pack_start(&status, false, false, 0);
        bar.pack_start(&buttons, false, false, 0);
        bar.show_all();
        bar.set_no_show_all(true);
        bar.hide();
        refused.hide();
        Self { bar, headline, digest, phrase, status, refused, buttons, reason, deny, approve }
    }

    /// Gives the buttons exactly their colours, whatever the theme or the person's own style says.
    pub(super) fn style(&self) {
        let provider = gtk::CssProvider::new();
        if let Err(error) = provider.load_from_data(include_bytes!("bar.css")) {
            tracing::error!(%error, "the decision bar has no style");
        }
        if let Some(screen) = gtk::gdk::Screen::default() {
            let above_all = gtk::STYLE_PROVIDER_PRIORITY_USER + 1;
            gtk::StyleContext::add_provider_for_screen(&screen, &provider, above_all);
        }
    }

    pub(super) fn set_armed(&self, armed: bool) {
        let style = self.approve.style_context();
        if armed {
            style.add_class("armed");
        } else {
            style.remove_class("armed");
        }
    }

    /// Shows a line, or hides it when there is nothing to say.
    pub(super) fn say(label: &gtk::Label, text: Option<&str>) {
        label.set_text(text.unwrap_or(""));
        label.set_visible(text.is_some());
    }
}

fn line(class: &str) -> gtk::Label {
    let label = gtk::Label::new(None);
    label.set_xalign(0.0);
    label.set_line_wrap(true);
    label.set_line_wrap_mode(pango::WrapMode::WordChar);
    label.set_halign(Align::Start);
    label.set_direction(gtk::TextDirection::Ltr);
    label.style_context().add_class(class);
    label
}

fn headline() -> (gtk::Label, gtk::ScrolledWindow) {
    let label = line("headline");
    let (_, height) = label.create_pango_layout(Some("Ag")).pixel_size();
    let scrolled = gtk::ScrolledWindow::new(gtk::Adjustment::NONE, gtk::Adjustment::NONE);
    scrolled.set_policy(gtk::PolicyType::Never, gtk::PolicyType::Automatic);
    scrolled.set_overlay_scrolling(false);
    scrolled.set_propagate_natural_height(true);
    scrolled.set_max_content_height((height + 3) * HEADLINE_LINES);
    scrolled.add(&label);
    (label, scrolled)
}

fn reason() -> gtk::Entry {
    let entry = gtk::Entry::new();
    entry.set_placeholder_text(Some("Reason, for the agent (when you deny)"));
    entry.set_max_length(500);
    entry.set_width_chars(8);
    entry
}

fn button(text: &str, class: &str) -> gtk::Button {
    let label = gtk::Label::new(Some(text));
    // The underlined letter works with Alt. The bar handles it itself, so that it sees the event.
    let underline = pango::AttrInt::new_underline(pango::Underline::Single);
    let mut underline: pango::Attribute = underline.upcast();
    underline.set_start_index(0);
    underline.set_end_index(1);
    let attributes = pango::AttrList::new();
    attributes.insert(underline);
    label.set_attributes(Some(&attributes));
    let button = gtk::Button::new();
    button.add(&label);
    button.set_valign(Align::Center);
    if let Some(accessible) = button.accessible() {
        accessible.set_name(text);
    }
    let style = button.style_context();
    style.add_class("decide");
    style.add_class(class);
    button
}
