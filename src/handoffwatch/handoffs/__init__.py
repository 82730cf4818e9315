"""The watchdog: contracts and rules that judge whether a handoff's state is fit for the next step."""
