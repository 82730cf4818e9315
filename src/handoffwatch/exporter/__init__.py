"""The exporter process: metrics, health and a landing page over HTTP, and the settler beside them."""
