use super::*;

/// The prefix with ids of one byte each, and what follows.
fn in_store(ids: [u8; 3], rest: &[u8]) -> Vec<u8> {
    [&[0], &ids[..], rest].concat()
}

fn double(kind: u8, value: f64) -> Vec<u8> {
    [&[kind], &value.to_le_bytes()[..]].concat()
}

fn string(text: &str) -> Vec<u8> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let bytes = units.iter().flat_map(|unit| unit.to_be_bytes());
    [kind::STRING, units.len() as u8].into_iter().chain(bytes).collect()
}

fn binary(bytes: &[u8]) -> Vec<u8> {
    [&[kind::BINARY, bytes.len() as u8], bytes].concat()
}

fn array(elements: &[Vec<u8>]) -> Vec<u8> {
    [vec![kind::ARRAY, elements.len() as u8], elements.concat()].concat()
}

/// Each is below all that follow it, and equal to itself.
fn assert_ascending(keys: &[Vec<u8>]) {
    for (i, a) in keys.iter().enumerate() {
        for (j, b) in keys.iter().enumerate() {
            assert_eq!(IndexedDb.compare(a, b), i.cmp(&j), "{a:02x?} and {b:02x?}");
        }
    }
}

/// The order that the standard gives keys (Indexed Database API 3.0, "compare two keys").
fn user_keys() -> Vec<Vec<u8>> {
    vec![
        vec![kind::LEAST],
        double(kind::NUMBER, f64::NEG_INFINITY),
        double(kind::NUMBER, -1.5),
        double(kind::NUMBER, 0.0),
        double(kind::NUMBER, 256.0),
        double(kind::DATE, -1.0),
        double(kind::DATE, 1e12),
        string(""),
        string("a"),
        string("aa"),
        string("b"),
        string("\u{101}"),
        binary(b""),
        binary(b"\x00"),
        binary(b"\x00\x01"),
        binary(b"\xff"),
        array(&[]),
        array(&[double(kind::NUMBER, 1.0)]),
        array(&[double(kind::NUMBER, 1.0), double(kind::NUMBER, 0.0)]),
        array(&[string("a")]),
        array(&[array(&[]), string("z")]),
        array(&[array(&[string("a")])]),
        vec![kind::GREATEST],
    ]
}

#[test]
fn keys_of_every_type_are_in_the_order_of_the_standard() {
    for index in [1, 2, 3, 30] {
        let keys: Vec<_> = user_keys().iter().map(|key| in_store([1, 1, index], key)).collect();
        assert_ascending(&keys);
    }
}

#[test]
fn ids_are_numbers_however_long_they_are_stored() {
    // The first byte says that the database's id has two bytes.
    let long = |id: u16| [&[1 << 5], &id.to_le_bytes()[..], &[1, 1, kind::LEAST]].concat();
    let least = vec![kind::LEAST];
    let short = |id| in_store([id, 1, 1], &least);
    assert_eq!(IndexedDb.compare(&long(7), &short(7)), Ordering::Equal);
    assert_ascending(&[short(1), short(255), long(0x100), long(0x201), long(0x300)]);
    let stores = [in_store([2, 1, 1], &least), in_store([2, 1, 30], &least)];
    assert_ascending(&[stores.to_vec(), vec![in_store([2, 2, 1], &least)]].concat());
}

#[test]
fn metadata_comes_before_values_and_in_the_order_of_its_fields() {
    let name = |text| string(text)[1..].to_vec();
    let global = |rest: &[u8]| in_store([0, 0, 0], rest);
    let of_database = |rest: &[u8]| in_store([1, 0, 0], rest);
    assert_ascending(&[
        global(&[0]),
        global(&[2]),
        global(&[50, 1]),
        global(&[50, 1, 0]),
        global(&[100, 5]),
        global(&[100, 0x80, 1]), // 128
        global(&[&[201][..], &name("aa"), &name("z")].concat()),
        global(&[&[201][..], &name("b"), &name("a")].concat()),
        global(&[&[201][..], &name("b"), &name("b")].concat()),
        of_database(&[0]),
    ]);
    assert_ascending(&[
        of_database(&[0]),
        of_database(&[5]),
        of_database(&[50, 1, 0]),
        of_database(&[50, 1, 6]),
        of_database(&[50, 2, 0]),
        of_database(&[100, 1, 30, 0]),
        of_database(&[100, 1, 31, 0]),
        of_database(&[100, 2, 30, 0]),
        of_database(&[150, 9]),
        of_database(&[151, 1, 9]),
        of_database(&[151, 2, 1]),
        of_database(&[&[200][..], &name("x")].concat()),
        of_database(&[&[201, 1][..], &name("y")].concat()),
        of_database(&[&[201, 2][..], &name("x")].concat()),
        in_store([1, 1, 1], &[kind::LEAST]),
    ]);
}

#[test]
fn entries_of_an_index_are_in_the_order_of_the_indexed_key_then_of_the_key_they_lead_to() {
    let entry = |indexed: &[u8], number: u8, primary: &[u8]| {
        in_store([1, 1, 30], &[indexed, &[number], primary].concat())
    };
    assert_ascending(&[
        entry(&string("a"), 0, &string("z")),
        entry(&string("b"), 5, &[]),
        entry(&string("b"), 9, &double(kind::NUMBER, 1.0)),
        entry(&string("b"), 0, &string("a")),
        entry(&string("b"), 1, &string("a")),
        entry(&string("c"), 0, &string("a")),
    ]);
}

#[test]
fn arrays_nested_as_deep_as_a_key_is_long_are_compared() {
    let nested = |inner: u8| {
        let arrays = [kind::ARRAY, 1].repeat(1 << 20);
        in_store([1, 1, 1], &[&arrays[..], &[inner]].concat())
    };
    assert_ascending(&[nested(kind::LEAST), nested(kind::GREATEST)]);
}

/// Bytes that are mostly a key, so that all paths are taken.
fn anything(random: &mut testkit::random::Random) -> Vec<u8> {
    let users = user_keys();
    let key = &users[random.below(users.len())];
    let index = [0, 1, 2, 30][random.below(4)];
    let mut bytes = in_store([random.below(2) as u8, random.below(2) as u8, index], key);
    if random.below(2) == 0 {
        let at = random.below(bytes.len());
        bytes[at] = random.below(256) as u8;
    }
    if random.below(3) == 0 {
        bytes.truncate(random.below(bytes.len() + 1));
    }
    bytes
}

#[test]
fn whatever_the_bytes_the_order_is_the_same_from_both_sides() {
    let mut random = testkit::random::Random::new(7);
    for _ in 0..100_000 {
        let (a, b) = (anything(&mut random), anything(&mut random));
        assert_eq!(IndexedDb.compare(&a, &b), IndexedDb.compare(&b, &a).reverse());
        assert_eq!(IndexedDb.compare(&a, &a), Ordering::Equal);
    }
}
