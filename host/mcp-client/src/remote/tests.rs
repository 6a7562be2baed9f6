//! A server that answers requests in the responses of others.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use crate::handler::Handler;
use crate::inbox::Fault;
use rmcp::model::{ClientRequest, PingRequest};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

fn ping(id: i64) -> Sent {
    let ping = ClientRequest::PingRequest(PingRequest::default());
    JsonRpcMessage::request(ping, RequestId::Number(id))
}

/// Accepts a request, and begins a stream of events as its response.
async fn begin_stream(listener: &TcpListener) -> TcpStream {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut request = [0; 4_096];
    let mut text = Vec::new();
    while !text.ends_with(b"}") {
        let read = socket.read(&mut request).await.unwrap();
        text.extend_from_slice(&request[..read]);
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

async fn write_response(socket: &mut TcpStream, id: i64) {
    let event = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n\n");
    socket.write_all(event.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn request_that_is_answered_elsewhere_holds_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = ServerUrl::new(&url, HeaderMap::new(), Default::default()).unwrap();
    let inbox = Inbox::new(Handler::default(), Fault::default());
    let mut remote = Remote::new(server, inbox);
    remote.send(ping(1)).await.unwrap();
    let mut first = begin_stream(&listener).await;
    remote.send(ping(2)).await.unwrap();
    let mut second = begin_stream(&listener).await;
    write_response(&mut second, 1).await;
    let Some(JsonRpcMessage::Response(answered)) = remote.receive().await else { panic!() };
    assert_eq!(answered.id, RequestId::Number(1));
    let closed = timeout(Duration::from_secs(10), first.read(&mut [0])).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "the connection of request 1 stays: {closed:?}");
    write_response(&mut second, 2).await;
    let Some(JsonRpcMessage::Response(answered)) = remote.receive().await else { panic!() };
    assert_eq!(answered.id, RequestId::Number(2), "the other one goes on");
}
