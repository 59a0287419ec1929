//! The caller's listener: what the engine does on its own, as lines.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::Arc;

use engine::{Event, Listener, Result};

use crate::order::Context;
use crate::pass::{Bytes, given};

type Tell = unsafe extern "C" fn(*mut c_void, c_int, Bytes<'_>);

/// `lodestore_listener`.
#[repr(C)]
pub struct GivenListener {
    context: *mut c_void,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    tell: Option<Tell>,
}

struct Told {
    context: Context,
    tell: Tell,
}

impl GivenListener {
    /// # Errors
    /// `InvalidArgument` if there is no function.
    pub(crate) fn listener(&self) -> Result<Arc<dyn Listener>> {
        let tell = given(self.tell, "the listener's function")?;
        let context = Context { data: self.context, destroy: self.destroy };
        Ok(Arc::new(Told { context, tell }))
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Told")
    }
}

impl Listener for Told {
    fn tell(&self, event: &Event<'_>) {
        let text = event.to_string();
        // SAFETY: the caller gave function and context for each other, and the
        // text can be read until it returns.
        unsafe { (self.tell)(self.context.data, code(event), Bytes::of(text.as_bytes())) }
    }
}

/// `LODESTORE_EVENT_...`; 0 for what this build has no number for.
fn code(event: &Event<'_>) -> c_int {
    match event {
        Event::Opened { .. } => 1,
        Event::Flushed { .. } => 2,
        Event::Compacted { .. } => 3,
        Event::Moved { .. } => 4,
        Event::Waited { .. } => 5,
        Event::Retried { .. } => 6,
        Event::CompactionsStopped { .. } => 7,
        Event::BecameReadOnly { .. } => 8,
        Event::Resumed => 9,
        Event::Closed { .. } => 10,
        _ => 0,
    }
}
