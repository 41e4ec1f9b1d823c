//! A line to a server that can be cut at a chosen word.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What the server says when the line is to be cut; it hears no more, and the client doesn't hear it.
type Word = Arc<Mutex<Option<&'static [u8]>>>;

/// The line.
pub(crate) struct Proxy {
    port: u16,
    word: Word,
}

impl Proxy {
    pub(crate) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let word = Word::default();
        let cut = word.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server, cut.clone()));
            }
        });
        Self { port, word }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The line is cut, once, where the server says this.
    pub(crate) fn cut_at(&self, word: &'static [u8]) {
        *self.word.lock() = Some(word);
    }

    /// Whether it was.
    pub(crate) fn was_cut(&self) -> bool {
        self.word.lock().is_none()
    }
}

async fn carry(client: TcpStream, server: u16, word: Word) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let there = tokio::spawn(async move {
        // Either end may go at any time.
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
    });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
        let said = &buffer[..length];
        let cut = {
            let mut word = word.lock();
            let heard = word.is_some_and(|word| said.windows(word.len()).any(|part| part == word));
            heard.then(|| word.take()).is_some()
        };
        if cut || to_client.write_all(said).await.is_err() {
            break;
        }
    }
    there.abort();
}
