//! Tests of streams and of connections that are taken over.

use super::*;

#[tokio::test(start_paused = true)]
async fn stream_ends_with_the_server_and_not_before() {
    let world = World::new();
    let (mut client, served) = world.connect();
    let head = format!(
        "GET /stream HTTP/1.1\r\nhost: localhost:8000\r\nauthorization: Bearer {CLIENT}\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    sleep(Duration::from_secs(3600)).await;
    world.stop.cancel();
    sleep(Duration::from_secs(1)).await;
    assert!(!served.is_finished(), "the last events of cancelled calls are still to come");
    world.ended.cancel();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("0\r\n\r\n"), "{answer}");
    served.await.unwrap();
}

/// Opens a connection of a client that another protocol takes over.
async fn taken_over(world: &World) -> (DuplexStream, JoinHandle<()>) {
    taken_over_by(world, &format!("authorization: Bearer {CLIENT}")).await
}

/// Opens a connection with this header that another protocol takes over.
async fn taken_over_by(world: &World, header: &str) -> (DuplexStream, JoinHandle<()>) {
    let (mut client, served) = world.connect();
    let head = format!(
        "GET /echo HTTP/1.1\r\nhost: localhost:8000\r\n{header}\r\n\
         connection: upgrade\r\nupgrade: echo\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(client.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    (client, served)
}

async fn echoes(client: &mut DuplexStream, text: &[u8]) {
    client.write_all(text).await.unwrap();
    let mut echoed = vec![0; text.len()];
    client.read_exact(&mut echoed).await.unwrap();
    assert_eq!(echoed, text);
}

#[tokio::test(start_paused = true)]
async fn taken_over_connection_lasts_until_its_client_leaves() {
    let world = World::new();
    let (mut client, served) = taken_over(&world).await;
    echoes(&mut client, b"hello").await;
    sleep(Duration::from_secs(3600)).await;
    assert!(!served.is_finished(), "it counts as a connection");
    echoes(&mut client, b"again").await;
    drop(client);
    served.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn taken_over_connection_ends_with_the_server() {
    let world = World::new();
    let (mut client, served) = taken_over(&world).await;
    world.stop.cancel();
    echoes(&mut client, b"last words").await;
    world.ended.cancel();
    served.await.unwrap();
    assert_eq!(client.read(&mut [0; 16]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn upgrade_needs_a_token_and_an_own_page() {
    let world = World::new();
    let login = world.login().await;
    let (cookie, key) = (login.cookie(), login.key());
    let upgrade = ("upgrade", "websocket");
    for (headers, status_code) in [
        (&[upgrade][..], 401),
        (&[upgrade, cookie, OWN], 401),
        (&[upgrade, cookie, key], 403),
        (&[upgrade, cookie, key, ("origin", "http://localhost:3000")], 403),
        (&[upgrade, cookie, key, ("sec-fetch-site", "same-site")], 403),
        (&[upgrade, cookie, key, OWN], 200),
    ] {
        assert_eq!(status(&world.ask("GET /calls", headers, "").await), status_code, "{headers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn page_of_unknown_source_opens_no_stream() {
    let world = World::new();
    let login = world.login().await;
    let both = [login.cookie(), login.key()];
    for accept in [&[][..], &[("accept", "*/*")], &[("accept", "text/html")]] {
        let headers = &[&both[..], accept].concat();
        let refused = world.ask("GET /stream", headers, "").await;
        assert!(status(&refused) == 403 && refused.contains("cross_site"), "{refused}");
        assert_eq!(status(&world.ask("GET /calls", headers, "").await), 200, "a plain read");
    }
}

#[tokio::test(start_paused = true)]
async fn logout_ends_the_streams_of_its_browser_only() {
    let world = World::new();
    let logins = [world.login().await, world.login().await];
    let mut streams = Vec::new();
    for login in &logins {
        let (mut client, served) = world.connect();
        let lines = login.own().map(|(name, value)| format!("{name}: {value}"));
        let header = lines.join("\r\n");
        let head = format!(
            "GET /stream HTTP/1.1\r\nhost: localhost:8000\r\n{header}\r\n\
             connection: close\r\n\r\n"
        );
        client.write_all(head.as_bytes()).await.unwrap();
        streams.push((client, served, taken_over_by(&world, &header).await));
    }
    let out = world.ask("POST /logout", &logins[0].own(), "").await;
    assert_eq!(status(&out), 204, "{out}");
    let (mut left, served, (mut socket, taken)) = streams.remove(0);
    let mut answer = String::new();
    left.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("0\r\n\r\n"), "{answer}");
    assert_eq!(socket.read_u8().await.ok(), None);
    served.await.unwrap();
    taken.await.unwrap();
    let (_stays, served, (mut socket, _taken)) = streams.remove(0);
    echoes(&mut socket, b"still here").await;
    assert!(!served.is_finished());
}
