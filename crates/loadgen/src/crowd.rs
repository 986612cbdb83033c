//! Runs many calls with a number of concurrent clients.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::task::JoinSet;

/// Runs `work` for each job, with at most `clients` concurrent clients, and waits for all of them. Must run
/// in a local set.
pub(crate) async fn each<C: 'static, T: 'static>(
    jobs: Vec<T>,
    clients: usize,
    client: impl Fn() -> C,
    work: impl AsyncFn(&mut C, T) + 'static,
) {
    let clients = clients.min(jobs.len());
    let jobs = Rc::new(RefCell::new(jobs.into_iter()));
    let work = Rc::new(work);
    let mut workers = JoinSet::new();
    for _ in 0..clients {
        let (jobs, work, mut client) = (jobs.clone(), work.clone(), client());
        workers.spawn_local(async move {
            loop {
                let next = jobs.borrow_mut().next();
                let Some(job) = next else { return };
                work(&mut client, job).await;
            }
        });
    }
    workers.join_all().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_job_runs_once_with_limited_concurrency() {
        let (running, most, done) =
            <(Rc<RefCell<usize>>, Rc<RefCell<usize>>, Rc<RefCell<Vec<u32>>>)>::default();
        let (inside, peak, finished) = (running.clone(), most.clone(), done.clone());
        let work = async move |calls: &mut u32, job: u32| {
            *calls += 1;
            *inside.borrow_mut() += 1;
            let now = *inside.borrow();
            peak.replace_with(|peak| now.max(*peak));
            tokio::task::yield_now().await;
            *inside.borrow_mut() -= 1;
            finished.borrow_mut().push(job);
        };
        tokio::task::LocalSet::new().run_until(each((0..20).collect(), 3, || 0, work)).await;
        done.borrow_mut().sort_unstable();
        assert_eq!(*done.borrow(), (0..20).collect::<Vec<_>>());
        assert_eq!((*running.borrow(), *most.borrow()), (0, 3));
    }
}
