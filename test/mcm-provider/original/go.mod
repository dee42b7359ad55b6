// What providers import of machine-controller-manager, by the same paths and names, written anew for the tests: the original's module
// cannot be downloaded from every proxy. Only what the shim and the provider of the tests use is here.
module github.com/gardener/machine-controller-manager

go 1.26.0

require (
	k8s.io/api v0.34.0
	k8s.io/apimachinery v0.34.0
)
