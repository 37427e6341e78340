"""Environment `livemath`: multiple-choice questions about theorems."""
