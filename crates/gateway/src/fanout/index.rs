//! The subscriptions of one shard, in memory. Members and channels are in slots, and lists of slots connect
//! them. Adding, removing and finding take constant time.

use std::collections::HashMap;
use std::hash::Hash;

use domain::ChannelId;
use domain::event::EventType;

/// The slot of a member or of a channel.
pub(super) type Slot = u32;

/// Values in numbered slots. Free slots are reused.
struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<Slot>,
}

impl<T> Slots<T> {
    const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    fn insert(&mut self, value: T) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                self.places[slot as usize] = Some(value);
                slot
            }
            None => {
                self.places.push(Some(value));
                // No node has 2^32 sessions or channels.
                (self.places.len() - 1) as Slot
            }
        }
    }

    fn get(&self, slot: Slot) -> Option<&T> {
        self.places.get(slot as usize)?.as_ref()
    }

    fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.places.get_mut(slot as usize)?.as_mut()
    }

    fn remove(&mut self, slot: Slot) -> Option<T> {
        let value = self.places.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(value)
    }
}

/// Members by key, and the channels that they are subscribed to. `M` and `C` are the owner's data of a member
/// and of a channel.
pub(super) struct Index<K, M, C> {
    keys: HashMap<K, Slot>,
    members: Slots<Entry<M>>,
    names: HashMap<ChannelId, Slot>,
    channels: Slots<Channel<C>>,
}

struct Entry<M> {
    data: M,
    subscriptions: Vec<SubscriptionRef>,
}

/// A member's subscription, and its position in the channel's list.
#[derive(Clone, Copy)]
struct SubscriptionRef {
    channel: Slot,
    event: EventType,
    place: u32,
}

struct Channel<C> {
    id: ChannelId,
    subscribers: [Vec<Slot>; EventType::ALL.len()],
    data: C,
}

impl<K: Eq + Hash, M, C: Default> Index<K, M, C> {
    pub(super) fn new() -> Self {
        Self { keys: HashMap::new(), members: Slots::new(), names: HashMap::new(), channels: Slots::new() }
    }

    pub(super) fn insert(&mut self, key: K, data: M) -> Slot {
        let slot = self.members.insert(Entry { data, subscriptions: Vec::new() });
        self.keys.insert(key, slot);
        slot
    }

    /// The slot of the member with this key.
    pub(super) fn find(&self, key: &K) -> Option<Slot> {
        self.keys.get(key).copied()
    }

    pub(super) fn member(&self, slot: Slot) -> Option<&M> {
        self.members.get(slot).map(|member| &member.data)
    }

    pub(super) fn member_mut(&mut self, slot: Slot) -> Option<&mut M> {
        self.members.get_mut(slot).map(|member| &mut member.data)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (Slot, &M)> {
        let slots = 0..self.members.places.len() as Slot;
        slots.filter_map(|slot| self.member(slot).map(|member| (slot, member)))
    }

    /// Whether a member has a subscription.
    pub(super) fn is_subscribed(&self, slot: Slot) -> bool {
        self.members.get(slot).is_some_and(|member| !member.subscriptions.is_empty())
    }

    /// The subscriptions of a member, in any order.
    pub(super) fn subscriptions(&self, slot: Slot) -> impl Iterator<Item = (EventType, &ChannelId)> {
        let subscriptions = self.members.get(slot).map_or(&[][..], |member| &member.subscriptions);
        subscriptions.iter().filter_map(|subscription| {
            self.channels.get(subscription.channel).map(|channel| (subscription.event, &channel.id))
        })
    }

    /// The slot of the channel with this id; `None` when it has no subscriber.
    pub(super) fn channel(&self, id: &ChannelId) -> Option<Slot> {
        self.names.get(id).copied()
    }

    pub(super) fn channel_mut(&mut self, slot: Slot) -> Option<&mut C> {
        self.channels.get_mut(slot).map(|channel| &mut channel.data)
    }

    pub(super) fn subscribers(&self, channel: Slot, event: EventType) -> &[Slot] {
        self.channels.get(channel).map_or(&[], |channel| &channel.subscribers[event as usize])
    }

    /// Subscribes a member. A repeated subscription counts once.
    pub(super) fn subscribe(&mut self, slot: Slot, id: &ChannelId, event: EventType) {
        let Some(member) = self.members.get_mut(slot) else { return };
        let channel = match self.names.get(id) {
            Some(&channel) => channel,
            None => {
                let id = id.clone();
                let subscribers = Default::default();
                let channel =
                    self.channels.insert(Channel { id: id.clone(), subscribers, data: C::default() });
                self.names.insert(id, channel);
                channel
            }
        };
        if member.subscriptions.iter().any(|subscription| subscription.is(channel, event)) {
            return;
        }
        if let Some(Channel { subscribers, .. }) = self.channels.get_mut(channel) {
            let list = &mut subscribers[event as usize];
            member.subscriptions.push(SubscriptionRef { channel, event, place: list.len() as u32 });
            list.push(slot);
        }
    }

    /// Ends a member's subscription, if there is one.
    pub(super) fn unsubscribe(&mut self, slot: Slot, id: &ChannelId, event: EventType) {
        let (Some(channel), Some(member)) = (self.channel(id), self.members.get_mut(slot)) else { return };
        if let Some(at) = member.subscriptions.iter().position(|subscription| subscription.is(channel, event))
        {
            let subscription = member.subscriptions.swap_remove(at);
            self.leave(subscription);
        }
    }

    /// Removes the member with this key, and its subscriptions.
    pub(super) fn remove(&mut self, key: &K) -> Option<M> {
        let slot = self.keys.remove(key)?;
        let Entry { data, subscriptions } = self.members.remove(slot)?;
        for subscription in subscriptions {
            self.leave(subscription);
        }
        Some(data)
    }

    /// Removes a member from a channel's list. The last entry of the list moves to its position.
    fn leave(&mut self, subscription: SubscriptionRef) {
        let SubscriptionRef { channel, event, place } = subscription;
        let Some(Channel { id, subscribers, .. }) = self.channels.get_mut(channel) else { return };
        let list = &mut subscribers[event as usize];
        list.swap_remove(place as usize);
        let moved = list.get(place as usize).copied();
        if list.len() < list.capacity() / 4 {
            list.shrink_to(list.len() * 2);
        }
        if subscribers.iter().all(Vec::is_empty) {
            self.names.remove(id);
            self.channels.remove(channel);
        }
        let moved = moved.and_then(|moved| self.members.get_mut(moved));
        let of_moved = moved.and_then(|moved| moved.subscriptions.iter_mut().find(|i| i.is(channel, event)));
        if let Some(subscription) = of_moved {
            subscription.place = place;
        }
    }
}

impl SubscriptionRef {
    fn is(&self, channel: Slot, event: EventType) -> bool {
        self.channel == channel && self.event == event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(number: usize) -> ChannelId {
        ChannelId::stored(format!("c{number}"))
    }

    fn names(index: &Index<usize, usize, ()>, id: &ChannelId, event: EventType) -> Vec<usize> {
        let slots = index.channel(id).map_or(&[][..], |channel| index.subscribers(channel, event));
        let mut names: Vec<_> = slots.iter().filter_map(|&slot| index.member(slot).copied()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn repeated_subscriptions_count_once_and_channels_go_with_their_last_subscriber() {
        let mut index: Index<usize, usize, ()> = Index::new();
        let (one, two) = (index.insert(1, 1), index.insert(2, 2));
        for slot in [one, one, two] {
            index.subscribe(slot, &channel(0), EventType::Chat);
        }
        index.subscribe(one, &channel(0), EventType::Donation);
        assert_eq!(names(&index, &channel(0), EventType::Chat), [1, 2]);
        assert_eq!(names(&index, &channel(0), EventType::Donation), [1]);
        index.unsubscribe(one, &channel(0), EventType::Chat);
        index.unsubscribe(one, &channel(0), EventType::Chat);
        index.unsubscribe(two, &channel(7), EventType::Chat);
        assert_eq!(names(&index, &channel(0), EventType::Chat), [2]);
        assert!(index.is_subscribed(one));
        assert_eq!((index.remove(&1), index.remove(&2), index.remove(&2)), (Some(1), Some(2), None));
        assert!(index.channel(&channel(0)).is_none() && index.find(&1).is_none());
    }

    /// Compares with a set of triples.
    #[test]
    fn any_sequence_of_changes_leaves_the_same_subscribers_as_a_plain_set() {
        let mut index: Index<usize, usize, ()> = Index::new();
        let mut model = std::collections::BTreeSet::new();
        let mut random = 1_u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let [member, at, event, action] =
                [33, 40, 47, 54].map(|shift| (random >> shift) as usize).map(|r| r % 128);
            let (member, at, event) = (member % 12, at % 5, EventType::ALL[event % EventType::ALL.len()]);
            let slot = index.find(&member).unwrap_or_else(|| index.insert(member, member));
            match action % 16 {
                0 => {
                    index.remove(&member);
                    model.retain(|(m, _, _)| *m != member);
                }
                1..8 => {
                    index.unsubscribe(slot, &channel(at), event);
                    model.remove(&(member, at, event));
                }
                _ => {
                    index.subscribe(slot, &channel(at), event);
                    model.insert((member, at, event));
                }
            }
            let expected: Vec<_> =
                model.iter().filter(|(_, a, e)| (*a, *e) == (at, event)).map(|(m, _, _)| *m).collect();
            assert_eq!(names(&index, &channel(at), event), expected);
        }
    }
}
