"""Recording: events become Prometheus samples, spans and log lines; it never breaks its host."""
