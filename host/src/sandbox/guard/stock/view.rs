//! The view of a guard over the stock layer, with the operations of several steps.

use std::sync::Arc;

use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::filesystem::{WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, HostDescriptor,
    OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynOutputStream, FsResult};

use super::mount::Root;
use super::node::{Node, inline, open_file};
use crate::sandbox::guard::Access;
use crate::sandbox::guard::errors::{Fault, Refusal};
use crate::sandbox::guard::file::OpenFile;
use crate::sandbox::guard::ledger::Ledger;
use crate::sandbox::guard::path::{self, GuestPath};
use crate::sandbox::guard::streams::{Position, Writer};
use crate::workspace::Part;

/// A guard over the stock layer.
pub(in crate::sandbox::guard) struct StockView<'a> {
    pub(in crate::sandbox::guard) root: Option<&'a Root>,
    pub(in crate::sandbox::guard) access: Access,
    pub(in crate::sandbox::guard) ledger: &'a Arc<Ledger>,
    pub(in crate::sandbox::guard) table: &'a mut ResourceTable,
}

/// Calls the stock layer and converts its not-permitted into a refusal: it uses that code for paths
/// that lead out.
macro_rules! stock {
    ($view:expr, $fd:expr, $operation:ident $(, $argument:expr)*) => {{
        let inner = $view.inner($fd)?;
        let mut ctx = WasiFilesystemCtx::default();
        let mut stock = WasiFilesystemCtxView { ctx: &mut ctx, table: $view.table };
        HostDescriptor::$operation(&mut stock, inner $(, $argument)*).await.map_err(Fault::from_stock)
    }};
}

pub(super) use stock;

impl StockView<'_> {
    pub(super) fn check_writable(&self) -> Result<(), Fault> {
        self.access.check_writable()
    }

    pub(super) fn node(&self, fd: &Resource<Descriptor>) -> Result<&Node, Fault> {
        Ok(self.table.get(&Resource::<Node>::new_borrow(fd.rep()))?)
    }

    pub(super) fn inner(&self, fd: &Resource<Descriptor>) -> Result<Resource<Descriptor>, Fault> {
        Ok(self.node(fd)?.inner())
    }

    pub(super) fn file(
        &self,
        fd: &Resource<Descriptor>,
        otherwise: ErrorCode,
    ) -> Result<&Arc<OpenFile>, Fault> {
        self.node(fd)?.file(otherwise)
    }

    /// Checks the access and the path of a change, and returns the path for the change log.
    pub(super) fn change(&self, fd: &Resource<Descriptor>, path: &str) -> Result<String, Fault> {
        self.check_writable()?;
        let path = GuestPath::parse(path)?;
        let name =
            path::join(&self.node(fd)?.name, &path.whole.replace(std::path::MAIN_SEPARATOR, "/"));
        // Check the path as written and after resolving `..`.
        self.ledger.rules()?.check_names(path.whole)?;
        self.ledger.rules()?.check_names(&name)?;
        Ok(name)
    }

    /// Refuses a new name that forms a git repository together with an existing one. Racy without a
    /// lock: a concurrent call may create the second name at the same time.
    pub(super) async fn check_addition(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
    ) -> Result<(), Fault> {
        let path = path.replace(std::path::MAIN_SEPARATOR, "/");
        let path = GuestPath::parse(&path)?;
        let Some(part) = Part::of(path.name) else { return Ok(()) };
        for beside in part.met() {
            let other = path::join(path.parent, beside);
            if self.look(fd, PathFlags::empty(), &other).await.is_ok() {
                let (name, beside) = (path.name.into(), (*beside).into());
                return Err(Refusal::Repository { name, beside }.into());
            }
        }
        Ok(())
    }

    pub(super) async fn look(
        &mut self,
        fd: &Resource<Descriptor>,
        flags: PathFlags,
        path: &str,
    ) -> Result<DescriptorStat, Fault> {
        GuestPath::parse(path)?;
        stock!(self, fd, stat_at, flags, path.to_owned())
    }

    pub(super) async fn open(
        &mut self,
        fd: &Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Resource<Descriptor>, Fault> {
        let creates = open_flags.contains(OpenFlags::CREATE);
        let changes = creates
            || open_flags.contains(OpenFlags::TRUNCATE)
            || flags.contains(DescriptorFlags::WRITE);
        if changes {
            self.change(fd, &path)?;
        }
        let before = match self.look(fd, path_flags, &path).await {
            Err(Fault::Code(ErrorCode::NoEntry)) if creates => None,
            found => Some(check_type(found?)?),
        };
        if let Some(stat) =
            before.as_ref().filter(|stat| changes && stat.type_ == DescriptorType::RegularFile)
        {
            self.ledger.check_links(stat.link_count)?;
        }
        let name = path::join(&self.node(fd)?.name, &path.replace(std::path::MAIN_SEPARATOR, "/"));
        if before.is_none() {
            self.ledger.check_depth(path::depth(&name))?;
            self.check_addition(fd, &path).await?;
            self.ledger.charge_entry()?;
        }
        let opened = stock!(self, fd, open_at, path_flags, path, open_flags, flags);
        if before.is_none() {
            opened
                .as_ref()
                .inspect_err(|_| self.ledger.refund_entry())
                .inspect(|_| self.ledger.note_created(&name))
                .ok();
        }
        let descriptor = self.table.delete(opened?)?;
        if before.is_some_and(|stat| stat.size > 0) && open_flags.contains(OpenFlags::TRUNCATE) {
            self.ledger.note_changed(&name);
        }
        let file = open_file(&descriptor, &name)?;
        let inner = self.table.push(inline(&descriptor)?)?;
        let node = self.table.push(Node::new(&inner, name, file))?;
        Ok(Resource::new_own(node.rep()))
    }

    pub(super) async fn link(
        &mut self,
        (fd, old_path): (&Resource<Descriptor>, String),
        flags: PathFlags,
        (new_fd, new_path): (&Resource<Descriptor>, String),
    ) -> Result<(), Fault> {
        self.ledger.check_linking()?;
        self.change(fd, &old_path)?;
        let name = self.change(new_fd, &new_path)?;
        match self.look(fd, PathFlags::empty(), &old_path).await?.type_ {
            DescriptorType::RegularFile => {}
            DescriptorType::SymbolicLink => return Err(Refusal::Symlink.into()),
            DescriptorType::Directory => return Err(ErrorCode::NotPermitted.into()),
            _ => return Err(Refusal::SpecialFile.into()),
        }
        self.ledger.check_depth(path::depth(&name))?;
        self.check_addition(new_fd, &new_path).await?;
        self.ledger.charge_entry()?;
        let to = self.inner(new_fd)?;
        let made = stock!(self, fd, link_at, flags, old_path, to, new_path);
        made.inspect_err(|_| self.ledger.refund_entry())?;
        self.ledger.note_created(&name);
        Ok(())
    }

    /// Flushes only the guest's own changes.
    pub(super) async fn sync_changes(&mut self, fd: &Resource<Descriptor>) -> Result<(), Fault> {
        let changed = match &self.node(fd)?.file(ErrorCode::IsDirectory) {
            Ok(file) => file.is_changed(),
            Err(_) => self.access == Access::ReadWrite,
        };
        if changed {
            stock!(self, fd, sync)?;
        }
        Ok(())
    }

    pub(super) fn writer(
        &mut self,
        fd: &Resource<Descriptor>,
        position: Position,
    ) -> FsResult<Resource<DynOutputStream>> {
        let file =
            self.check_writable().and_then(|()| self.file(fd, ErrorCode::BadDescriptor)).cloned();
        let file = self.ledger.answer(file)?;
        let stream: DynOutputStream =
            Box::new(Writer::new(file, Arc::clone(self.ledger), position));
        Ok(self.table.push(stream)?)
    }
}

/// Refuses everything except regular files and directories. The stock layer refuses a link that is
/// not followed.
fn check_type(stat: DescriptorStat) -> Result<DescriptorStat, Fault> {
    match stat.type_ {
        DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink => {
            Ok(stat)
        }
        _ => Err(Refusal::SpecialFile.into()),
    }
}
