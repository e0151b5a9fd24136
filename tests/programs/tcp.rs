//! Sends of given sizes over a TCP connection to itself.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

/// The sizes fit into the buffers of a connection without a reader.
pub fn send(sizes: &[u64]) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a loopback interface");
    let at = listener.local_addr().expect("it is bound");
    let mut stream = TcpStream::connect(at).expect("it listens");
    println!("connected {} to {}", stream.local_addr().expect("it is connected").port(), at.port());
    for size in sizes {
        let sent = stream.write(&vec![b'.'; *size as usize]).expect("it is connected");
        assert_eq!(sent as u64, *size);
    }
    println!("issued sendto {}", sizes.len());
}
