"""Looking through programs: text by regular expressions, symbols and syntax by tree-sitter, in a process of its own."""
