//! The program: its commands, start and stop.

mod alerts;
mod archives;
mod backup_crashes;
mod backups;
mod check_config;
mod command_line;
mod deep_doctor;
mod deploy;
mod first_minutes;
mod fixed_hosts;
mod https;
mod logs;
mod metrics;
pub(crate) mod process;
mod retention;
mod sandbox_hosts;
pub(crate) mod serving;
mod shell_files;
mod shutdown;
mod store_identity;
mod tls_faults;
mod traces;
mod unix_socket;
