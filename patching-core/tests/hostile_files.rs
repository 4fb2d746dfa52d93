//! Truncated, hostile and wrong files give errors: never a panic, an endless loop or an allocation without bound.
//!
//! What is known to be nasty is listed; around it, files are made and damaged at random. A random case that fails is
//! kept in `proptest-regressions/hostile_files.txt` and run first from then on.

mod support;

use std::fs::{self, File};
use std::path::Path;

use burn::tensor::Device;
use patching_core::weights::{
    Checkpoint, ConfigError, HeaderError, IndexError, LoadError, PreTrainedModel, PretrainedConfig, ReadError, ReadMode,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};
use safetensors::SafeTensors;

use support::{ToyConfig, ToyForCausalLM, file_of, fixture};

/// A file with this header and so many bytes after it.
fn with_header(header: impl AsRef<[u8]>, data: usize) -> Vec<u8> {
    let header = header.as_ref();
    [&(header.len() as u64).to_le_bytes()[..], header, &vec![0; data]].concat()
}

/// Key, shape and bytes of each tensor.
type Contents = Vec<(String, Vec<usize>, Vec<u8>)>;

/// Opens `bytes` as a checkpoint, in both modes, and reads all that is in it.
fn open(bytes: &[u8]) -> Result<Contents, ReadError> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("model.safetensors"), bytes).expect("writes");
    let mapped = read_all(folder.path(), ReadMode::Map);
    let read = read_all(folder.path(), ReadMode::Read);
    let text = |result: &Result<_, ReadError>| result.as_ref().err().map(ToString::to_string);
    assert_eq!(text(&mapped), text(&read));
    if let (Ok(mapped), Ok(read)) = (&mapped, &read) {
        assert_eq!(mapped, read);
    }
    mapped
}

fn read_all(dir: &Path, mode: ReadMode) -> Result<Contents, ReadError> {
    let checkpoint = Checkpoint::open(dir, mode)?;
    let mut all = Vec::new();
    for (key, tensor) in checkpoint.tensors() {
        match checkpoint.read(key) {
            Ok(data) => all.push((key.to_owned(), tensor.shape().to_vec(), data.bytes().to_vec())),
            // Files may hold what Burn cannot; a load says so if it is needed.
            Err(ReadError::UnsupportedDtype { .. } | ReadError::InvalidBool { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn header_error(bytes: &[u8]) -> HeaderError {
    match open(bytes) {
        Err(ReadError::Header { source, .. }) => source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lengths_that_lie() {
    assert!(matches!(header_error(b""), HeaderError::TooShort { size: 0 }));
    assert!(matches!(header_error(b"1234567"), HeaderError::TooShort { size: 7 }));
    assert!(matches!(header_error(&u64::MAX.to_le_bytes()), HeaderError::TooLong { length: u64::MAX }));
    assert!(matches!(header_error(&100_000_001_u64.to_le_bytes()), HeaderError::TooLong { .. }));
    assert!(matches!(
        header_error(&100_000_000_u64.to_le_bytes()),
        HeaderError::Truncated { length: 100_000_000, available: 0 }
    ));
    let whole = with_header("{}", 0);
    assert!(open(&whole).expect("no tensors, but right").is_empty());
    assert!(matches!(header_error(&whole[..9]), HeaderError::Truncated { length: 2, available: 1 }));
}

#[test]
fn a_huge_file_costs_no_more_than_the_largest_header() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.safetensors");
    fs::write(&path, 1000_u64.to_le_bytes()).expect("writes");
    // A hole of a terabyte; not every file system has such.
    if File::options().write(true).open(&path).and_then(|file| file.set_len(1 << 40)).is_err() {
        return;
    }
    for mode in [ReadMode::Map, ReadMode::Read] {
        let error = Checkpoint::open(folder.path(), mode).expect_err("zeros are no JSON");
        assert!(matches!(error, ReadError::Header { source: HeaderError::Json(_), .. }), "{error}");
    }
}

/// A header with one tensor `a`.
fn one(dtype: &str, shape: &str, offsets: &str) -> String {
    format!(r#"{{"a":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}}}"#)
}

#[test]
fn headers_that_are_no_headers() {
    let deep = "[".repeat(1 << 20);
    let deep_shape = one("\"F32\"", &deep, "[0,4]");
    let deep_unknown = format!(r#"{{"a":{{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":{deep}}}}}"#);
    let deep_metadata = format!(r#"{{"__metadata__":{{"a":{deep}}}}}"#);
    let wrong = [
        "",
        " ",
        "{",
        "[]",
        "null",
        "1",
        "\"a\"",
        "{}{}",
        "{} x",
        "{\"a\":1}",
        "{\"a\":null}",
        "{\"a\":{}}",
        "{\"a\":[]}",
        r#"{"__metadata__":1}"#,
        r#"{"__metadata__":{"a":1}}"#,
        r#"{"__metadata__":{"a":{}}}"#,
        r#"{"a":}"#,
        "\u{feff}{}",
        r#"{"a":{"dtype":"F32","shape":[1]}}"#,
        r#"{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
        &deep,
        &deep_shape,
        &deep_unknown,
        &deep_metadata,
    ];
    for header in wrong {
        let error = header_error(&with_header(header, 4));
        assert!(matches!(error, HeaderError::Json(_)), "{:.80}: {error}", header);
    }
    assert!(matches!(header_error(&with_header(b"{\"\xff\":1}", 4)), HeaderError::Json(_)));
    assert!(matches!(header_error(&with_header(b"{\"a\xc0\xaf\":1}", 4)), HeaderError::Json(_)));
}

#[test]
fn tensors_that_cannot_be() {
    for (dtype, shape, offsets) in [
        ("\"F99\"", "[1]", "[0,4]"),
        ("\"f32\"", "[1]", "[0,4]"),
        ("\"\"", "[1]", "[0,4]"),
        ("7", "[1]", "[0,4]"),
        ("null", "[1]", "[0,4]"),
        ("\"F32\"", "[-1]", "[0,4]"),
        ("\"F32\"", "[1.5]", "[0,4]"),
        ("\"F32\"", "[1.0]", "[0,4]"),
        ("\"F32\"", "[1e400]", "[0,4]"),
        ("\"F32\"", "[99999999999999999999999999]", "[0,4]"),
        ("\"F32\"", "[\"1\"]", "[0,4]"),
        ("\"F32\"", "1", "[0,4]"),
        ("\"F32\"", "null", "[0,4]"),
        ("\"F32\"", "[1]", "[0]"),
        ("\"F32\"", "[1]", "[0,4,8]"),
        ("\"F32\"", "[1]", "[-4,4]"),
        ("\"F32\"", "[1]", "[0,4.0]"),
        ("\"F32\"", "[1]", "{}"),
    ] {
        let error = header_error(&with_header(one(dtype, shape, offsets), 4));
        assert!(matches!(error, HeaderError::Json(_)), "{dtype} {shape} {offsets}: {error}");
        assert!(error.to_string().contains("at `a`"), "{error}");
    }

    let error = |header: String, data| header_error(&with_header(header, data));
    let max = u64::MAX;
    assert!(matches!(error(one("\"F32\"", &format!("[{max},2]"), "[0,4]"), 4), HeaderError::Overflow { .. }));
    assert!(matches!(error(one("\"F64\"", &format!("[{}]", max / 2), "[0,4]"), 4), HeaderError::Overflow { .. }));
    assert!(matches!(error(one("\"F4\"", "[3]", "[0,2]"), 2), HeaderError::Overflow { .. }));
    assert!(matches!(error(one("\"F32\"", "[2]", "[0,4]"), 4), HeaderError::Size { expected: 8, found: 4, .. }));
    assert!(matches!(error(one("\"F32\"", "[1]", "[4,0]"), 4), HeaderError::Backwards { .. }));
    assert!(matches!(error(one("\"F32\"", "[1]", "[4,8]"), 8), HeaderError::Offset { start: 4, expected: 0, .. }));
    assert!(matches!(
        error(one("\"U8\"", &format!("[{max}]"), &format!("[0,{max}]")), 4),
        HeaderError::Overflow { .. } | HeaderError::Length { .. }
    ));
    let most = u64::MAX / 8;
    let offsets = format!("[0,{most}]");
    assert!(matches!(error(one("\"U8\"", &format!("[{most}]"), &offsets), 4), HeaderError::Length { .. }));
    for data in [0, 3, 5, 1000] {
        let found = error(one("\"F32\"", "[1]", "[0,4]"), data);
        assert!(matches!(found, HeaderError::Length { expected: 4, available } if available == data as u64));
    }
}

#[test]
fn tensors_that_overlap_or_come_twice() {
    let entry = |start: usize, end: usize| {
        format!(r#"{{"dtype":"U8","shape":[{}],"data_offsets":[{start},{end}]}}"#, end - start)
    };
    let header = |a: &str, b: &str| format!(r#"{{"a":{a},"b":{b}}}"#);
    let overlapping = header(&entry(0, 4), &entry(2, 6));
    assert!(matches!(header_error(&with_header(overlapping, 6)), HeaderError::Offset { .. }));
    let same = header(&entry(0, 4), &entry(0, 4));
    assert!(matches!(header_error(&with_header(same, 4)), HeaderError::Offset { .. }));
    let hole = header(&entry(0, 2), &entry(3, 6));
    assert!(matches!(header_error(&with_header(hole, 6)), HeaderError::Offset { start: 3, expected: 2, .. }));

    // The reference's library lets the last of these win.
    for entries in [[entry(0, 4), entry(0, 4)], [entry(0, 0), entry(0, 4)], [entry(0, 4), entry(4, 4)]] {
        let twice = format!(r#"{{"a":{},"a":{}}}"#, entries[0], entries[1]);
        let error = header_error(&with_header(twice, 4));
        assert!(error.to_string().contains("at `a`: given twice"), "{error}");
    }
    let metadata = r#"{"__metadata__":{},"__metadata__":{}}"#;
    assert!(header_error(&with_header(metadata, 0)).to_string().contains("given twice"));

    let empty = header(&entry(0, 0), &entry(0, 0));
    assert_eq!(open(&with_header(empty, 0)).expect("two tensors without elements").len(), 2);
}

#[test]
fn a_shape_of_many_dimensions_is_only_strange() {
    let shape = format!("[{}1]", "1,".repeat(10_000));
    let all = open(&with_header(one("\"F32\"", &shape, "[0,4]"), 4)).expect("right as a file");
    assert_eq!(all[0].1.len(), 10_001);
    // Of a size of zero no other size matters to the length, but none may overflow on the way.
    let zero = one("\"F32\"", &format!("[0,{},{}]", u64::MAX, u64::MAX), "[0,0]");
    assert!(open(&with_header(zero, 0)).is_ok());
}

/// A folder with an index and two right shards, `one` in the first and `two` in the second.
fn sharded(index: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("model.safetensors.index.json"), index).expect("writes");
    for (name, key) in [("a.safetensors", "one"), ("b.safetensors", "two")] {
        fs::write(folder.path().join(name), file_of(&[(key, &[2], &[1.0, 2.0])])).expect("writes");
    }
    folder
}

fn index_error(index: &str) -> IndexError {
    match read_all(sharded(index).path(), ReadMode::Map) {
        Err(ReadError::Index { source, .. }) => source,
        other => panic!("{other:?}"),
    }
}

fn map(entries: &[(&str, &str)]) -> String {
    let entries: Vec<_> = entries.iter().map(|(key, shard)| format!("{key:?}:{}", serde_json::json!(shard))).collect();
    format!(r#"{{"metadata":{{"total_size":16}},"weight_map":{{{}}}}}"#, entries.join(","))
}

#[test]
fn an_index_never_leads_out_of_its_folder() {
    let right = map(&[("one", "a.safetensors"), ("two", "b.safetensors")]);
    assert_eq!(read_all(sharded(&right).path(), ReadMode::Map).expect("right").len(), 2);
    for name in [
        "../x.safetensors",
        "/etc/passwd",
        "/x.safetensors",
        "..",
        ".",
        "",
        "x/../a.safetensors",
        "./a.safetensors",
        "x\\a.safetensors",
        "..\\a.safetensors",
        "C:\\a.safetensors",
        "C:a.safetensors",
        "a.safetensors\0",
        "a\0.safetensors",
        "a.bin",
        "model.safetensors.index.json",
        "file:///a.safetensors",
        "a.safetensors/",
    ] {
        let error = index_error(&map(&[("one", name), ("two", "b.safetensors")]));
        assert!(matches!(&error, IndexError::ShardName { shard, .. } if shard == name), "{name:?}: {error}");
    }
}

#[test]
fn an_index_that_does_not_tell_the_truth() {
    let error = index_error(&map(&[("one", "a.safetensors"), ("two", "c.safetensors")]));
    assert!(matches!(&error, IndexError::MissingShard { shard, key } if shard == "c.safetensors" && key == "two"));
    let error = index_error(&map(&[("one", "b.safetensors"), ("two", "a.safetensors")]));
    assert!(matches!(&error, IndexError::WrongShard { found: Some(_), .. }), "{error}");
    let error = index_error(&map(&[("one", "a.safetensors"), ("two", "b.safetensors"), ("three", "a.safetensors")]));
    assert_eq!(error.to_string(), "`three` is said to be in `a.safetensors`, but is in none");

    let folder = sharded(&map(&[("one", "a.safetensors"), ("two", "b.safetensors")]));
    fs::copy(folder.path().join("a.safetensors"), folder.path().join("b.safetensors")).expect("copies");
    let error = read_all(folder.path(), ReadMode::Map).expect_err("`one` is in both");
    assert!(matches!(error, ReadError::Index { source: IndexError::DuplicateTensor { .. }, .. }), "{error}");

    let twice = r#"{"weight_map":{"one":"a.safetensors","one":"b.safetensors"}}"#;
    assert!(index_error(twice).to_string().contains("at `one`: given twice"));
    let deep = format!(r#"{{"weight_map":{}"#, "{\"a\":".repeat(1 << 18));
    for wrong in
        ["", "{}", "[]", r#"{"weight_map":[]}"#, r#"{"weight_map":{"one":1}}"#, r#"{"weight_map":null}"#, &deep]
    {
        assert!(matches!(index_error(wrong), IndexError::Json(_)), "{wrong:.40}");
    }
    let empty = sharded(r#"{"weight_map":{}}"#);
    assert!(read_all(empty.path(), ReadMode::Map).expect("nothing in it").is_empty());
}

#[test]
fn what_is_no_file_is_not_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.safetensors");
    fs::create_dir(&path).expect("makes");
    let error = Checkpoint::open(folder.path(), ReadMode::Map).expect_err("a folder");
    assert!(matches!(error, ReadError::NotAFile { .. }), "{error}");
    fs::remove_dir(&path).expect("removes");

    // Opening a pipe would wait for somebody to write into it.
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if made.is_ok_and(|status| status.success()) {
        let error = Checkpoint::open(folder.path(), ReadMode::Map).expect_err("a pipe");
        assert!(matches!(error, ReadError::NotAFile { .. }), "{error}");
    }
}

#[test]
#[cfg(unix)]
fn links_are_followed() {
    // A snapshot of a downloaded model is a folder of links to files elsewhere.
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["config.json", "model.safetensors"] {
        std::os::unix::fs::symlink(fixture("llama").join(name), folder.path().join(name)).expect("links");
    }
    assert!(ToyForCausalLM::from_pretrained(folder.path(), &Device::flex()).is_ok());

    let circle = folder.path().join("circle");
    std::os::unix::fs::symlink(&circle, &circle).expect("links");
    assert!(ToyConfig::from_json_file(&circle).is_err());
}

#[test]
fn configs_that_are_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.json");
    let right = fs::read_to_string(fixture("llama").join("config.json")).expect("reads");
    let size = r#""hidden_size": 32"#;
    assert!(right.contains(size));
    let changed = |value: &str| right.replace(size, &format!(r#""hidden_size": {value}"#));
    for value in
        ["-1", "1.5", "1e400", "\"32\"", "null", "[]", "{}", "true", &"9".repeat(10_000), "NaN", "Infinity", "0x20"]
    {
        fs::write(&path, changed(value)).expect("writes");
        let error = ToyConfig::from_pretrained(folder.path()).expect_err(value);
        assert!(matches!(error, ConfigError::Invalid { .. }), "{value:.20}: {error:.100}");
    }
    for whole in [
        &b""[..],
        b"null",
        b"[]",
        b"1",
        b"\"x\"",
        b"\0",
        b"\xff\xfe{}",
        b"{\"model_type\": 7}",
        b"{\"model_type\": \"\"}",
    ] {
        fs::write(&path, whole).expect("writes");
        assert!(ToyConfig::from_pretrained(folder.path()).is_err(), "{whole:?}");
    }

    File::create(&path).and_then(|file| file.set_len(1 << 30)).expect("writes");
    let error = ToyConfig::from_pretrained(folder.path()).expect_err("too large");
    assert!(matches!(error, ConfigError::Read(ReadError::TooLarge { .. })), "{error}");
}

#[test]
fn configs_of_models_that_cannot_be() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(fixture("llama").join("model.safetensors"), folder.path().join("model.safetensors")).expect("copies");
    let right = fs::read_to_string(fixture("llama").join("config.json")).expect("reads");
    let load = |from: &str, to: &str| {
        assert!(right.contains(from));
        fs::write(folder.path().join("config.json"), right.replace(from, to)).expect("writes");
        ToyForCausalLM::from_pretrained(folder.path(), &Device::flex()).expect_err("it cannot be")
    };
    // Parameters take no memory before they have a value, and these never get one.
    let error = load(r#""vocab_size": 99"#, r#""vocab_size": 1152921504606846976"#);
    assert!(matches!(error, LoadError::Weights(_)), "{error}");
    let error = load(r#""num_hidden_layers": 3"#, r#""num_hidden_layers": 1000000000000"#);
    assert!(error.to_string().ends_with("`num_hidden_layers` is 1000000000000, expected at most 1000"), "{error}");
}

/// A file that is right, small, and has all that a file can have.
fn right_file() -> Vec<u8> {
    let header = concat!(
        r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"#,
        r#""b.c":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},"d":{"dtype":"BOOL","shape":[],"data_offsets":[22,23]},"#,
        r#""e":{"dtype":"I64","shape":[0],"data_offsets":[23,23]}}"#
    );
    with_header(header, 23)
}

/// Changes of single bytes, and a length to cut to.
fn damage() -> impl Strategy<Value = (Vec<(prop::sample::Index, u8)>, Option<prop::sample::Index>)> {
    (vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), prop::option::weighted(0.2, any::<prop::sample::Index>()))
}

fn damaged(mut bytes: Vec<u8>, damage: &(Vec<(prop::sample::Index, u8)>, Option<prop::sample::Index>)) -> Vec<u8> {
    for (place, value) in &damage.0 {
        let place = place.index(bytes.len());
        bytes[place] = *value;
    }
    if let Some(length) = &damage.1 {
        bytes.truncate(length.index(bytes.len()));
    }
    bytes
}

/// Entries that are nearly right: the offsets mostly follow each other, the shapes mostly fit.
fn entries() -> impl Strategy<Value = (String, usize)> {
    let dtype = prop::sample::select(vec!["F32", "F16", "BF16", "U8", "I64", "BOOL", "F4", "F8_E4M3", "F99", "f32"]);
    let size = prop_oneof![8 => 0..4_u64, 1 => Just(u64::MAX), 1 => Just(1 << 62)];
    let shift = || prop_oneof![9 => Just(0_i64), 1 => -3..4_i64];
    let entry = ("[ab]{1,2}", dtype, vec(size, 0..4), shift(), shift());
    (vec(entry, 0..5), prop_oneof![4 => Just(0_i64), 1 => -5..6_i64]).prop_map(|(entries, surplus)| {
        let mut end = 0_i64;
        let mut texts = Vec::new();
        for (key, dtype, shape, shift, excess) in entries {
            let bits = match dtype {
                "F4" => 4,
                "U8" | "BOOL" | "F8_E4M3" => 8,
                "F16" | "BF16" => 16,
                "I64" => 64,
                _ => 32,
            };
            let elements = shape.iter().fold(1_u64, |product, size| product.saturating_mul(*size));
            let bytes = i64::try_from(elements.saturating_mul(bits) / 8).unwrap_or(7).min(1 << 20);
            let start = end + shift;
            end = start + bytes + excess;
            texts.push(format!(r#""{key}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{start},{end}]}}"#));
        }
        (format!("{{{}}}", texts.join(",")), usize::try_from(end + surplus).unwrap_or(0))
    })
}

/// Ours takes no file that the reference's library refuses, and the other way round but for keys given twice.
fn agrees_with_the_reference(bytes: &[u8]) -> Result<(), TestCaseError> {
    let ours = open(bytes);
    match (ours, SafeTensors::deserialize(bytes)) {
        (Ok(ours), Ok(theirs)) => {
            for (key, shape, data) in ours {
                let tensor = theirs.tensor(&key);
                prop_assert!(tensor.is_ok(), "{}", key);
                if let Ok(tensor) = tensor {
                    prop_assert_eq!(tensor.shape(), shape);
                    prop_assert_eq!(tensor.data(), data);
                }
            }
        }
        (Ok(_), Err(error)) => prop_assert!(false, "only ours takes it: {}", error),
        (Err(error), Ok(_)) => {
            prop_assert!(error.to_string().contains("given twice"), "only ours refuses it: {}", error)
        }
        (Err(_), Err(_)) => {}
    }
    Ok(())
}

fn config() -> Config {
    Config {
        cases: Config::default().cases.max(400),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/hostile_files.txt"))),
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..64)) {
        agrees_with_the_reference(&bytes)?;
        agrees_with_the_reference(&with_header(&bytes, 4))?;
    }

    #[test]
    fn nearly_right_headers((header, data) in entries()) {
        agrees_with_the_reference(&with_header(header, data))?;
    }

    #[test]
    fn damaged_files(damage in damage()) {
        agrees_with_the_reference(&damaged(right_file(), &damage))?;
    }

    #[test]
    fn damaged_indices(damage in damage()) {
        let right = map(&[("one", "a.safetensors"), ("two", "b.safetensors")]);
        let index = damaged(right.into_bytes(), &damage);
        let folder = sharded("");
        fs::write(folder.path().join("model.safetensors.index.json"), index).expect("writes");
        // That it comes back at all is what counts; a right one must still give both tensors.
        if let Ok(all) = read_all(folder.path(), ReadMode::Map) {
            prop_assert!(all.len() <= 2);
        }
    }

    #[test]
    fn damaged_configs(damage in damage()) {
        let right = fs::read(fixture("llama").join("config.json")).expect("reads");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("config.json"), damaged(right, &damage)).expect("writes");
        if let Ok(config) = ToyConfig::from_pretrained(folder.path()) {
            prop_assert!(config.num_hidden_layers <= 1000);
        }
    }

    #[test]
    fn damaged_checkpoints_load_or_say_why(damage in damage()) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::copy(fixture("llama").join("config.json"), folder.path().join("config.json")).expect("copies");
        let right = fs::read(fixture("llama").join("model.safetensors")).expect("reads");
        // Damage to the numbers is nothing that could be found; the header is the first 3008 bytes.
        let (header, data) = right.split_at(3008);
        let header = damaged(header.to_vec(), &damage);
        fs::write(folder.path().join("model.safetensors"), [&header, data].concat()).expect("writes");
        if let Err(error) = ToyForCausalLM::from_pretrained(folder.path(), &Device::flex()) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
