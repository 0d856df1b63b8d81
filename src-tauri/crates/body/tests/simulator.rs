//! The simulator keeps the contract of the host.

mod common;

use bodyguard_body::{Body, BodyConfig, HostBody, SimulatedWorld, SimulatorBody, SimulatorConfig};
use bodyguard_protocol::{ErrorCode, Fault, TypedAction};
use common::{Lab, code, program, workspace};
use serde_json::{Value, json};

async fn simulated() -> Lab<SimulatorBody> {
    let (folder, root) = workspace();
    let root = root.to_str().unwrap().to_owned();
    Lab::around(SimulatorBody::new(SimulatorConfig::for_root(&root)), folder, &root).await
}

/// A host over the same files.
async fn hosted() -> Lab<HostBody> {
    let (folder, root) = workspace();
    let body = HostBody::spawn(program(), BodyConfig::for_root(root.to_str().unwrap())).unwrap();
    let lab = Lab::around(body, folder, root.to_str().unwrap()).await;
    for (name, bytes) in SimulatorConfig::for_root("/").files {
        lab.put(&name, bytes);
    }
    lab
}

/// What a body does for a list of actions: the evidence, or the code of the refusal.
async fn answers<B: Body>(lab: &Lab<B>) -> Vec<String> {
    let at = |name: &str| lab.path(name);
    let edit = |old: &str, new: &str| json!({"edits":[{"old":old,"new":new}]});
    let write = |mode: &str| json!({"content":"new\n","mode":mode});
    let actions: [Value; 27] = [
        json!({"type":"file_read","target":at("README.md")}),
        json!({"type":"file_read","target":"README.md","params":{"offset":2,"limit":3}}),
        json!({"type":"file_read","target":at("src")}),
        json!({"type":"file_read","target":at("absent")}),
        json!({"type":"file_read","target":"/etc/passwd"}),
        json!({"type":"file_read","target":at("../x")}),
        json!({"type":"file_edit","target":at("README.md"),"params":edit("Sample", "Example")}),
        json!({"type":"file_edit","target":at("README.md"),"params":edit("Sample", "again")}),
        json!({"type":"file_edit","target":at("src/main.rs"),"params":edit("}\r\n", "x")}),
        json!({"type":"file_read","target":at("README.md")}),
        json!({"type":"shell_exec","command":"echo 'a  b' c","cwd":lab.root()}),
        json!({"type":"shell_exec","command":"cat README.md","cwd":lab.root()}),
        json!({"type":"shell_exec","params":{"argv":["cat"],"stdin":"in"}}),
        json!({"type":"shell_exec","command":"pwd","cwd":at("src")}),
        json!({"type":"shell_exec","command":"ls","cwd":lab.root()}),
        json!({"type":"shell_exec","command":"false"}),
        json!({"type":"shell_exec","params":{"argv":["no-such-program"]}}),
        json!({"type":"shell_exec","command":"ls","cwd":"/etc"}),
        json!({"type":"file_write","target":at("src/new"),"params":write("create")}),
        json!({"type":"file_write","target":at("src/new"),"params":write("create")}),
        json!({"type":"file_write","target":at("src/new"),"params":write("append")}),
        json!({"type":"file_write","target":at("absent"),"params":write("overwrite")}),
        json!({"type":"file_write","target":at("no/folder"),"params":write("create")}),
        json!({"type":"file_delete","target":at("src")}),
        json!({"type":"file_delete","target":at("src"),"params":{"recursive":true}}),
        json!({"type":"file_delete","target":at("src")}),
        json!({"type":"file_read","target":at("src/new")}),
    ];
    let mut told = Vec::new();
    for action in actions {
        told.push(match lab.act(action).await {
            Ok(effect) => {
                let part = |name: &str| effect.observed.get(name).cloned().unwrap_or_default();
                let facts = [
                    "content",
                    "bytes",
                    "truncated",
                    "deleted",
                    "sha256",
                    "before_sha256",
                    "after_sha256",
                    "stdout",
                    "exit_code",
                    "stdin",
                ];
                let shown: Vec<String> = facts.iter().map(|name| part(name).to_string()).collect();
                let text = format!("{:?} {}", effect.status, shown.join(" "));
                text.replace(lab.root().to_str().unwrap(), "ROOT")
            }
            Err(fault) => format!("{:?} {:?}", fault.code, fault.field),
        });
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn r72_host_and_simulator_answer_alike() {
    let (simulated, hosted) = (simulated().await, hosted().await);
    assert_eq!(answers(&simulated).await, answers(&hosted).await);
    let listing = |seen: bodyguard_body::Perception, root: String| {
        let entries = seen.entries.into_iter();
        entries.map(|e| (e.path.replace(&root, ""), e.kind, e.content_hash)).collect::<Vec<_>>()
    };
    let query = json!({"mode":"filesystem","depth":2});
    assert_eq!(
        listing(simulated.perceive(query.clone()).await.unwrap(), simulated.path("")),
        listing(hosted.perceive(query).await.unwrap(), hosted.path(""))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_is_deterministic_and_has_nothing_to_run() {
    let (one, two) = (simulated().await, simulated().await);
    let state = |lab: &Lab<SimulatorBody>| lab.body.stable("").await_now();
    assert_eq!(state(&one).fields, state(&two).fields);
    let picture = json!({"type":"screen_capture","params":{"region":[10,10,50,40],"max_width":25}});
    let (a, b) = (one.act(picture.clone()).await.unwrap(), two.act(picture).await.unwrap());
    assert_eq!(a, b);
    assert_eq!((a.image.as_ref().unwrap().width, a.image.as_ref().unwrap().height), (25, 20));
    let fault = one.inspect(json!({"type":"shell_exec","command":"rm -rf x"})).await.unwrap_err();
    assert_eq!((fault.code, fault.hint.is_some()), (ErrorCode::ProgramNotFound, true));
    assert_eq!(
        code(one.inspect(json!({"type":"shell_exec","command":"echo a > b"})).await),
        ErrorCode::NotYetSupported
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_in_one_world_see_one_head_and_the_same_files() {
    let (folder, root) = workspace();
    let root = root.to_str().unwrap().to_owned();
    let config = SimulatorConfig::for_root(&root);
    let world = SimulatedWorld::new(&config);
    let other = SimulatorBody::in_world(config.clone(), world.clone());
    let lab = Lab::around(SimulatorBody::in_world(config.clone(), world), folder, &root).await;
    let head = || other.stable("").await_now().fields.git_head;
    assert_eq!(head(), config.git.head);
    let write = async |mode: &str, branch: &str| {
        let content = format!("ref: refs/heads/{branch}\n");
        let params = json!({"content": content, "mode": mode});
        lab.act(json!({"type":"file_write","target":lab.path(".git/HEAD"),"params":params})).await.unwrap();
    };
    write("create", "other").await;
    assert_eq!(head(), "unborn:other");
    write("overwrite", "main").await;
    assert_eq!(head(), config.git.head, "the configured branch has the configured commit");
    let alone = SimulatorBody::new(config);
    assert!(alone.inspect(&read_head(&root)).await_error(), "another world has other files");
    assert!(!other.inspect(&read_head(&root)).await_error());
}

fn read_head(root: &str) -> TypedAction {
    serde_json::from_value(json!({
        "type": "file_read", "target": format!("{root}/.git/HEAD"), "params": {}, "preconditions": []
    }))
    .unwrap()
}

/// Awaits a future that is ready at once.
trait AwaitNow<T> {
    fn await_now(self) -> T;
    fn await_error(self) -> bool;
}

impl<T> AwaitNow<T> for bodyguard_body::BodyFuture<'_, T> {
    fn await_now(self) -> T {
        ready(self).unwrap()
    }

    fn await_error(self) -> bool {
        ready(self).is_err()
    }
}

fn ready<T>(mut future: bodyguard_body::BodyFuture<'_, T>) -> Result<T, Fault> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("the simulator never waits"),
    }
}
