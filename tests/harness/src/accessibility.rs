//! Acting through the accessibility bus (AT-SPI), as a screen reader or a script does: not a
//! person's input either.

use crate::desktop::Desktop;
use anyhow::{Context, Result, bail};
use zbus::blocking::{Connection, connection};
use zbus::zvariant::OwnedObjectPath;

const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";
const ACTION: &str = "org.a11y.atspi.Action";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// Trees are shallower; a loop in one isn't followed for ever.
const DEEPEST: usize = 60;

/// A node of the accessibility tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accessible {
    /// Bus name of its application.
    pub application: String,
    /// Object path in it.
    pub path: OwnedObjectPath,
    /// Its name, what a screen reader says.
    pub name: String,
    /// Its role: `push button`, `label` …
    pub role: String,
}

/// The accessibility bus of a desktop.
#[derive(Debug)]
pub struct Accessibility(Connection);

impl Accessibility {
    /// Connects.
    ///
    /// # Errors
    /// If the desktop has no accessibility bus.
    pub fn of(desktop: &Desktop) -> Result<Self> {
        let session = desktop.bus_address().context("the desktop has no bus")?;
        let session = connection::Builder::address(session)?.build()?;
        let reply =
            session.call_method(Some("org.a11y.Bus"), "/org/a11y/bus", Some("org.a11y.Bus"), "GetAddress", &())?;
        let address: String = reply.body().deserialize()?;
        Ok(Self(connection::Builder::address(address.as_str())?.build()?))
    }

    /// All nodes of all applications, each before its children.
    ///
    /// # Errors
    /// If the bus is gone. Applications that don't answer are left out.
    pub fn nodes(&self) -> Result<Vec<Accessible>> {
        let root = OwnedObjectPath::try_from("/org/a11y/atspi/accessible/root")?;
        let mut found = Vec::new();
        let mut waiting = self.children("org.a11y.atspi.Registry", &root)?;
        waiting.reverse();
        let mut waiting: Vec<_> = waiting.into_iter().map(|node| (node, 0)).collect();
        while let Some(((application, path), depth)) = waiting.pop() {
            if depth < DEEPEST {
                let mut children = self.children(&application, &path).unwrap_or_default();
                children.reverse();
                waiting.extend(children.into_iter().map(|node| (node, depth + 1)));
            }
            if let Ok(node) = self.node(application, path) {
                found.push(node);
            }
        }
        Ok(found)
    }

    /// The nodes of this name.
    ///
    /// # Errors
    /// As [`Accessibility::nodes`].
    pub fn find(&self, name: &str) -> Result<Vec<Accessible>> {
        let mut nodes = self.nodes()?;
        nodes.retain(|node| node.name == name);
        Ok(nodes)
    }

    /// Does the first action (of a button: press it) of the first node of this name that has
    /// one; true if the application says it did.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn press(&self, name: &str) -> Result<bool> {
        let nodes = self.find(name)?;
        for node in &nodes {
            let done = self.0.call_method(Some(node.application.as_str()), &node.path, Some(ACTION), "DoAction", &0i32);
            if let Ok(reply) = done {
                return Ok(reply.body().deserialize()?);
            }
        }
        bail!("nothing named {name:?} has an action; nodes of that name: {nodes:?}")
    }

    fn children(&self, application: &str, path: &OwnedObjectPath) -> Result<Vec<(String, OwnedObjectPath)>> {
        let reply = self.0.call_method(Some(application), path, Some(ACCESSIBLE), "GetChildren", &())?;
        Ok(reply.body().deserialize()?)
    }

    fn node(&self, application: String, path: OwnedObjectPath) -> Result<Accessible> {
        let target = application.as_str();
        let name = self.0.call_method(Some(target), &path, Some(PROPERTIES), "Get", &(ACCESSIBLE, "Name"))?;
        let name: zbus::zvariant::OwnedValue = name.body().deserialize()?;
        let role = self.0.call_method(Some(target), &path, Some(ACCESSIBLE), "GetRoleName", &())?;
        Ok(Accessible { name: name.try_into()?, role: role.body().deserialize()?, application, path })
    }
}
