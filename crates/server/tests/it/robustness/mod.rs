//! Bad input, hostile clients, full disks and crashes.

mod bad_input;
mod client_addresses;
mod durability;
mod early_answers;
mod full_disk;
mod fuzz_requests;
mod hostile;
pub(crate) mod odd_values;
mod password_guessing;
mod right_passwords;
mod secrets;
