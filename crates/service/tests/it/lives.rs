//! Categories, lives and stream keys as several nodes see them.

use std::sync::Arc;

use domain::limits::{LIVE_WALK_GRACE_MS, LIVE_WALK_MS};
use domain::live::{Category, CategoryChoice, CategoryType};
use domain::{CategoryId, ClientId, Refusal};
use service::Service;
use service::broadcast_settings::SettingChange;
use service::lives::LiveReport;

use crate::world::{World, both, refusal};
use store::Tx;

fn category(id: &str, value: &str) -> Category {
    Category {
        category_id: CategoryId::stored(id.to_owned()),
        category_type: CategoryType::Etc,
        category_value: value.to_owned(),
        poster_image_url: None,
    }
}

fn report(viewers: i64) -> LiveReport {
    LiveReport {
        title: None,
        thumbnail_image_url: None,
        concurrent_user_count: viewers,
        adult: false,
        category: CategoryChoice::Unsaid,
        tags: None,
    }
}

async fn found(node: &Service, query: &str) -> Vec<String> {
    let found = node.search_categories(query, 50).await.unwrap();
    found.iter().map(|category| category.category_id.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_node_finds_a_category_as_soon_as_it_is_written() {
    both(|world| async move {
        let nodes = Arc::new([world.service.clone(), world.node("node-b"), world.node("node-c")]);
        // More categories than one statement reads.
        for n in 0..2_100 {
            let category = category(&format!("old-{n:04}"), &format!("오래된 {n}"));
            world
                .store
                .write(async move |tx: &mut Tx| {
                    tx.next_category_version().await?;
                    tx.put_category(&category).await
                })
                .await
                .map_err(|error: store::StoreError| error)
                .unwrap();
        }
        let tasks: Vec<_> = (0..3)
            .map(|writer: usize| {
                let nodes = nodes.clone();
                tokio::spawn(async move {
                    for n in 0..20 {
                        let id = format!("new-{writer}-{n:02}");
                        nodes[writer].put_category(category(&id, &format!("새 {id}"))).await.unwrap();
                        for node in nodes.iter() {
                            assert_eq!(found(node, &id).await, [id.as_str()]);
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        for node in nodes.iter() {
            assert_eq!(found(node, "오래된 2099").await, ["old-2099"]);
            assert_eq!(found(node, "새 ").await.len(), 50);
        }
    })
    .await;
}

/// Returns the channels of a whole walk whose pages alternate between nodes.
async fn walk(nodes: &[Service], client: &ClientId) -> Vec<String> {
    let (mut channels, mut next) = (Vec::new(), None);
    for node in nodes.iter().cycle() {
        let page = node.lives(client, 2, next.as_deref()).await.unwrap();
        channels.extend(page.lives.iter().map(|live| live.channel_id.to_string()));
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    channels
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_continues_at_any_node() {
    both(|world| async move {
        let nodes = [world.service.clone(), world.node("node-b")];
        let app = world.application("app").await;
        for (n, id) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            let channel = world.user(id).await;
            nodes[n % 2].put_live(&channel, report(n as i64)).await.unwrap();
        }
        assert_eq!(walk(&nodes, &app.client_id).await, ["e", "d", "c", "b", "a"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_counts_are_swept_when_no_walk_needs_them() {
    both(|world| async move {
        let app = world.application("app").await;
        let (a, b) = (world.user("a").await, world.user("b").await);
        world.service.put_live(&a, report(9)).await.unwrap();
        world.service.put_live(&b, report(5)).await.unwrap();
        let cursor = world.service.lives(&app.client_id, 1, None).await.unwrap().next.unwrap();
        world.service.put_live(&b, report(50)).await.unwrap();
        let rest = async |world: &World| {
            let page = world.service.lives(&app.client_id, 5, Some(&cursor)).await;
            page.map(|page| page.lives.iter().map(|live| live.concurrent_user_count).collect::<Vec<_>>())
        };
        world.advance_ms(LIVE_WALK_MS as u64);
        assert_eq!(world.service.sweep().await, Ok(0));
        assert_eq!(rest(&world).await, Ok(vec![5]));
        world.advance_ms(LIVE_WALK_GRACE_MS as u64);
        assert_eq!(world.service.sweep().await, Ok(1));
        assert!(matches!(refusal(rest(&world).await.unwrap_err()), Refusal::Invalid(_)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_reports_and_changes_of_one_channel_are_serialized() {
    both(|world| async move {
        let nodes = [world.service.clone(), world.node("node-b")];
        let app = world.application("app").await;
        let channel = world.user("a").await;
        let tasks: Vec<_> = (0..6_i64)
            .map(|task| {
                let (node, channel) = (nodes[task as usize % 2].clone(), channel.clone());
                tokio::spawn(async move {
                    for n in 0..20 {
                        match task {
                            0 => node.end_live(&channel).await.unwrap(),
                            1 => {
                                let change = SettingChange {
                                    title: Some(format!("제목 {n}")),
                                    category_type: None,
                                    category: CategoryChoice::Unsaid,
                                    tags: None,
                                };
                                node.change_broadcast_setting(&channel, change).await.unwrap();
                            }
                            _ => node.put_live(&channel, report(task * 100 + n)).await.unwrap(),
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        world.service.put_live(&channel, report(7)).await.unwrap();
        let lives = world.service.lives(&app.client_id, 20, None).await.unwrap().lives;
        assert_eq!(lives.len(), 1);
        assert_eq!((lives[0].title.as_str(), lives[0].concurrent_user_count), ("제목 19", 7));
        let open = world.store.read(async |tx: &mut Tx| {
            let sql = "SELECT COUNT(*) FROM live_spans WHERE closed_at IS NULL";
            tx.query_one(sql, &[]).await?.get::<i64>(0)
        });
        assert_eq!(open.await, Ok::<_, store::StoreError>(1));
    })
    .await;
}
