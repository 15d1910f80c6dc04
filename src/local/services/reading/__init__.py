"""What is in a file, told in few words: its headings, symbols, keys or columns, with the lines where they stand."""
