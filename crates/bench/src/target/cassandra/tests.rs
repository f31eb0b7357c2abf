use super::*;
use crate::target::tests::local;
use bytes::{Buf, BytesMut};
use std::cell::RefCell;
use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

/// What a cluster is to say; one server that speaks for all of its nodes.
struct Script {
    peers: usize,
    sync: &'static str,
    replicas: &'static str,
    /// The class by which it would authenticate.
    demands: Option<&'static str>,
    /// Statements that begin so are refused.
    refuses: Option<&'static str>,
    /// How many answers it gives to a connection before it ends it.
    answers: usize,
}

const PLAIN: Script = Script {
    peers: 2,
    sync: "periodic",
    replicas: "3",
    demands: None,
    refuses: None,
    answers: usize::MAX,
};

#[derive(Clone)]
struct Server {
    script: Rc<Script>,
    objects: Rc<RefCell<BTreeMap<Vec<u8>, Vec<u8>>>>,
    /// Every statement that was executed, with its consistency.
    executed: Rc<RefCell<Vec<(String, u16)>>>,
    connections: Rc<Count<usize>>,
}

fn word(word: &[u8]) -> Vec<u8> {
    [&(word.len() as u16).to_be_bytes(), word].concat()
}

fn cell(value: &[u8]) -> Vec<u8> {
    [&(value.len() as u32).to_be_bytes(), value].concat()
}

fn rows(rows: &[&[u8]]) -> (u8, Vec<u8>) {
    let head = [2_u32, 4, 1, rows.len() as u32].map(u32::to_be_bytes);
    let rows = rows.iter().flat_map(|row| cell(row));
    (8, head.concat().into_iter().chain(rows).collect())
}

impl Server {
    async fn serve(script: Script) -> (Server, Node) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let node = Node::parse(&listener.local_addr().unwrap().to_string()).unwrap();
        let server = Server {
            script: Rc::new(script),
            objects: Rc::default(),
            executed: Rc::default(),
            connections: Rc::default(),
        };
        let each = server.clone();
        spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                each.connections.set(each.connections.get() + 1);
                let each = each.clone();
                spawn_local(async move { each.talk(stream).await });
            }
        });
        (server, node)
    }

    /// Answers what came together in the opposite order.
    async fn talk(&self, mut stream: TcpStream) {
        let (mut bytes, mut left) = (BytesMut::new(), self.script.answers);
        loop {
            let mut answers = Vec::new();
            while bytes.len() >= 9 && bytes.len() >= 9 + (&bytes[5..9]).get_u32() as usize {
                if left == 0 {
                    return;
                }
                left -= 1;
                assert_eq!(bytes[0], 4, "a request of version 4");
                let head = bytes.split_to(9);
                let body = bytes.split_to((&head[5..9]).get_u32() as usize);
                let (code, body) = self.answer(head[4], body.freeze());
                let head = [&[0x84, 0], &head[2..4], &[code]].concat();
                answers.push([head, cell(&body)].concat());
            }
            answers.reverse();
            stream.write_all(&answers.concat()).await.unwrap();
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        }
    }

    fn answer(&self, code: u8, mut body: Bytes) -> (u8, Vec<u8>) {
        match code {
            1 => match self.script.demands {
                Some(class) => (3, word(class.as_bytes())),
                None => (2, Vec::new()),
            },
            7 | 9 => {
                let length = body.get_u32() as usize;
                let statement = body.split_to(length);
                let statement = std::str::from_utf8(&statement).unwrap();
                let refused = self.script.refuses;
                if refused.is_some_and(|refused| statement.starts_with(refused)) {
                    let code = 0x2100_u32.to_be_bytes();
                    return (0, [&code[..], &word(b"not you")].concat());
                }
                match code {
                    7 => self.ask(statement),
                    // Its name is the statement itself.
                    _ => (8, [&[0, 0, 0, 4], &word(statement.as_bytes())[..]].concat()),
                }
            }
            _ => self.execute(body),
        }
    }

    fn ask(&self, statement: &str) -> (u8, Vec<u8>) {
        let of = |begin: &str| statement.starts_with(begin);
        let (name, replicas) = (cell(b"replication_factor"), self.script.replicas);
        let replication = [&[0, 0, 0, 1], &name[..], &cell(replicas.as_bytes())].concat();
        match statement {
            "SELECT release_version FROM system.local" => rows(&[b"5.0"]),
            "SELECT peer FROM system.peers" => rows(&vec![&b"peer"[..]; self.script.peers]),
            "SELECT schema_version FROM system.local" => rows(&[b"one"]),
            "SELECT schema_version FROM system.peers" => rows(&[b"one", b"one"]),
            _ if statement.ends_with("name = 'commitlog_sync'") => {
                rows(&[self.script.sync.as_bytes()])
            }
            _ if of("SELECT value FROM system_views.settings") => rows(&[]),
            _ if of("SELECT replication FROM system_schema.keyspaces") => rows(&[&replication]),
            _ if of("CREATE ") => (8, vec![0, 0, 0, 5]),
            _ => panic!("{statement}"),
        }
    }

    fn execute(&self, mut body: Bytes) -> (u8, Vec<u8>) {
        let length = body.get_u16().into();
        let statement = String::from_utf8(body.split_to(length).to_vec()).unwrap();
        let consistency = body.get_u16();
        assert_eq!(body.get_u8(), 3, "values, and no metadata");
        let mut values = Vec::new();
        for _ in 0..body.get_u16() {
            let length = body.get_u32() as usize;
            values.push(body.split_to(length).to_vec());
        }
        self.executed
            .borrow_mut()
            .push((statement.clone(), consistency));
        let mut objects = self.objects.borrow_mut();
        let key = values.pop().unwrap();
        let there = objects.contains_key(&key);
        let condition = statement.split_once(" IF ").map(|(_, condition)| condition);
        let applied = match condition {
            Some("EXISTS") => there,
            Some(_) => !there,
            None => true,
        };
        match (values.pop(), condition) {
            (None, _) => match objects.get(&key) {
                Some(value) => rows(&[value]),
                None => rows(&[]),
            },
            (Some(value), condition) => {
                if applied {
                    objects.insert(key, value);
                }
                match condition {
                    Some(_) => rows(&[&[applied.into()]]),
                    None => (8, vec![0, 0, 0, 1]),
                }
            }
        }
    }
}

fn wanted(memory: bool) -> Wanted {
    Wanted {
        program: crate::cluster::Program::new(|| panic!("nothing is started")),
        servers: 3,
        memory,
        dap: areo_client::Dap::Abd,
        data: "/nowhere".into(),
        s3: None,
        cassandra: Vec::new(),
        cassandra_serial: Vec::new(),
        timeout: Duration::from_mins(1),
    }
}

#[test]
fn what_is_put_is_got_and_clients_share_connections() {
    local(async {
        let (server, node) = Server::serve(PLAIN).await;
        let nodes = [node.clone(), node];
        let cassandra = Cassandra::open(&QUORUM, &nodes, &wanted(true)).await;
        let cassandra = cassandra.unwrap();
        assert_eq!(
            (&*cassandra.about.version, cassandra.about.servers),
            ("5.0", 3)
        );
        let (keeps, durability) = (&cassandra.about.keeps, &cassandra.about.durability);
        assert!(keeps.contains("not linearizable"), "{keeps}");
        assert!(durability.contains("periodic"), "{durability}");
        // The one process that listens is not all three.
        assert!(cassandra.processes().is_empty());
        let mut callers = Vec::new();
        for number in 0..8_usize {
            callers.push((number, cassandra.caller().await.unwrap()));
        }
        let each = callers.into_iter().map(|(number, mut caller)| async move {
            let key = format!("object-{number}");
            let value = Bytes::from(vec![number as u8; number * 20_000]);
            caller.put(&key, value.clone()).await.unwrap();
            let (found, _) = caller.get(&key).await.unwrap();
            assert_eq!(found, Some(value));
            assert_eq!(caller.get("none").await.unwrap().0, None);
        });
        let mut all = tokio::task::JoinSet::new();
        for one in each {
            all.spawn_local(one);
        }
        all.join_all().await;
        assert_eq!(server.objects.borrow().len(), 8);
        let quorum = |(_, consistency): &(String, u16)| *consistency == 4;
        assert!(server.executed.borrow().iter().all(quorum));
        // One to see what it is, and one to each node.
        assert_eq!(server.connections.get(), 3);
    });
}

#[test]
fn lightweight_transactions_insert_what_is_not_there_and_update_what_is() {
    local(async {
        let (server, node) = Server::serve(PLAIN).await;
        let cassandra = Cassandra::open(&SERIAL, &[node], &wanted(true))
            .await
            .unwrap();
        let keeps = &cassandra.about.keeps;
        assert!(
            keeps.contains("linearizable (paxos_variant: not told)"),
            "{keeps}"
        );
        let mut caller = cassandra.caller().await.unwrap();
        for value in ["first", "second"] {
            caller.put("a", value.into()).await.unwrap();
            let (found, _) = caller.get("a").await.unwrap();
            assert_eq!(found, Some(value.into()));
        }
        let executed = server.executed.borrow();
        let executed = executed.iter().map(|(statement, consistency)| {
            let word = statement.split(' ').next().unwrap();
            (word, statement.contains("IF"), *consistency)
        });
        let (update, select) = (("UPDATE", true, 4), ("SELECT", false, 8));
        let expected = [update, ("INSERT", true, 4), select, update, select];
        assert_eq!(executed.collect::<Vec<_>>(), expected);
    });
}

#[test]
fn a_connection_that_ends_fails_what_waits_for_it_and_is_made_again() {
    local(async {
        // A connection takes three of them before it is used: nine puts, and one that fails.
        let script = Script {
            answers: 12,
            ..PLAIN
        };
        let (server, node) = Server::serve(script).await;
        let cassandra = Cassandra::open(&QUORUM, &[node], &wanted(true))
            .await
            .unwrap();
        let mut caller = cassandra.caller().await.unwrap();
        let mut failed = Vec::new();
        for _ in 0..30 {
            failed.extend(caller.put("a", Bytes::new()).await.err());
        }
        assert_eq!(failed.len(), 3, "{failed:?}");
        assert!(
            failed
                .iter()
                .all(|why| why.contains("ended the connection")),
            "{failed:?}"
        );
        assert_eq!(server.connections.get(), 4);
    });
}

/// Why the comparison with such a cluster cannot begin, in memory or with fsync.
async fn failure(script: Script, memory: bool) -> String {
    let (_, node) = Server::serve(script).await;
    let opened = Cassandra::open(&QUORUM, &[node], &wanted(memory)).await;
    opened.map(drop).unwrap_err()
}

#[test]
fn a_cluster_that_is_not_as_it_is_wanted_is_told_at_once() {
    local(async {
        let peers = 0;
        let alone = failure(Script { peers, ..PLAIN }, true).await;
        assert!(alone.contains("1 of the 3 nodes"), "{alone}");
        let replicas = "1";
        let other = failure(Script { replicas, ..PLAIN }, true).await;
        let expected = "{\"replication_factor\": \"1\"} instead of 3";
        assert!(other.contains(expected), "{other}");
        let sync = "batch";
        let slower = failure(Script { sync, ..PLAIN }, true).await;
        assert!(slower.contains("--durability fsync"), "{slower}");
        let faster = failure(PLAIN, false).await;
        assert!(faster.contains("--durability memory"), "{faster}");
    });
}

#[test]
fn a_cluster_that_does_not_let_us_is_told_at_once() {
    local(async {
        let demands = Some("PasswordAuthenticator");
        let asks = failure(Script { demands, ..PLAIN }, true).await;
        assert!(asks.contains("who asks (PasswordAuthenticator)"), "{asks}");
        for (statement, sentence) in [
            (
                "CREATE KEYSPACE",
                "the keyspace areo_bench cannot be created: Cassandra says not you (0x2100)",
            ),
            ("CREATE TABLE", "a table in the keyspace areo_bench"),
            ("INSERT", "'INSERT INTO"),
        ] {
            let refuses = Some(statement);
            let refused = failure(Script { refuses, ..PLAIN }, true).await;
            assert!(refused.contains(sentence), "{refused}");
        }
        let answers = 0;
        let ended = failure(Script { answers, ..PLAIN }, true).await;
        assert!(ended.contains("ended the connection"), "{ended}");
    });
}

#[test]
fn what_listens_and_is_no_cassandra_is_told_at_once() {
    local(async {
        let nobody = Wanted {
            cassandra: vec![Node::parse("127.0.0.1:1").unwrap()],
            ..wanted(true)
        };
        let failed = Cassandra::start(&nobody, false)
            .await
            .map(drop)
            .unwrap_err();
        let nobody = failed.to_string();
        assert!(
            nobody.starts_with("cannot start cassandra: cannot connect to 127.0.0.1:1"),
            "{nobody}"
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let open = |limit| {
            let nodes = [Node::parse(&address).unwrap()];
            async move {
                let wanted = Wanted {
                    timeout: limit,
                    ..wanted(true)
                };
                Cassandra::open(&QUORUM, &nodes, &wanted)
                    .await
                    .map(drop)
                    .unwrap_err()
            }
        };
        let silent = open(Duration::from_millis(50)).await;
        assert_eq!(silent, format!("{address}: no answer within 50ms"));
        spawn_local(async move {
            // Closed with something unread, they would be reset.
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                // The one of before is closed already.
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
                open.push(stream);
            }
        });
        let other = open(Duration::from_mins(1)).await;
        let expected = format!("{address}: what listens there does not speak Cassandra's protocol");
        assert!(other.starts_with(&expected), "{other}");
    });
}

#[test]
fn addresses_of_nodes_are_read() {
    for right in ["127.0.0.1:9042", "a-host.example:1", "[::1]:9042"] {
        assert_eq!(Node::parse(right).unwrap().to_string(), right);
    }
    for wrong in [
        "",
        "host",
        "host:",
        ":9042",
        "host:0",
        "host:70000",
        "http://h:1/",
        "h h:1",
    ] {
        let error = Node::parse(wrong).unwrap_err();
        assert!(error.contains("HOST:PORT"), "{wrong}");
    }
}
