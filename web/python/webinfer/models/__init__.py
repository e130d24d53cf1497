"""The models that webinfer knows by name: task, source, hash, licence. No code of the engine."""
