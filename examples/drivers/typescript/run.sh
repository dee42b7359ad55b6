exec node main.ts "$@"
