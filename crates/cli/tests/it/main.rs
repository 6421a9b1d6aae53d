//! The real binary in throw-away directories: what it prints, how it ends, and what it leaves alone.

#[cfg(test)]
mod acp_agent;
#[cfg(test)]
mod acp_hostile;
#[cfg(test)]
mod acp_support;
#[cfg(test)]
mod agents;
#[cfg(test)]
mod append;
#[cfg(test)]
mod attestations;
#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod conducted;
#[cfg(test)]
mod conducted_keys;
#[cfg(test)]
mod conducted_kills;
#[cfg(test)]
mod conducted_limits;
#[cfg(test)]
mod conducted_parts;
#[cfg(test)]
mod conducted_proof;
#[cfg(test)]
mod conducted_tries;
#[cfg(test)]
mod config;
#[cfg(test)]
mod deaths;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod dependencies;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod driven;
#[cfg(test)]
mod events;
#[cfg(test)]
mod examples_aof;
#[cfg(test)]
mod examples_exit;
#[cfg(test)]
mod files;
#[cfg(test)]
mod first_agents;
#[cfg(test)]
mod guide;
#[cfg(test)]
mod help;
#[cfg(test)]
mod hints;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hostile_tasks;
#[cfg(test)]
mod http;
#[cfg(test)]
mod http_access;
#[cfg(test)]
mod http_acp;
#[cfg(test)]
mod http_changes;
#[cfg(test)]
mod http_elsewhere;
#[cfg(test)]
mod http_gap;
#[cfg(test)]
mod http_health;
#[cfg(test)]
mod http_mcp;
#[cfg(test)]
mod http_mcp_client;
#[cfg(test)]
mod http_page;
#[cfg(test)]
mod http_relayed;
#[cfg(test)]
mod http_remote;
#[cfg(test)]
mod http_schema;
#[cfg(test)]
mod http_session_tokens;
#[cfg(test)]
mod http_sessions;
#[cfg(test)]
mod http_stress;
#[cfg(test)]
mod http_tls;
#[cfg(test)]
mod init;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod looking;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod mcp_client;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod mock_agent;
#[cfg(test)]
mod newcomers;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod own_agents;
#[cfg(test)]
mod phases;
#[cfg(test)]
mod places;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod protocol_pages;
#[cfg(test)]
mod prove;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod real_agents;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod reviews;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod saves;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod serve_tasks;
#[cfg(test)]
mod session_pages;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod spans;
#[cfg(test)]
mod story;
#[cfg(test)]
mod support;
#[cfg(test)]
mod surroundings;
#[cfg(test)]
mod task_commands;
#[cfg(test)]
mod task_files;
#[cfg(test)]
mod task_folders;
#[cfg(test)]
mod task_support;
#[cfg(test)]
mod trace;
#[cfg(test)]
mod verify;
#[cfg(test)]
mod walk;
#[cfg(test)]
mod wall;
#[cfg(test)]
mod web_support;
#[cfg(test)]
mod worktree_wall;
