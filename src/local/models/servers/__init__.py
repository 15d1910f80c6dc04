"""Model servers that LoCAL2 starts itself, each as a child of the supervisor."""
