"""Tools of other programs' servers, which speak the Model Context Protocol."""
