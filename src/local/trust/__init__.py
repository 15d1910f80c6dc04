"""Which folders of others the owner trusts."""
