"""What has to be there before anything else can be imported: an environment that holds what the locks say."""
