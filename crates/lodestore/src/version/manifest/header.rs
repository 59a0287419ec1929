//! The first bytes of a manifest.
//!
//! | OFFSET | SIZE | MEANING |
//! |---|---|---|
//! | 0 | 8 | magic `LODEMANI` |
//! | 8 | 4 | version: 0x0100, which is 1.0 |
//! | 12 | 4 | reserved |
//! | 16 | 8 | compatible features |
//! | 24 | 8 | read-compatible features |
//! | 32 | 8 | incompatible features |
//! | 40 | 16 | the manifest's id |
//! | 56 | 16 | the database's id |
//! | 72 | 16 | id of the manifest before this one, or zero |
//! | 88 | 8 | the manifest's number |
//! | 96 | 8 | number of the last edit in the checkpoint |
//! | 104 | 8 | seconds since 1970 when it was created |
//! | 112 | 12 | reserved |
//! | 124 | 4 | CRC-32C of bytes 0 to 124 |
//!
//! Magic, version and the place of the checksum stay in every later
//! version, so that damage is told from a version that is not known.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::checksum::crc32c;
use crate::coding::{COUNTER_MAX, Reader, put_u32, put_u64, put_u128};
use crate::compatibility::{FIRST_VERSION, Features, check_version};
use crate::error::{Error, Result};
use crate::key::FileId;
use crate::version::manifest::ManifestIdentity;

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 128;
/// How every manifest begins.
pub(crate) const MAGIC: [u8; 8] = *b"LODEMANI";
/// What manifests are written in.
const VERSION: u32 = FIRST_VERSION;
/// Manifests of other versions are refused.
const KNOWN_VERSIONS: RangeInclusive<u32> = FIRST_VERSION..=VERSION;
const CHECKSUM_OFFSET: usize = HEADER_BYTES - 4;

/// The header of a manifest; `identity.edit` is the checkpoint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) features: Features,
    pub(crate) identity: ManifestIdentity,
}

impl Header {
    /// The header that this build writes for a database with these features.
    pub(crate) fn of(identity: &ManifestIdentity, features: Features) -> Header {
        Header { version: VERSION, features, identity: *identity }
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        put_u32(&mut out, self.version);
        put_u32(&mut out, 0);
        self.features.encode(&mut out);
        put_u128(&mut out, self.identity.id.0);
        put_u128(&mut out, self.identity.database_id.0);
        put_u128(&mut out, self.identity.predecessor.0);
        put_u64(&mut out, self.identity.number);
        put_u64(&mut out, self.identity.edit);
        put_u64(&mut out, self.identity.created_unix_seconds);
        out.resize(CHECKSUM_OFFSET, 0);
        let checksum = crc32c(&out);
        put_u32(&mut out, checksum);
        out.try_into().expect("the fields fill the header")
    }

    /// The header of the manifest `path`.
    ///
    /// # Errors
    /// `Corruption`; `Incompatible` for a version or an incompatible
    /// feature that this build does not know.
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES], path: &Path) -> Result<Header> {
        if bytes[..8] != MAGIC {
            return Err(Error::corruption(path, 0, "this is no manifest"));
        }
        let (covered, stored) = bytes.split_at(CHECKSUM_OFFSET);
        if stored != crc32c(covered).to_le_bytes() {
            return Err(Error::corruption(path, 0, "the header's checksum is wrong"));
        }
        let (version, header) = Header::fields(&covered[8..]).expect("the header is whole");
        check_version(path, version, &KNOWN_VERSIONS)?;
        header.features.check_readable(path)?;
        if header.identity.edit > COUNTER_MAX || header.identity.number > COUNTER_MAX {
            return Err(Error::corruption(path, 88, "the header's numbers are out of range"));
        }
        Ok(header)
    }

    fn fields(bytes: &[u8]) -> Option<(u32, Header)> {
        let mut reader = Reader::new(bytes);
        let version = reader.u32()?;
        reader.u32()?;
        let features = Features::decode(&mut reader)?;
        let (id, database_id) = (FileId(reader.u128()?), FileId(reader.u128()?));
        let predecessor = FileId(reader.u128()?);
        let identity = ManifestIdentity {
            id,
            database_id,
            predecessor,
            number: reader.u64()?,
            edit: reader.u64()?,
            created_unix_seconds: reader.u64()?,
        };
        Some((version, Header { version, features, identity }))
    }
}
