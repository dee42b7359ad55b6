exec .venv/bin/python main.py "$@"
