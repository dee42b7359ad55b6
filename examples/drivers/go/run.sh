exec ./folder-driver "$@"
