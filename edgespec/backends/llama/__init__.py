"""What llama.cpp and its forks have in common; `backends.llamacpp` and `backends.ik` say what differs."""
