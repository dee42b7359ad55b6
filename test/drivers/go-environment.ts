/** What Go is given, so that it finds what it has compiled before: as etcd is built, whose gRPC it is, that one is compiled once. */
export const GO_ENVIRONMENT = { CGO_ENABLED: '0', GOFLAGS: '-trimpath', GOTOOLCHAIN: 'local', GOWORK: 'off' } as const;
