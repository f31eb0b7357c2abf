//! Fragmented coverable: files that are linked lists of blocks, each block a coverable object (`docs/spec` 4.2 to
//! 4.4). Each block is judged on its own as a coverable object; this judges what holds them together (oracle O5).
//!
//! - *Created first* (`[B-3 create-first]`): a block exists before a write that makes it reachable is invoked. New blocks
//!   may be created in any order, as long as nothing leads to them.
//! - *Connected* (`[B-1 never-unlinked]`): a write that covers a version keeps the block that followed in that version: it
//!   links to it directly, or through new blocks as they were created.
//! - *Acyclic*: new blocks do not lead back.
//! - *One link per version*: a read returns the link that was written.

use crate::Version;
use crate::history::{Effect, Name, Outcome};
use crate::versions::Versions;
use crate::view::{Finding, View};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A block: its operations in the file's view, in the order of invocation.
struct Block {
    /// Time at which the block was first known to exist: the end of the first operation that wrote or read it.
    exists: Option<u32>,
    /// The first write of it in the history, with any outcome.
    attempt: Option<usize>,
    /// The writes that took effect, by version.
    writes: BTreeMap<Version, usize>,
}

/// The blocks of one file, and who wrote which value.
struct File<'v, 'h> {
    view: &'v View<'h>,
    blocks: BTreeMap<Name, Block>,
}

/// Judges one file: all operations on all of its blocks.
pub(crate) fn judge(view: &View<'_>) -> Result<(), Finding> {
    let file = File::learn(view)?;
    for (&key, block) in &file.blocks {
        for &index in block.writes.values() {
            file.link(key, block, index)?;
        }
    }
    Ok(())
}

impl<'v, 'h> File<'v, 'h> {
    fn learn(view: &'v View<'h>) -> Result<File<'v, 'h>, Finding> {
        let mut by_key: BTreeMap<Name, Vec<u32>> = BTreeMap::new();
        let mut in_file: HashMap<u32, usize> = HashMap::new();
        for (index, operation) in view.iter() {
            let key = view.history.objects()[operation.object as usize].key;
            by_key.entry(key).or_default().push(view.places[index]);
            in_file.insert(view.places[index], index);
        }
        let mut blocks = BTreeMap::new();
        for (key, places) in by_key {
            let history = view.history;
            let block_view = View {
                history,
                places: &places,
            };
            // What `learn` finds is reported by the judge of the order of versions.
            let Ok(versions) = Versions::learn(&block_view) else {
                continue;
            };
            links_agree(&block_view)?;
            // A deleted block links to nothing, and does not count as dropping the rest.
            let links = |&(_, &index): &(&Version, &usize)| {
                block_view.get(index).input.is_some() && versions.took_effect(&block_view, index)
            };
            let writes = versions.creator.iter().filter(links);
            let writes = writes.map(|(&version, &index)| (version, in_file[&places[index]]));
            let seen = block_view
                .iter()
                .filter(|(_, operation)| match operation.effect() {
                    Effect::Writes(value) => operation.outcome == Outcome::Ok && value.is_some(),
                    Effect::Reads(value) => value.is_some(),
                    Effect::Sees => operation.version > Some(Version::INITIAL),
                    Effect::Nothing => false,
                });
            let mut attempts = block_view
                .iter()
                .filter(|(_, operation)| operation.input.is_some());
            let block = Block {
                exists: seen.map(|(_, operation)| operation.end()).min(),
                attempt: attempts.next().map(|(index, _)| in_file[&places[index]]),
                writes: writes.collect(),
            };
            blocks.insert(key, block);
        }
        Ok(File { view, blocks })
    }

    /// Judges the link that a write made.
    fn link(&self, key: Name, block: &Block, index: usize) -> Result<(), Finding> {
        let write = self.view.get(index);
        let covered = write
            .based_on
            .and_then(|base| block.writes.get(&base))
            .copied();
        let old_next = covered.and_then(|covered| self.view.get(covered).next);
        if let Some(next) = write.next {
            self.existed(next, key, index)?;
        }
        let walked = self.walk(key, index, old_next);
        let path = walked.map_err(|(what, mut path)| {
            path.push(index);
            path.extend(covered);
            self.view.finding(what, path)
        })?;
        for block in path {
            self.existed(block, key, index)?;
        }
        Ok(())
    }

    /// Checks that a block which a write of `key` makes reachable existed before the write. A new block may be
    /// created together with the blocks that it leads to, because nothing leads to a new block.
    fn existed(&self, block: Name, key: Name, index: usize) -> Result<(), Finding> {
        let write = self.view.get(index);
        let is_new = write.based_on.unwrap_or_default() == Version::INITIAL;
        if is_new && write.file != Some(key) {
            return Ok(());
        }
        let known = self.blocks.get(&block);
        let exists = known.and_then(|known| known.exists);
        if exists.is_some_and(|rank| rank <= write.invoked.rank) {
            return Ok(());
        }
        let what = format!(
            "created first: block {} was linked before it was surely created",
            self.view.history.text(block)
        );
        let attempt = known.and_then(|known| known.attempt);
        Err(self.view.finding(what, [index].into_iter().chain(attempt)))
    }

    /// Follows new blocks, as they were created, from the link of the write to the block that followed before; returns
    /// them.
    fn walk(
        &self,
        key: Name,
        index: usize,
        goal: Option<Name>,
    ) -> Result<Vec<Name>, (String, Vec<usize>)> {
        let text = |name| self.view.history.text(name);
        let (mut path, mut blocks) = (Vec::new(), Vec::new());
        let mut seen = HashSet::from([key]);
        let mut at = self.view.get(index).next;
        while at != goal {
            let Some(block) = at else {
                let goal = goal.map_or("", text);
                return Err((
                    format!("connected: a write dropped block {goal} from the file"),
                    path,
                ));
            };
            if !seen.insert(block) {
                return Err((
                    format!(
                        "acyclic: a write made block {} lead back to itself",
                        text(block)
                    ),
                    path,
                ));
            }
            blocks.push(block);
            let Some(creation) = self.creation(block) else {
                // Only its reads are in the history: where it leads is not known.
                return Ok(blocks);
            };
            path.push(creation);
            at = self.view.get(creation).next;
        }
        match goal == Some(key) {
            true => Err((
                format!(
                    "acyclic: a write made block {} lead back to itself",
                    text(key)
                ),
                path,
            )),
            false => Ok(blocks),
        }
    }

    fn creation(&self, block: Name) -> Option<usize> {
        Some(*self.blocks.get(&block)?.writes.first_key_value()?.1)
    }
}

/// Reads of a block return the link that was written with the value.
fn links_agree(block: &View<'_>) -> Result<(), Finding> {
    let mut written = HashMap::new();
    for (index, operation) in block.iter() {
        if let Effect::Writes(Some(value)) = operation.effect() {
            written.insert(value, (operation.next, index));
        }
    }
    for (index, operation) in block.iter() {
        // A write that lost does not report the link that it found.
        if operation.outcome == Outcome::Ok
            && let Effect::Reads(Some(value)) = operation.effect()
            && let Some(&(next, write)) = written.get(&value)
            && next != operation.next
        {
            let what = "one link per version: a read returned another link than was written";
            return Err(block.finding(what, [write, index]));
        }
    }
    Ok(())
}
