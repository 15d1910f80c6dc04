"""The tool for skills, and who answers what doors and respondents ask of them."""
