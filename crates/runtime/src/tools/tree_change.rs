//! Whether files changed during a turn, where the agent's own tools do not say so. Cheap, bounded, and never more than a hint.
