//! Runs futures: a task is polled when it was woken, in the order of waking.

use super::World;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

type Task = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
pub(super) struct Tasks {
    /// Tasks by number; `None` while a task is polled, and after its end.
    running: RefCell<Vec<Option<Task>>>,
    woken: Arc<Mutex<VecDeque<usize>>>,
}

/// Wakers have to be `Send`, so the list of woken tasks has a lock; nobody ever waits for it.
struct TaskWaker {
    task: usize,
    woken: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut woken = self.woken.lock().expect("no panic while the lock is held");
        woken.push_back(self.task);
    }
}

impl World {
    /// Starts a task; it first runs in the next step.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) -> usize {
        let tasks = &self.0.tasks;
        let mut running = tasks.running.borrow_mut();
        running.push(Some(Box::pin(future)));
        let task = running.len() - 1;
        let woken = tasks.woken.clone();
        Arc::new(TaskWaker { task, woken }).wake();
        task
    }

    /// Ends a task where it stands, as the end of its process would. False: it had ended.
    pub(crate) fn abort(&self, task: usize) -> bool {
        let ended = self.0.tasks.running.borrow_mut()[task].take();
        ended.is_some()
    }

    /// Drops all tasks and calls: they hold the world that holds them.
    pub(crate) fn end(&self) {
        let tasks = std::mem::take(&mut *self.0.tasks.running.borrow_mut());
        drop(tasks);
        let events = std::mem::take(&mut *self.0.queue.borrow_mut());
        drop(events);
        let calls = std::mem::take(&mut *self.0.calls.borrow_mut());
        drop(calls);
    }

    pub(super) fn poll(&self) {
        let tasks = &self.0.tasks;
        loop {
            let next = tasks
                .woken
                .lock()
                .expect("nobody panics with it")
                .pop_front();
            let Some(number) = next else { return };
            let Some(mut task) = tasks.running.borrow_mut()[number].take() else {
                continue;
            };
            let waker = Waker::from(Arc::new(TaskWaker {
                task: number,
                woken: tasks.woken.clone(),
            }));
            let mut context = Context::from_waker(&waker);
            if task.as_mut().poll(&mut context).is_pending() {
                tasks.running.borrow_mut()[number] = Some(task);
            }
        }
    }
}
