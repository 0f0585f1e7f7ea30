"""Several tasks at once: texts and pairs with classes or numbers, for multi-task fine-tuning."""
