"""What a model may do once words of strangers are before it: the rule outside the model. No I/O."""
