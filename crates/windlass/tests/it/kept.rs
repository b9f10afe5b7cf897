//! `windlass up --data-dir`, killed at random.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::up::{Up, ask, kubeconfig, run};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CLIENTS: u64 = 4;

/// How often `cargo test` kills it. `WINDLASS_CRASH_ROUNDS=1000 cargo test -p windlass --test it acknowledged` does it more often.
const ROUNDS: u64 = 8;

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

/// An object's value and revision; nothing where it is not there.
type Object = Option<(u64, u64)>;

/// What one client knows of its objects: what they are, or what they may be when nobody answered.
#[derive(Default)]
struct Client {
    objects: BTreeMap<String, Object>,
    /// A request that had no answer: the object's name, and its value if it was carried out.
    unanswered: Option<(String, Option<u64>)>,
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn value(object: &Value) -> u64 {
    object["data"]["value"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn config_map(name: &str, value: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value.to_string()}})
}

impl Client {
    /// Writes until nobody answers any more.
    fn live(&mut self, number: u64, config: &Value, dice: &mut Dice, answers: &AtomicU64) {
        loop {
            let name = format!("of-{number}-{}", dice.below(5));
            let path = format!("{CONFIG_MAPS}/{name}");
            let new = dice.below(u64::from(u32::MAX));
            let known = self.objects.get(&name).copied().flatten();
            let (method, path, body, wish) = match known {
                None => ("POST", CONFIG_MAPS.to_owned(), config_map(&name, new), Some(new)),
                Some(_) if dice.below(4) == 0 => ("DELETE", path, Value::Null, None),
                Some(_) => ("PUT", path, config_map(&name, new), Some(new)),
            };
            let Some((code, answer)) = ask(config, method, &path, &body) else {
                self.unanswered = Some((name, wish));
                return;
            };
            assert!(matches!(code, 200 | 201), "{method} {path}: {code} {answer}");
            self.objects.insert(name, wish.map(|value| (value, revision(&answer))));
            answers.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Compares what is there with what must be.
    fn check(&mut self, number: u64, there: &BTreeMap<String, (u64, u64)>) {
        let unanswered = self.unanswered.take();
        for (name, known) in &mut self.objects {
            let found = there.get(name).copied();
            let wish = unanswered.as_ref().filter(|(of, _)| of == name).map(|(_, wish)| *wish);
            let happened = wish.is_some_and(|wish| found.map(|(value, _)| value) == wish && found != *known);
            assert!(
                found == *known || happened,
                "{name}: {found:?} is there, {known:?} was acknowledged, {wish:?} was asked"
            );
            *known = found;
        }
        if let Some((name, wish)) = unanswered
            && !self.objects.contains_key(&name)
        {
            let found = there.get(&name).copied();
            assert!(found.is_none() || found.map(|(value, _)| value) == wish, "{name}: {found:?}");
            self.objects.insert(name, found);
        }
        let prefix = format!("of-{number}-");
        let strays = there.keys().filter(|name| name.starts_with(&prefix) && !self.objects.contains_key(*name));
        assert_eq!(strays.collect::<Vec<_>>(), Vec::<&String>::new());
    }
}

fn listed(config: &Value) -> (BTreeMap<String, (u64, u64)>, u64) {
    let (code, list) = ask(config, "GET", CONFIG_MAPS, &Value::Null).unwrap();
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().unwrap().iter();
    let named = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    (items.map(|item| (named(item), (value(item), revision(item)))).collect(), revision(&list))
}

/// What happened since a revision, folded over what was there then, is what is there now.
fn check_watch(config: &Value, from: &(BTreeMap<String, (u64, u64)>, u64)) {
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={}", from.1);
    let (now, end) = listed(config);
    let (code, told) = ask(config, "GET", &path, &Value::Null).unwrap();
    assert_eq!(code, 200, "{told}");
    let text = told.as_str().map_or_else(|| told.to_string(), str::to_owned);
    let (mut model, mut seen) = from.clone();
    for line in text.lines().filter(|line| !line.is_empty() && *line != "\"\"") {
        let frame: Value = serde_json::from_str(line).unwrap();
        let object = &frame["object"];
        if frame["type"] == "ERROR" {
            assert_eq!(object["code"], 410, "{frame}");
            return;
        }
        assert!(revision(object) > seen, "{frame}");
        seen = revision(object);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match frame["type"].as_str().unwrap() {
            "ADDED" | "MODIFIED" => drop(model.insert(name, (value(object), revision(object)))),
            "DELETED" => drop(model.remove(&name)),
            other => assert_eq!(other, "BOOKMARK"),
        }
    }
    assert!(seen <= end.max(seen));
    assert_eq!(model, now, "the watch from {} does not lead to the list", from.1);
}

#[test]
fn what_was_acknowledged_survives_being_killed_at_any_moment() {
    let state = TempDir::new().unwrap();
    let data = state.path().join("data");
    let rounds = std::env::var("WINDLASS_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let clients: Vec<_> = (0..CLIENTS).map(|_| Arc::new(Mutex::new(Client::default()))).collect();
    let mut dice = Dice(7);
    let mut before = None;
    let mut all = 0;
    for round in 0..=rounds {
        let up = Up::start(state.path(), &["--data-dir", data.to_str().unwrap()]);
        let config = Arc::new(kubeconfig(&state.path().join("windlass/kubeconfig")));
        let (there, revision) = listed(&config);
        for (number, client) in (0..).zip(&clients) {
            client.lock().unwrap().check(number, &there);
        }
        if let Some(before) = &before {
            check_watch(&config, before);
        }
        before = Some((there, revision));
        let answers = Arc::new(AtomicU64::new(0));
        let wanted = 1 + dice.below(60);
        let threads: Vec<_> = (0..)
            .zip(&clients)
            .map(|(number, client)| {
                let (client, config, answers) = (client.clone(), config.clone(), answers.clone());
                let mut dice = Dice(round * CLIENTS + number);
                thread::spawn(move || client.lock().unwrap().live(number, &config, &mut dice, &answers))
            })
            .collect();
        while answers.load(Ordering::SeqCst) < wanted && threads.iter().all(|thread| !thread.is_finished()) {
            thread::yield_now();
        }
        up.kill();
        for thread in threads {
            thread.join().unwrap();
        }
        all += answers.load(Ordering::SeqCst);
    }
    assert!(all > rounds, "{all} writes in {rounds} rounds");
}

fn json(state: &Path, arguments: &[&str]) -> Value {
    let (output, stderr) = run(state, arguments);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Each Machine by its name, with its uid.
fn machines(config: &Value) -> BTreeMap<String, String> {
    let path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";
    let (_, list) = ask(config, "GET", path, &Value::Null).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| (text(&item["metadata"]["name"]), text(&item["metadata"]["uid"]))).collect()
}

fn cluster(config: &Value) -> Value {
    let path = "/apis/run.tanzu.vmware.com/v1alpha1/namespaces/default/tanzukubernetesclusters/my-tkc";
    ask(config, "GET", path, &Value::Null).unwrap().1
}

#[test]
fn an_upgrade_goes_on_after_it_was_killed_in_the_middle() {
    let state = TempDir::new().unwrap();
    let data = state.path().join("data");
    let arguments = ["--data-dir", data.to_str().unwrap(), "--speed", "600"];
    let up = Up::start(state.path(), &arguments);
    let path = state.path().join("windlass/kubeconfig");
    let of_that_time = fs::read_to_string(&path).unwrap();
    let config = kubeconfig(&path);
    let (created, said) = run(state.path(), &["create", "cluster", "my-tkc", "--release", "v1.15", "--wait"]);
    assert!(created.status.success(), "{said}");
    let secret = ask(&config, "GET", "/api/v1/namespaces/default/secrets/my-tkc-kubeconfig", &Value::Null).unwrap().1;
    let inside = STANDARD.decode(secret["data"]["value"].as_str().unwrap()).unwrap();
    let inside: Value = serde_saphyr::from_str(std::str::from_utf8(&inside).unwrap()).unwrap();
    let nodes = |config: &Value| ask(config, "GET", "/api/v1/nodes", &Value::Null).map(|(code, _)| code);
    assert_eq!(nodes(&inside), Some(200));
    let mut ever: BTreeMap<String, String> = machines(&config);
    let (asked, said) = run(state.path(), &["upgrade", "my-tkc", "--to", "v1.16", "--yes"]);
    assert!(asked.status.success(), "{said}");
    // It is killed as soon as the first machine is being replaced, and again with the second.
    let mut up = Some(up);
    for life in 1..=2 {
        let known = ever.len();
        while ever.len() == known {
            note(&mut ever, machines(&config));
            thread::yield_now();
        }
        up.take().unwrap().kill();
        let again = Up::start(state.path(), &arguments);
        assert_eq!(kubeconfig(&path)["clusters"], config["clusters"], "life {life}: the same authority, the same port");
        up = Some(again);
    }
    let by_then: Value = serde_saphyr::from_str(&of_that_time).unwrap();
    let is_done = |cluster: &Value| {
        let version = cluster["status"]["version"].as_str().unwrap_or_default();
        version.starts_with("v1.16") && cluster["status"]["phase"] == "running"
    };
    while !is_done(&cluster(&by_then)) {
        note(&mut ever, machines(&by_then));
        thread::yield_now();
    }
    note(&mut ever, machines(&by_then));
    let left = machines(&by_then);
    assert_eq!((left.len(), ever.len()), (2, 4), "one machine of each sort was replaced, once: {ever:?}");
    // The kubeconfig of the workload cluster goes on working, too.
    while nodes(&inside) != Some(200) {
        thread::yield_now();
    }
    let updates = json(state.path(), &["get", "updates", "-o", "json"]);
    let text = updates.to_string();
    assert!(text.contains("Succeeded") && !text.contains("my-tkc-2"), "{text}");
}

/// Takes note of machines; none has a name that another had.
fn note(ever: &mut BTreeMap<String, String>, now: BTreeMap<String, String>) {
    for (name, uid) in now {
        let known = ever.entry(name.clone()).or_insert_with(|| uid.clone());
        assert_eq!(*known, uid, "{name} was made twice");
    }
}

#[test]
fn a_data_directory_is_for_one_process_and_nobody_else_can_read_it() {
    const SECRET: &str = "a canary in a coal mine";
    let state = TempDir::new().unwrap();
    let data = state.path().join("data");
    let arguments = ["--data-dir", data.to_str().unwrap()];
    let up = Up::start(state.path(), &arguments);
    let config = kubeconfig(&state.path().join("windlass/kubeconfig"));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": SECRET}});
    assert_eq!(ask(&config, "POST", "/api/v1/namespaces/default/secrets", &secret).unwrap().0, 201);

    let (output, stderr) = run(state.path(), &[&["up", "--kubeconfig", "other"], &arguments[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("error (user): the data directory {data:?} is in use by process {}\n", up.pid());
    assert!(stderr.starts_with(&expected), "{stderr}");
    assert!(stderr.contains("\n  try: ending the other one, or windlass up --data-dir DIR"), "{stderr}");
    assert_eq!(up.end("-TERM").0, Some(0));

    let key = state.path().join("windlass/data-key");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&data), mode(&key)), (0o700, 0o600));
    let secret_forms = [SECRET.to_owned(), STANDARD.encode(SECRET), "BEGIN PRIVATE KEY".to_owned()];
    let mut files = 0;
    for entry in fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
        let bytes = fs::read(&path).unwrap();
        for form in &secret_forms {
            assert!(!bytes.windows(form.len()).any(|window| window == form.as_bytes()), "{path:?} has {form:?}");
        }
        files += 1;
    }
    assert!(files >= 2);

    fs::rename(&key, state.path().join("elsewhere")).unwrap();
    let (output, stderr) = run(state.path(), &[&["up"], &arguments[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.starts_with(&format!("error (user): there is no key file {key:?}\n")), "{stderr}");
    assert!(!key.exists());
    let moved = state.path().join("elsewhere");
    let up = Up::start(state.path(), &[&arguments[..], &["--key-file", moved.to_str().unwrap()]].concat());
    let config = kubeconfig(&state.path().join("windlass/kubeconfig"));
    let (code, secret) = ask(&config, "GET", "/api/v1/namespaces/default/secrets/s", &Value::Null).unwrap();
    assert_eq!((code, &secret["data"]["k"]), (200, &json!(STANDARD.encode(SECRET))));
    assert_eq!(up.end("-TERM").0, Some(0));
}
