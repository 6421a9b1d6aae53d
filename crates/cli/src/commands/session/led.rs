//! A session that clients lead over the Agent Client Protocol: followed and ended like any other. Who speaks to it are its clients.

use std::sync::Arc;
use std::time::Duration;

use baton_core::ids::SessionId;
use baton_runtime::session::{Channel, Item, Next};

use super::act::end_of;
use super::owner;
use super::show::{Seen, print};
use crate::commands::Ended;
use crate::commands::follow::object;
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::serve::Owner;
use crate::sessions;
use crate::ui::Ui;
use crate::ui::text::printable;

/// How often it is looked whether whoever follows is still there.
const LOOK: Duration = Duration::from_millis(100);

/// One that runs.
pub(super) struct Led {
    owner: Arc<Owner>,
    id: SessionId,
}

impl Led {
    /// The session of this name, where it is one of these and runs.
    pub(super) fn find(ctx: &Context, ui: &Ui, word: &str) -> Result<Option<Led>, Stop> {
        let Some(owner) = owner(ctx, ui)? else { return Ok(None) };
        let id = sessions::find(&sessions::dir_of(&owner.workspace.layout), word)?.id;
        Ok(owner.broker.relayed(id).is_some().then_some(Led { owner, id }))
    }

    /// Ends it; its clients are told how it ended.
    pub(super) fn stop(&self, ctx: &Context, ui: &mut Ui) -> Ended {
        if !self.owner.broker.stop_relayed(self.id) {
            let what = format!("session {} was asked to end, and has not", self.id);
            let hint = format!("baton session show {}", self.id);
            return Err(CliError::new(Code::SessionRefused, what).hint(hint).into());
        }
        let dir = sessions::dir_of(&self.owner.workspace.layout);
        let snapshot = sessions::find(&dir, &self.id.to_string())?;
        print(ui, &snapshot, &Seen::of(ctx, &snapshot, None)?)
    }

    /// Shows where it stands until it ends.
    pub(super) fn attach(&self, ctx: &Context, ui: &mut Ui) -> Ended {
        if !ui.json {
            ui.note(
                "clients of its own lead it, and hear its words; here is where it stands, and how it ends",
            );
        }
        let feed = self.owner.broker.relayed_feed(self.id);
        let mut position = 0;
        while let Some(feed) = &feed
            && !ctx.is_abandoned()
        {
            match feed.after(position, LOOK) {
                Next::Items(items) => {
                    for item in &items {
                        position = item.at;
                        self.show(ui, item)?;
                    }
                    ui.flush()?;
                }
                Next::Gap(first) => position = first - 1,
                Next::Nothing => {}
                Next::Over => break,
            }
        }
        end_of(ctx, ui, self.id)
    }

    fn show(&self, ui: &mut Ui, item: &Item) -> Result<(), Stop> {
        if ui.json {
            return ui.object(&object(self.id, item));
        }
        match item.channel {
            Channel::State => {
                let to = item.value["to"].as_str().unwrap_or_default();
                ui.line(&format!("state  {}", printable(to)))
            }
            Channel::Stream | Channel::Ended => Ok(()),
        }
    }
}
