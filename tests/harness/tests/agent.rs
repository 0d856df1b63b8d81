//! The agents' own machinery, against servers that answer from a script.

use anyhow::Result;
use harness::agent::http::HttpAgent;
use harness::agent::stdio::StdioAgent;
use harness::{Agent, RpcError, Workspace};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);

fn bridge(script: &str) -> Result<(StdioAgent, tempfile::TempDir)> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let agent = StdioAgent::start(command, &folder.path().join("log"))?;
    Ok((agent, folder))
}

#[test]
fn stdio_takes_answers_by_id_and_collects_the_rest() -> Result<()> {
    let (mut agent, _folder) = bridge(
        r#"read a; read b
        echo '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}'
        echo '{"jsonrpc":"2.0","id":"s1","method":"ping"}'
        echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"a\":1}"}],"isError":true}}'
        echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no","data":{"x":1}}}'
        echo 'not json'
        echo '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}'
        read c; echo "$c" >&2; read d; echo 'goodbye' >&2"#,
    )?;
    let first = agent.begin("tools/list", json!({}))?;
    let second = agent.begin_call("some", json!({ "k": "v" }))?;
    let refused = agent.wait(first, SOON)?;
    let expected = RpcError { code: -32602, message: "no".into(), data: json!({ "x": 1 }) };
    assert_eq!(refused, Err(expected));
    let result = agent.wait_call(second, SOON)?;
    assert!(result.is_error);
    assert_eq!(result.at("/a"), json!(1));
    assert_eq!(agent.progress(second).len(), 1);
    assert_eq!(agent.server_requests().len(), 1);
    assert_eq!(agent.wait_error_without_id(SOON)?.code, -32700);
    assert!(agent.lines().contains(&b"not json".to_vec()));
    let unanswered = agent.wait(99, Duration::from_millis(50));
    assert!(unanswered.is_err());
    agent.close();
    assert!(agent.wait_exit(SOON)?.success());
    assert!(agent.stderr().contains(r#""result":{}"#), "the ping was answered");
    assert!(agent.wait(99, SOON).is_err_and(|e| e.to_string().contains("goodbye")));
    Ok(())
}

/// Serves one answer; gives back what was asked.
fn serve(answer: String) -> Result<(String, JoinHandle<String>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut asked = String::new();
        let mut buffer = [0; 4096];
        while !asked.ends_with('}') {
            let count = stream.read(&mut buffer).expect("a request");
            asked.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        stream.write_all(answer.as_bytes()).expect("a reader");
        asked
    });
    Ok((url, thread))
}

#[test]
fn http_reads_chunked_events() -> Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nMcp-Session-Id: s-1\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    // An empty event, a comment, an event cut in two, and one of two lines.
    let chunks =
        ["data:\n\n: hm\ndata: {\"met", "hod\":\"note\"}\r\n\r\ndata: {\"id\":1,\n", "data: \"result\":5}\n\n"];
    let chunks = chunks.map(|c| format!("{:x};extension\r\n{c}\r\n", c.len()));
    let (url, server) = serve(format!("{head}{}0\r\n\r\n", chunks.concat()))?;
    let mut agent = HttpAgent::new(&url, Some("secret\n"))?;
    assert_eq!(agent.request("ping", json!({}))?, json!(5));
    assert_eq!(agent.notifications(), [json!({ "method": "note" })]);
    assert_eq!(agent.session(), Some("s-1"));
    let asked = server.join().expect("no panic");
    assert!(asked.starts_with("POST /mcp HTTP/1.1\r\n"));
    assert!(asked.contains("\r\nAuthorization: Bearer secret\r\n"));
    Ok(())
}

#[test]
fn http_forges_headers_and_reads_plain_answers() -> Result<()> {
    let (url, server) = serve("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nno!\nand more".to_owned())?;
    let agent = HttpAgent::new(&url, None)?;
    let request =
        agent.http_request("POST").with_header("Host", "evil.example:1").with_header("Origin", "null").body("{}");
    let mut reply = agent.send(&request, SOON)?;
    assert_eq!((reply.status, reply.text()?.as_str()), (403, "no!\n"));
    let asked = server.join().expect("no panic");
    assert_eq!(asked.matches("Host: ").count(), 1);
    assert!(asked.contains("\r\nHost: evil.example:1\r\n"));
    assert!(!asked.contains("Authorization"));
    Ok(())
}

#[test]
fn http_gives_up_in_time() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let agent = HttpAgent::new(&format!("http://{}", listener.local_addr()?), None)?;
    assert!(agent.post("{}", Duration::from_millis(100)).is_err());
    Ok(())
}

#[test]
fn a_workspace_is_never_roots_and_goes_away() -> Result<()> {
    let workspace = Workspace::temp()?;
    let root = workspace.path().to_owned();
    let file = workspace.write("a/b/c.txt", "text")?;
    assert_eq!(workspace.read("a/b/c.txt")?, "text");
    for path in [&root, &workspace.join("a/b"), &file] {
        assert_ne!(path.metadata()?.uid(), 0, "{path:?}");
    }
    drop(workspace);
    assert!(!root.exists());
    Ok(())
}
