"""Jobs at set times: kept, asked when they are due, and the tools by which a model lists, makes and removes them."""
